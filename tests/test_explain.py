"""`tcl-iree explain` on a small database of real trials: some that work, some that fail."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import DATA

from tcl_iree.cli import main
from tcl_iree.database import Database, ScheduleRecord
from tcl_iree.errors import DatabaseError, LearningError, TargetError
from tcl_iree.features.tokens import Tokenizer
from tcl_iree.features.vocabulary import KINDS
from tcl_iree.frontend import extract, load_model
from tcl_iree.learning.groups import ratio_of
from tcl_iree.measure.builder import Builder
from tcl_iree.measure.runner import Runner
from tcl_iree.report.explain import explain_tables
from tcl_iree.report.explanation import Explanation
from tcl_iree.search import make_strategy
from tcl_iree.target import Target
from tcl_iree.transform_dialect.names import ENTRY
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workflows.explain import explain, measured_workloads, target_key
from tcl_iree.workflows.find_workload import find_workload
from tcl_iree.workflows.trials import TrialSession, workload_record
from tcl_iree.workload.model import Workload

MODEL = DATA / "matmul_bias_relu.mlir"
TRIED = 6
EMPTY = (
    "module attributes {transform.with_named_sequence} "
    "{ transform.named_sequence @__kernel_config(%x: !transform.any_op) { transform.yield } }"
)


@pytest.fixture(scope="module")
def path(
    matmul: Workload, target: Target, builder: Builder, runner: Runner, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Real trials: random schedules, a script that does nothing, and one that is no MLIR."""
    place = tmp_path_factory.mktemp("explain") / "trials.db"
    space = Space(matmul, target)
    asked = make_strategy("random", space, 0).ask(TRIED)
    records = [ScheduleRecord(entry.family, entry.plain, space.script(entry), ENTRY) for entry in asked]
    records += [ScheduleRecord("script", script=EMPTY), ScheduleRecord("script", script="nonsense")]
    with Database(place) as database:
        list(TrialSession(matmul, builder, runner, database).measure(records))
    return place


@pytest.fixture(scope="module")
def found(path: Path, matmul: Workload, target: Target) -> Explanation:
    with Database(path) as database:
        return explain(database, workload_record(matmul), target.key)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["explain", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_what_was_tried_is_ranked_and_counted(found: Explanation, path: Path) -> None:
    with Database(path) as database:
        right = {trial.schedule: trial for trial in database.trials() if trial.status == "ok"}
        names = {sha: record.family for sha, record in database.schedules().items()}
        ratios = sorted((ratio_of([trial]) for sha, trial in right.items() if names[sha] != "default"), reverse=True)
    assert found.tried == TRIED + 2
    assert found.right == len(found.top) == len(ratios)
    assert sorted((entry.ratio for entry in found.top), reverse=True) == ratios
    assert [entry.rank for entry in found.top] == list(range(1, found.right + 1))
    assert sum(family.tried for family in found.families) == found.tried
    assert {family.family for family in found.families} == set(names.values()) - {"default"}
    assert found.families[0].best == max(entry.best or 0.0 for entry in found.families)
    assert found.default_seconds
    assert found.default_seconds > 0


def test_what_failed_is_grouped_with_the_compilers_words(found: Explanation) -> None:
    failures = {group.kind: group for group in found.failures}
    assert {"no_match", "verify_error"} <= set(failures)
    assert "left the dispatch as IREE's default has it" in failures["no_match"].detail
    assert failures["verify_error"].detail
    assert failures["verify_error"].schedule.startswith("script ")
    assert sum(group.count for group in found.failures) == found.tried - found.right


def test_the_model_saw_the_rows_of_the_fastest(found: Explanation, matmul: Workload, target: Target) -> None:
    assert found.view
    assert 0.0 <= found.view.accuracy <= 1.0
    assert sorted(entry.predicted or 0 for entry in found.top) == list(range(1, found.right + 1))
    space = Space(matmul, target)
    winner = found.top[0].schedule
    schedule = next(entry for entry in make_strategy("random", space, 0).ask(TRIED) if str(entry) == winner)
    rows = Tokenizer(matmul, target).sequences([space.script(schedule)])
    assert [row.kind for row in found.view.tokens] == [KINDS[kind] for kind in rows.kinds[0, : rows.lengths[0]]]
    steps = [row for row in found.view.tokens if row.part == "step"]
    assert any(row.size and row.extent and row.size <= row.extent for row in steps)
    assert {row.part for row in found.view.tokens} == {"target and workload", "step", "leaves"}


def test_decisions_are_ordered_by_what_they_change(found: Explanation) -> None:
    spreads = [effect.spread for effect in found.decisions]
    assert spreads == sorted(spreads, reverse=True)
    best = found.top[0]
    family = [entry for entry in found.top if entry.family == best.family]
    for effect in found.decisions:
        assert sum(value.right for value in effect.values) == len(family)
        assert effect.values[0].best == max(entry.ratio for entry in family)
        assert len(effect.values) > 1


def test_values_are_told_as_schedules_tell_them() -> None:
    schedule = Schedule.of("packed", peel=True, tile=(4, 8), k=2)
    assert schedule.words == {"k": "2", "peel": "yes", "tile": "4x8"}
    assert str(schedule) == "packed k=2 peel=yes tile=4x8"


def test_tables_hold_it_all(found: Explanation) -> None:
    titles = [str(made.title) for made in explain_tables(found)]
    assert len(titles) == 4 + bool(found.decisions)
    few = replace(found, failures=(), decisions=(), view=None)
    assert len(explain_tables(few)) == 2


@pytest.mark.parametrize("name", ["{key}", "matmul 64x128x96 f32 +1", "64x128"])
def test_a_dispatch_is_found_by_key_or_label(
    name: str, path: Path, matmul: Workload, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [name.format(key=matmul.key[:5]), "--db", str(path), "--target", "cpu,threads=1", "--top", "2", "--json"]
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert said["key"] == matmul.key
    assert len(said["top"]) == 2
    assert said["view"]["tokens"][0]["kind"].startswith("target:")


def test_a_dispatch_is_found_by_its_place_in_a_model(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["1", "--network", str(MODEL), "--db", str(path), "--target", "cpu,threads=1"]
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "what failed, with an example" in out
    assert "the fastest as mamba reads it" in out


def test_alone_it_lists_what_can_be_explained(
    path: Path, matmul: Workload, target: Target, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "--db", str(path), "--target", "cpu,threads=1", "--json")
    assert code == 0
    (row,) = json.loads(out)
    assert (row["key"], row["tried"]) == (matmul.key, TRIED + 2)
    code, out, _ = run(capsys, "--db", str(path), "--target", target.key[:-2])
    assert matmul.label in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["matmul 64x128x69 f32 +1"], "close to it: {key} (matmul 64x128x96 f32 +1)"),
        (["zzzz"], "`tcl-iree explain` alone lists them"),
        (["{key}", "--target", "cpu:sse4,threads=1"], f"there are trials on {Target.parse('cpu,threads=1')}"),
        (["{key}", "--flags=--no-such-flag"], "choose with --target and --flags"),
        (["{key}", "--target", "tpu"], "unknown target 'tpu'"),
        (["--target", "cuda:sm_80"], "nothing in"),
        (["{key}", "--model", "missing"], "no checkpoint"),
        (["{key}", "--top", "0"], "at least 1"),
        (["{key}", "--db", "missing.db"], "no database at"),
        (["999", "--network", str(MODEL)], "no workload of matmul_bias_relu"),
    ],
)  # fmt: skip
def test_what_cannot_be_explained_is_one_clear_line(
    words: list[str], message: str, path: Path, matmul: Workload, capsys: pytest.CaptureFixture[str]
) -> None:
    key = matmul.key[:12]
    given = [word.format(key=key) for word in words]
    code, _, err = run(capsys, "--db", str(path), "--target", "cpu,threads=1", *given)
    assert code == 2
    assert message.format(key=key) in err
    assert len(err.strip().splitlines()) == 1


