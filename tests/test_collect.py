"""From measuring to a trained model and its score, through the command line, with the real compiler."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from shapes import contraction

from tcl_iree.cli import main
from tcl_iree.database import Database, ScheduleRecord
from tcl_iree.learning.groups import load_groups
from tcl_iree.learning.split import TEST, TRAIN, VALIDATION, load_split
from tcl_iree.workflows.data import Programs

PROGRAMS = 8
pytestmark = pytest.mark.usefixtures("all_are_trusted")


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collected")
    models = []
    for name, sizes in (("one", {"m": 24, "n": 40, "k": 56}), ("two", {"m": 40, "n": 72, "k": 24})):
        models.append(folder / f"{name}.mlir")
        models[-1].write_text(contraction(sizes))
    command = ["collect", "--networks", *map(str, models), str(folder / "missing.mlir"), "--target", "cpu,threads=1"]
    command += ["--per-workload", str(PROGRAMS), "--evolved", "0.25", "--db", str(folder / "all.db")]
    assert main([*command, "-o", str(folder / "shards"), "--json"]) == 0
    return folder


def collect_again(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, object]:
    capsys.readouterr()
    models = [str(folder / "one.mlir"), str(folder / "two.mlir")]
    command = ["collect", "--networks", *models, "--target", "cpu,threads=1", "--per-workload", str(PROGRAMS)]
    assert main([*command, "--evolved", "0.25", "--db", str(folder / "all.db"), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_programs_of_every_workload_are_kept_with_their_origin(collected: Path) -> None:
    with Database(collected / "all.db") as database:
        trials = database.trials()
        groups = load_groups(database)
    assert [len(group) for group in groups] == [PROGRAMS + 1] * 2
    assert {trial.origin for trial in trials} == {"", "random", "evolved"}
    assert all(json.loads(trial.hardware or "")["isa"] for trial in trials)
    assert sum(origin == "evolved" for group in groups for origin in group.origins) >= 1


def test_shards_hold_what_the_database_holds(collected: Path, tmp_path: Path) -> None:
    with Programs([collected / "shards"]) as shards, Programs([collected / "all.db"]) as whole:
        assert [len(group) for group in shards.groups()] == [len(group) for group in whole.groups()]


def test_what_was_measured_is_not_measured_again(collected: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = collect_again(collected, capsys)
    assert found["programs"] == 0
    assert found["known"] == 2 * PROGRAMS
    assert collect_again(collected, capsys, "--budget", "3")["known"] == 3


def test_what_a_killed_run_measured_reaches_a_shard(
    collected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = collect_again(collected, capsys, "-o", str(tmp_path / "anew"))
    assert found["programs"] == 0
    with Programs([tmp_path / "anew"]) as shards:
        assert [len(group) for group in shards.groups()] == [PROGRAMS + 1] * 2


def test_scripts_that_cannot_be_read_are_left_out(collected: Path, tmp_path: Path) -> None:
    with Programs([collected / "all.db"]) as programs:
        database = programs.database
        (trial, *_) = [trial for trial in database.trials() if trial.origin == "random"]
        record = ScheduleRecord("script", {}, "this is no MLIR")
        workload = next(row for row in database.workloads() if row.key == trial.workload)
        database.add_trial(workload, record, replace(trial, uid="x", schedule=record.sha))
        assert [len(group) for group in programs.groups()] == [PROGRAMS + 1] * 2


def test_train_and_eval(collected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "models" / "small"
    data = ["--data", str(collected / "shards")]
    command = ["train", *data, "--all", "--epochs", "2", "--config", "width=16", "depth=1", "-o", str(model)]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "top-1" in shown
    assert "in 2 epochs" in shown
    assert main(["eval", str(model), *data, "--part", "train", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"random", "roofline", f"mamba ({model})"}
    assert all(0 < entry["top_1"] <= entry["top_5"] <= 1 for entry in found.values())
    assert main(["models", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[str(model)]["config"]["width"] == 16
    assert main(["models"]) == 0
    assert "mtl-tlp" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["train", "--data", "{here}/nothing.db", "-o", "{here}/x"], "no database at"),
        (["train", "--data", "{here}", "-o", "{here}/x"], "has no .parquet files"),
        (["train", "--data", "{shards}", "--config", "width", "-o", "{here}/x"], "is written NAME=NUMBER"),
        (["train", "--data", "{shards}", "--config", "size=3", "-o", "{here}/x"], "cannot be made with"),
        (["train", "--data", "{shards}", "--platform", "vulkan", "-o", "{here}/x"], "no measured programs"),
        (["eval", "{here}/nothing", "--data", "{shards}"], "no checkpoint at"),
        (["train", "--data", "{shards}", "--epochs", "0", "-o", "{here}/x"], "at least one epoch"),
        (["train", "--data", "{shards}", "--config", "width=0", "-o", "{here}/x"], "must be more than 0"),
        (["collect", "--networks", "zoo:nothing"], "no network has dispatches"),
        (["collect", "--networks", "zoo:bert-mini", "--base", "auto"], "no flag sets to choose from"),
        (["collect", "--networks", "zoo:bert-mini", "--budget", "0"], "at least 1 program"),
        (["collect", "--networks", "zoo:bert-mini", "--target", "cuda:sm_80"], "cannot run here"),
    ],
)
def test_bad_input_is_one_clear_error(
    command: list[str], message: str, collected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled = [word.format(here=tmp_path, shards=collected / "shards") for word in command]
    if filled[0] == "collect":
        filled += ["--db", str(tmp_path / "new.db")]
    assert main(filled) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert message in lines[0]
    assert not list(tmp_path.glob("x*"))


def test_the_bundled_split_keeps_test_apart() -> None:
    split = load_split()
    keys = {part: {key for keys in held.values() for key in keys} for part, held in split.members.items()}
    assert len(keys[TRAIN]) >= 40
    assert len(split.members[TRAIN]) >= 6
    assert len(keys[TEST]) >= 20
    assert not keys[TEST] & (keys[TRAIN] | keys[VALIDATION])
    assert not keys[VALIDATION] & keys[TRAIN]
    assert set(split.members[TEST]) == {"resnet-50", "mobilenet-v2", "bert-base", "gpt2-small", "vit-base", "operators"}
    assert not split.signatures[TEST] & split.signatures[VALIDATION]


@pytest.mark.long
def test_no_training_workload_has_a_shape_of_test() -> None:
    """Extracted anew: a workload whose root op and loop sizes occur in test is in no other part."""
    from benchmarks.make_split import NETWORKS
    from tcl_iree.frontend import extract, load_model
    from tcl_iree.learning.split import signature
    from tcl_iree.target import Target

    split, target = load_split(), Target.parse("cpu,threads=1")
    for part in (TRAIN, VALIDATION):
        for name in NETWORKS[part]:
            listed = split.members[part][name]
            for entry in extract(load_model(f"zoo:{name}"), target).dispatches:
                if entry.workload.key in listed:
                    assert signature(entry.workload) not in split.signatures[TEST], entry.workload.label
