"""Comparing platforms by the programs that both have measured."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from shapes import contraction

from benchmarks.common import platform_of
from benchmarks.platforms import compare, speeds_of
from tcl_iree.cli import main
from tcl_iree.database import Database
from tcl_iree.learning.metrics import rank_correlation
from tcl_iree.target import Target
from tcl_iree.transform_dialect.schedule import DEFAULT_FAMILY

PROGRAMS = 6
pytestmark = pytest.mark.usefixtures("all_are_trusted")


def test_rank_correlation() -> None:
    values = np.array([3.0, 1.0, 2.0, 5.0])
    assert rank_correlation(values, 10 * values) == pytest.approx(1.0)
    assert rank_correlation(values, -values) == pytest.approx(-1.0)
    # By hand: ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4.
    assert rank_correlation(np.array([1.0, 2.0, 2.0, 3.0]), np.arange(4)) == pytest.approx(4.5 / math.sqrt(4.5 * 5.0))


def test_what_two_platforms_have_in_common() -> None:
    one = {("w", ""): {"a": 1.0, "b": 2.0, "c": 4.0, "failed": math.nan}, ("only here", ""): {"a": 1.0}}
    other = {("w", ""): {"a": 8.0, "b": 4.0, "c": 2.0, "failed": 9.0, "not there": 100.0}}
    found = compare(one, other, 3)
    assert found
    assert (found["workloads"], found["programs"]) == (1, 3)
    assert found["rank_correlation"] == pytest.approx(-1.0)
    assert found["of_the_best"] == pytest.approx(0.25), "c is the first one's best, a the second one's"
    assert found["of_the_default"] == pytest.approx(2.0)
    assert compare(one, other, 4) is None
    assert compare(one, {}, 1) is None


def test_a_cpu_and_its_class_are_one_platform() -> None:
    assert platform_of("cpu-native.avx512-t1-abc") == platform_of("cpu-avx512-t1-abc")
    assert platform_of("cpu-native.avx512-t1-abc") != platform_of("cpu-avx512-t2-abc")


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("platforms")
    for name, sizes in (("one", {"m": 24, "n": 40, "k": 56}), ("two", {"m": 40, "n": 72, "k": 24})):
        (folder / f"{name}.mlir").write_text(contraction(sizes))
    models = [str(folder / "one.mlir"), str(folder / "two.mlir")]
    command = ["collect", "--networks", *models, "--per-workload", str(PROGRAMS), "--evolved", "0"]
    assert main([*command, "--target", "cpu,threads=1", "--db", str(folder / "first.db"), "--json"]) == 0
    return folder


def repeat(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, object]:
    capsys.readouterr()
    command = ["collect", "--programs", str(folder / "first.db"), "--target", "cpu:sse4,threads=1", "--json"]
    assert main([*command, "--db", str(folder / "second.db"), *options]) == 0
    return json.loads(capsys.readouterr().out)


def programs_of(database: Database) -> dict[tuple[str, str], set[str]]:
    """All programs that were tried, however disturbed the machine was when they were timed."""
    found: dict[tuple[str, str], set[str]] = {}
    for trial in database.trials():
        found.setdefault((trial.workload, trial.flags), set()).add(trial.schedule)
    return found


@pytest.mark.skipif(bool(Target.parse("cpu:sse4,threads=1").why_not_run()), reason="needs an x86-64 CPU")
def test_programs_of_one_platform_are_measured_on_another(
    collected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = repeat(collected, capsys, "--per-workload", "2")
    assert (part["programs"], part["known"], part["workloads"]) == (4, 0, 2)
    whole = repeat(collected, capsys, "-o", str(tmp_path / "shards"))
    assert whole["programs"] + whole["known"] == 2 * PROGRAMS
    assert whole["known"] >= 4, "what was measured is not measured again"
    assert len(whole["shards"]) == 1
    with Database(collected / "first.db") as first, Database(collected / "second.db") as second:
        assert len(speeds_of(first)) == len(speeds_of(second)) == 1
        here, there = programs_of(first), programs_of(second)
        scripts = {sha: record.script for sha, record in first.schedules().items()}
        assert {sha: record.script for sha, record in second.schedules().items()} == scripts
    assert here == there
    assert repeat(collected, capsys, "--workloads", "1")["workloads"] == 1


def test_fresh_programs_of_recorded_workloads(
    collected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Database(collected / "first.db") as database:
        recorded, keys = set(database.schedules()), sorted(row.key for row in database.workloads())
    capsys.readouterr()
    command = ["collect", "--programs", str(collected / "first.db"), "--fresh", "--only", keys[0][:12], "--json"]
    command += ["--per-workload", "3", "--target", "cpu,threads=1", "--db", str(tmp_path / "more.db")]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["programs"], found["known"], found["workloads"]) == (3, 0, 1)
    with Database(tmp_path / "more.db") as database:
        records = database.schedules()
        new = {trial.schedule for trial in database.trials() if records[trial.schedule].family != DEFAULT_FAMILY}
        assert {trial.workload for trial in database.trials()} == {keys[0]}
    assert len(new) == 3
    assert not new & recorded
    assert main(command) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["programs"], again["known"]) == (0, 3)


def test_networks_or_programs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["collect", "--target", "cpu,threads=1"])
    assert "--networks" in capsys.readouterr().err
    missing = ["collect", "--programs", str(tmp_path / "none.parquet"), "--db", str(tmp_path / "x.db")]
    assert main(missing) == 2
    assert "none.parquet" in capsys.readouterr().err