def test_several_that_are_meant_are_listed(path: Path, matmul: Workload, tmp_path: Path) -> None:
    with Database(path) as database, Database(tmp_path / "two.db") as two:
        two.merge(database)
        twin = replace(workload_record(matmul), key="0" * 16)
        with two.transaction():
            two.put_workloads([twin])
        with pytest.raises(DatabaseError, match="2 workloads are meant by 'matmul'"):
            find_workload(two, "matmul")
        assert find_workload(two, "0000").key == twin.key
        with pytest.raises(DatabaseError, match="tune it first"):
            explain(two, twin, Target.parse("cpu,threads=1").key)
        assert [row.key for row in measured_workloads(two, Target.parse("cpu,threads=1").key)] == [matmul.key]


def test_trials_of_another_version_are_told_without_a_model(path: Path, matmul: Workload, tmp_path: Path) -> None:
    key = Target.parse("cpu,threads=1").key
    with Database(path) as database, Database(tmp_path / "old.db") as old:
        trials = [replace(trial, iree="1.0", uid=f"old {trial.uid}") for trial in database.trials()]
        with old.transaction():
            old.put_workloads(database.workloads())
            old.put_schedules(list(database.schedules().values()))
            old.put_trials(trials)
        found = explain(old, workload_record(matmul), key)
        assert found.view is None
        assert "the trials are of IREE 1.0" in found.notes[0]
        assert all(entry.predicted is None for entry in found.top)
        old.merge(database)
        both = explain(old, workload_record(matmul), key)
        assert both.view
        assert both.notes == (f"{TRIED + 2} more schedules were tried with IREE 1.0, flags none",)


def test_where_nothing_worked_the_failures_are_told(
    path: Path, matmul: Workload, target: Target, tmp_path: Path
) -> None:
    with Database(path) as database, Database(tmp_path / "bad.db") as bad, bad.transaction():
        bad.put_workloads(database.workloads())
        bad.put_schedules(list(database.schedules().values()))
        bad.put_trials([trial for trial in database.trials() if trial.status != "ok"])
    with Database(tmp_path / "bad.db") as bad:
        found = explain(bad, workload_record(matmul), target.key)
        assert (found.right, found.top, found.default_seconds) == (0, (), None)
        assert found.notes == ("no cost model was asked: nothing worked",)
        assert len(explain_tables(found)) == 3
        assert measured_workloads(bad, target.key)[0].best is None


def test_a_dispatch_of_a_model_that_was_never_measured_says_so(path: Path, target: Target, tmp_path: Path) -> None:
    model = tmp_path / "other.mlir"
    model.write_text(MODEL.read_text().replace("64x", "32x"))
    network = extract(load_model(model), target)
    with Database(path) as database:
        with pytest.raises(DatabaseError, match="was never measured; tune or collect other"):
            find_workload(database, "1", network)
        with pytest.raises(DatabaseError, match="no workload of other"):
            find_workload(database, "matmul", network)


def test_a_target_is_named_or_given_by_its_key(path: Path, target: Target) -> None:
    with Database(path) as database:
        assert target_key("cpu,threads=1", database) == target.key
        assert target_key(target.key[:-3], database) == target.key
        with pytest.raises(TargetError, match="unknown target"):
            target_key("cpu-nothing", database)


def test_a_model_that_cannot_be_used_is_named(path: Path, matmul: Workload, target: Target) -> None:
    with Database(path) as database, pytest.raises(LearningError, match="no checkpoint"):
        explain(database, workload_record(matmul), target.key, model="missing")
