"""The tuner from end to end on a model of two dispatches: it finds, proves, resumes, ships and runs."""

from __future__ import annotations

import hashlib
import html
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import QUICK
from processes import heed_interrupts

import tcl_iree
from tcl_iree.cli import main
from tcl_iree.database import UNMEASURED, Database, ScheduleRecord
from tcl_iree.errors import LearningError, MeasureError, ModelError, OptionError
from tcl_iree.features.steps import Candidate
from tcl_iree.frontend import Dispatch, extract, load_model
from tcl_iree.learning.checkpoint import Checkpoint
from tcl_iree.learning.floors import RandomModel
from tcl_iree.measure.builder import Builder
from tcl_iree.measure.results import Failure, FailureKind
from tcl_iree.measure.runner import Runner
from tcl_iree.report.bench import BenchReport, BenchRow
from tcl_iree.report.live import Standing
from tcl_iree.report.tune import ModelRow, tune_tables
from tcl_iree.search import make_strategy
from tcl_iree.search.random_search import RandomSearch
from tcl_iree.target import Target
from tcl_iree.transform_dialect.library import Tuned
from tcl_iree.transform_dialect.names import ENTRY
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workflows import guide, tune_by_model
from tcl_iree.workflows import tune as tuner
from tcl_iree.workflows.base_flags import Base, choose_base
from tcl_iree.workflows.jobs import JobFile
from tcl_iree.workflows.model_library import build_library
from tcl_iree.workflows.trials import TrialSession
from tcl_iree.workflows.tune_unmeasured import _how_guessed
from tcl_iree.workflows.tuned import TuneResult
from tcl_iree.workflows.unmeasured import build_unmeasured
from tcl_iree.workflows.whole_model import NOT_TOGETHER, WholeModel, compiled_by_bench
from tcl_iree.workflows.workload_search import WorkloadSearch
from tcl_iree.workload.model import Workload

# Strided 1x1 convolutions: IREE's default is scalar code, many times slower than what the families offer anywhere.
MODEL = """func.func @main(%a: tensor<1x32x28x28xf32>, %b: tensor<64x32x1x1xf32>, %c: tensor<48x64x1x1xf32>) -> tensor<1x48x7x7xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<1x64x14x14xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<1x64x14x14xf32>) -> tensor<1x64x14x14xf32>
  %p = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>} ins(%a, %b : tensor<1x32x28x28xf32>, tensor<64x32x1x1xf32>) outs(%f0 : tensor<1x64x14x14xf32>) -> tensor<1x64x14x14xf32>
  %e1 = tensor.empty() : tensor<1x48x7x7xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x48x7x7xf32>) -> tensor<1x48x7x7xf32>
  %q = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>} ins(%p, %c : tensor<1x64x14x14xf32>, tensor<48x64x1x1xf32>) outs(%f1 : tensor<1x48x7x7xf32>) -> tensor<1x48x7x7xf32>
  return %q : tensor<1x48x7x7xf32>
}
"""
OPTIONS = {"trials": 6, "scope": "quick", "seconds": 0.5, "base": "plain", "strategy": "random", "again": True}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tune") / "two_convolutions.mlir"
    path.write_text(MODEL)
    return path


@pytest.fixture(autouse=True)
def _quick_timing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuner, "_SEARCHING", QUICK)
    monkeypatch.setattr(tuner, "_RETIMING", QUICK)


@pytest.fixture(scope="module")
def database(model: Path) -> Path:
    return model.parent / "trials.db"


@pytest.fixture(scope="module")
def result(model: Path, database: Path) -> TuneResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuner, "_SEARCHING", QUICK)
        patch.setattr(tuner, "_RETIMING", QUICK)
        return tcl_iree.tune(model, target="cpu,threads=1", database=database, **OPTIONS)


def inputs(seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape, dtype=np.float32) for shape in ((1, 32, 28, 28), (64, 32, 1, 1), (48, 64, 1, 1))]


def expected(a: Any, b: Any, c: Any) -> Any:
    """What the model computes, of numpy's arrays or torch's."""
    first = (b[:, :, 0, 0] @ a[0, :, ::2, ::2].reshape(32, -1)).reshape(64, 14, 14)
    return (c[:, :, 0, 0] @ first[:, ::2, ::2].reshape(64, -1)).reshape(1, 48, 7, 7)


def test_the_result_runs_and_is_right(result: TuneResult) -> None:
    a, b, c = inputs()
    np.testing.assert_allclose(result(a, b, c), expected(a, b, c), rtol=1e-3, atol=1e-3)


def test_torch_in_torch_out(result: TuneResult) -> None:
    torch = pytest.importorskip("torch")
    a, b, c = map(torch.from_numpy, inputs(1))
    output = result(a, b, c)
    assert isinstance(output, torch.Tensor)
    torch.testing.assert_close(output, expected(a, b, c), rtol=1e-3, atol=1e-3)


def test_the_report_tells_what_was_done(result: TuneResult) -> None:
    report = result.report
    assert {row.label for row in report.workloads} == {"contraction 64x14x14x32 f32", "contraction 48x7x7x64 f32"}
    assert all(row.tried == 6 and row.right > 0 for row in report.workloads)
    assert abs(sum(row.share for row in report.workloads) - 1.0) < 1e-6
    assert report.outputs == "agree"
    assert report.depends_on_input
    assert {"plain", report.best_flags, report.shipped} <= {row.name for row in report.rows}
    assert result.library.entries
    assert {row.key for row in report.workloads if row.schedule} == {entry.key for entry in result.library.entries}
    wanted = "tuned" if (report.shipped or "").startswith("tuned") else "not shipped"
    assert {row.status for row in report.workloads if row.schedule} == {wanted}
    assert report.speedup == result.speedup
    assert report.overhead is not None
    assert 0.0 < report.overhead < 1.0
    assert "neither compiling nor measuring" in report.took
    assert all(entry.measured for entry in result.library.entries)


def test_the_report_tells_how_each_search_went(result: TuneResult, tmp_path: Path) -> None:
    report = result.report
    histories = {history.key: history for history in report.histories}
    assert set(histories) == {row.key for row in report.workloads}
    for row in report.workloads:
        tried = histories[row.key].tried
        assert [entry.number for entry in tried] == list(range(1, row.tried + 1))
        assert sum(entry.status == "ok" for entry in tried) == sum(bool(entry.ratio) for entry in tried) == row.right
        assert not any(entry.predicted for entry in tried), "random search predicts nothing"
    for entry in result.library.entries:
        assert histories[entry.key].script == entry.script
        assert "lowering_config" in histories[entry.key].default
    assert "--iree-codegen-transform-dialect-library=library.mlir" in report.library_command
    assert {"plain", "O2"} <= {row.name for row in report.flag_sets}
    place = result.save(tmp_path)
    written = json.loads((place / "report.json").read_text())
    assert written["histories"][0]["tried"][0]["number"] == 1
    page = (place / "report.html").read_text()
    assert html.escape(report.library_command) in page
    assert all(f'<details id="{key}"' in page for key in histories)
    assert all(html.escape(entry.script.strip()) in page for entry in result.library.entries)


def test_the_printed_command_makes_the_shipped_module_again(result: TuneResult, tmp_path: Path) -> None:
    place = result.save(tmp_path / "out")
    assert json.loads((place / "report.json").read_text())["model"] == "two_convolutions"
    assert "transform.named_sequence" in (place / "library.mlir").read_text()
    shipped = hashlib.sha256((place / "model.vmfb").read_bytes()).hexdigest()
    (place / "model.vmfb").unlink()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run(result.report.command, shell=True, cwd=place, check=True, env={**os.environ, "PATH": path})
    assert hashlib.sha256((place / "model.vmfb").read_bytes()).hexdigest() == shipped


def test_a_run_that_is_repeated_measures_no_schedule_again(result: TuneResult, model: Path, database: Path) -> None:
    with Database(database) as opened:
        before = {trial.uid for trial in opened.trials()}
    again = tcl_iree.tune(model, target="cpu,threads=1", database=database, **OPTIONS)
    with Database(database) as opened:
        new = [trial for trial in opened.trials() if trial.uid not in before]
        families = {opened.schedules()[trial.schedule].family for trial in new}
    assert families <= {"default"}
    assert [row.tried for row in again.report.workloads] == [6, 6]


def compare_as_if(factor: float) -> Callable[..., list[ModelRow]]:
    """The real comparison, but with the tuned rows so many times as fast as they are: which one wins is then sure."""
    real = WholeModel.compare

    def compare(self: WholeModel, *arguments: Any) -> list[ModelRow]:
        rows = real(self, *arguments)
        return [replace(row, vs_plain=row.vs_plain * factor) if "tuned" in row.name else row for row in rows]

    return compare


def test_a_model_that_is_faster_without_schedules_is_shipped_without(
    result: TuneResult, model: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WholeModel, "compare", compare_as_if(0.001))
    slow = tcl_iree.tune(model, target="cpu,threads=1", database=database, **OPTIONS)
    report = slow.report
    assert "plain+stack64k" in {row.name for row in report.rows}  # what the schedules were searched under
    assert report.shipped == report.best_flags
    assert report.speedup == 1.0
    assert any(f"IREE's own flags {report.shipped}: these are shipped" in note for note in report.notes)
    assert any("the shipped module is without them" in note for note in report.notes)
    assert "transform-dialect" not in report.command
    kept = {row.key for row in report.workloads if row.status == "not shipped"}
    assert kept == {entry.key for entry in slow.library.entries}
    assert kept
    assert "tuned" not in {row.status for row in report.workloads}
    assert "(not shipped)" in " ".join(str(cell) for cell in tune_tables(report)[0].columns[-1].cells)
    a, b, c = inputs()
    np.testing.assert_allclose(slow(a, b, c), expected(a, b, c), rtol=1e-3, atol=1e-3)


def test_a_failure_at_the_very_end_keeps_library_and_report(
    result: TuneResult, model: Path, database: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(self: WholeModel, *arguments: Any) -> list[ModelRow]:
        raise MeasureError("the compiled model does not run: it was killed")

    monkeypatch.setattr(WholeModel, "compare", fail)
    (tmp_path / "model.vmfb").write_text("of an earlier run")
    kept = tcl_iree.tune(model, target="cpu,threads=1", database=database, **OPTIONS)
    assert kept.report.shipped is None
    assert kept.report.outputs == "not checked"
    assert any("it was killed" in note for note in kept.report.notes)
    assert kept.library.entries
    assert {row.status for row in kept.report.workloads if row.schedule} == {"not shipped"}
    kept.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"library.mlir", "report.json", "report.html"}


def test_plain_without_a_time_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="no time to compare with"):
        compiled_by_bench(bench_report(im2col=1.0), tmp_path)


@pytest.fixture(scope="module")
def picked(model: Path) -> TuneResult:
    return tcl_iree.tune(model, target="cpu,threads=1", effort="none")


def test_without_any_effort_the_model_picks_and_nothing_is_timed(picked: TuneResult) -> None:
    report = picked.report
    assert report.trials == 0
    assert report.speedup is None
    assert not report.rows
    assert any("nothing was timed" in note for note in report.notes)
    assert picked.library.entries
    assert not any(entry.measured for entry in picked.library.entries)
    assert {row.status for row in report.workloads if row.schedule} == {"unmeasured"}
    assert report.outputs == "agree"
    assert report.depends_on_input
    a, b, c = inputs(3)
    np.testing.assert_allclose(picked(a, b, c), expected(a, b, c), rtol=1e-3, atol=1e-3)


def test_a_wrong_pick_is_found_and_the_next_one_taken(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = iter([Failure(FailureKind.WRONG_RESULT, "as if"), None])
    monkeypatch.setattr(Runner, "check", lambda *arguments: next(verdicts, None))
    row, *_ = tcl_iree.tune(model, target="cpu,threads=1", effort="none", top=1).report.workloads
    assert (row.tried, row.right, row.status) == (2, 1, "unmeasured")


def test_when_no_pick_is_right_the_default_is_shipped(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Runner, "check", lambda *arguments: Failure(FailureKind.WRONG_RESULT, "as if"))
    found = tcl_iree.tune(model, target="cpu,threads=1", effort="none")
    assert not found.library.entries
    statuses = [row.status for row in found.report.workloads]
    assert any("picks was right" in status for status in statuses), statuses
    assert all("picks was right" in status or "default better" in status for status in statuses), statuses
    a, b, c = inputs(3)
    np.testing.assert_allclose(found(a, b, c), expected(a, b, c), rtol=1e-3, atol=1e-3)


class Content(RandomModel):
    """A cost model that thinks nothing better than IREE's default."""

    def predict(self, workload: Workload, target: Target, candidates: Sequence[Candidate]) -> np.ndarray:
        return np.array([float(candidate is None) for candidate in candidates])


def test_where_the_model_thinks_the_default_best_it_stays(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune_by_model, "load_guide", lambda name: Checkpoint(Content(), (), (), {}))
    found = tcl_iree.tune(model, target="cpu,threads=1", effort="none")
    assert not found.library.entries
    assert all("thinks IREE's default better" in row.status for row in found.report.workloads)


def test_layouts_that_do_not_compile_are_done_without(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise ModelError("iree-compile crashed")

    monkeypatch.setattr(tune_by_model, "with_layouts", broken)
    found = tcl_iree.tune(model, target="cpu,threads=1", effort="none", top=1)
    assert any(
        "with other layouts the model does not compile: iree-compile crashed" in note for note in found.report.notes
    )
    assert found.module


def test_schedules_that_fail_only_together_are_shipped_in_part(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = WholeModel._try
    monkeypatch.setattr(
        WholeModel, "_try", lambda self, library: alone(self, library) if len(library.entries) == 1 else None
    )
    found = tcl_iree.tune(model, target="cpu,threads=1", effort="none")
    assert len(found.library.entries) == 1
    statuses = [row.status for row in found.report.workloads]
    assert statuses.count("unmeasured") == 1
    assert NOT_TOGETHER in statuses


def test_layouts_under_which_the_whole_model_cannot_be_timed_come_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    convolution, image = torch.nn.Conv2d(8, 32, 3), torch.randn(1, 8, 14, 14)

    def broken(model: object, target: object, base: Base, *others: object) -> float:
        if base.graph:
            raise MeasureError("it needs too much stack")
        return 0.0

    monkeypatch.setattr(tuner, "untunable_seconds", broken)
    options = OPTIONS | {"trials": 1, "top": 1, "layouts": "auto"}
    found = tcl_iree.tune(convolution, (image,), "cpu,threads=1", tmp_path / "a.db", **options)
    assert any("the whole model was not timed: it needs too much stack" in note for note in found.report.notes)
    assert found.module
    assert not found.library.graph


def test_a_guided_search_tunes_and_says_what_guided_it(model: Path, tmp_path: Path) -> None:
    options = OPTIONS | {"strategy": "guided", "trials": 4}
    shown: list[Sequence[Standing]] = []
    place = {"target": "cpu,threads=1", "database": tmp_path / "a.db"}
    found = tcl_iree.tune(model, **place, show=shown.append, **options)
    assert found.report.strategy == "guided"
    assert found.library.entries
    assert not any("measurements alone" in note for note in found.report.notes)
    predicted = [entry.predicted for history in found.report.histories for entry in history.tried if entry.predicted]
    assert predicted
    assert all(value > 0 for value in predicted)
    assert [entry.label for entry in shown[-1]] == [row.label for row in found.report.workloads]
    assert [entry.trials for entry in shown[-1]] == [row.tried for row in found.report.workloads]
    assert sum(entry.trials for entry in shown[0]) < sum(entry.trials for entry in shown[-1])


def test_a_shipped_model_that_does_not_fit_is_done_without(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guide, "BASE_PATH", tmp_path / "missing")
    options = OPTIONS | {"strategy": "guided", "trials": 1, "top": 1}
    found = tcl_iree.tune(model, target="cpu,threads=1", database=tmp_path / "a.db", **options)
    assert any("measurements alone" in note for note in found.report.notes)
    with pytest.raises(LearningError, match="there is none to use"):
        tcl_iree.tune(model, target="cpu,threads=1", effort="none")
    with pytest.raises(LearningError, match="no checkpoint"):
        tcl_iree.tune(model, target="cpu,threads=1", model=str(tmp_path / "mine"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "climbing"}, "guided, annealing, evolutionary, random"),
        ({"effort": "some"}, "none, quick, default, max"),
        ({"effort": "none", "trials": 8}, "tries nothing"),
        ({"scope": "every"}, "quick, standard, all"),
        ({"time_limit": 0.0}, "more than 0 seconds"),
        ({"time_limit": float("nan")}, "more than 0 seconds"),
        ({"trials": 0}, "at least 1"),
        ({"top": 0}, "at least 1"),
        ({"min_share": 1.5}, "from 0 to 1"),
        ({"seconds": -1.0}, "negative"),
    ],
)
def test_options_that_mean_nothing_are_refused(model: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        tcl_iree.tune(model, **options)


@pytest.mark.parametrize("base", ["fast", "--iree-no-such-flag"])
def test_a_wrong_base_is_refused_before_flag_sets_are_compiled(model: Path, tmp_path: Path, base: str) -> None:
    said: list[str] = []

    def say(text: str, advance: int = 0, total: int | None = None) -> None:
        said.append(text)

    with pytest.raises(ModelError, match="give auto" if base == "fast" else "no-such-flag"):
        tcl_iree.tune(model, target="cpu,threads=1", database=tmp_path / "a.db", say=say, **{**OPTIONS, "base": base})
    assert not [text for text in said if "flag sets" in text or text.startswith("compiling")]


def test_a_directory_that_cannot_be_written_is_refused_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["tune", str(tmp_path / "missing.mlir"), "-o", str(tmp_path / "file" / "out")]) == 2
    assert "cannot write to" in capsys.readouterr().err


@pytest.fixture(scope="module")
def dispatch(model: Path, target: Target) -> Dispatch:
    return extract(load_model(model), target).dispatches[0]


def opened(dispatch: Dispatch, builder: Builder, runner: Runner, database: Database) -> WorkloadSearch:
    return WorkloadSearch(dispatch, builder, runner, database, database.schedules(), RandomSearch, 0)


def test_what_was_only_built_is_measured_by_a_search(
    dispatch: Dispatch, builder: Builder, runner: Runner, tmp_path: Path
) -> None:
    space = Space(dispatch.workload, builder.target)
    asked = make_strategy("random", space, 0).ask(2)
    records = [ScheduleRecord(entry.family, entry.plain, space.script(entry), ENTRY) for entry in asked]
    with Database(tmp_path / "a.db") as database:
        list(build_unmeasured(dispatch.workload, records, builder, database))
        search = opened(dispatch, builder, runner, database)
        assert search.counts() == (0, 0)
        found = list(search.step(2))
        assert {trial.schedule for trial in found} == {record.sha for record in records}
        assert UNMEASURED not in {trial.status for trial in found}
        assert search.counts()[0] == 2
        assert opened(dispatch, builder, runner, database).counts() == search.counts()


def test_a_disturbed_default_is_not_what_the_search_goes_by(
    dispatch: Dispatch, builder: Builder, runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every trial times the default again."""
    with Database(tmp_path / "a.db") as database:
        search = opened(dispatch, builder, runner, database)
        disturbed = replace(search.default, p50=10.0, reference_p50=10.0, calm=False)
        monkeypatch.setattr(WorkloadSearch, "default", property(lambda self: disturbed))
        assert search.default_seconds == 10.0, "nothing else is known"
        beside = [
            replace(trial, calm=number != 1) for number, trial in enumerate(search.step(3)) if trial.reference_p50
        ]
        search._known = {trial.uid: trial for trial in beside}
        calm = [trial.reference_p50 for trial in beside if trial.calm]
        assert calm
        assert search.default_seconds == np.median(calm)


def test_scripts_measured_by_hand_do_not_win(
    dispatch: Dispatch, builder: Builder, runner: Runner, tmp_path: Path
) -> None:
    space = Space(dispatch.workload, builder.target)
    scripts = [ScheduleRecord("script", {}, space.script(entry)) for entry in make_strategy("random", space, 0).ask(4)]
    with Database(tmp_path / "a.db") as database:
        session = TrialSession(dispatch.workload, builder, runner, database)
        assert "ok" in {trial.status for trial in session.measure(scripts)}
        search = opened(dispatch, builder, runner, database)
        assert search.best(4) == []
        assert search.counts() == (0, 0)


def test_a_schedule_that_no_library_takes_leaves_the_others(model: Path, target: Target) -> None:
    good, bad = (entry.workload for entry in extract(load_model(model), target).dispatches)
    space = Space(good, target)
    (schedule,) = make_strategy("random", space, 0).ask(1)
    foreign = "module attributes {transform.with_named_sequence} { transform.named_sequence @mine(%x: !transform.any_op) { transform.yield } }"
    parts = [Tuned(good, schedule, space.script(schedule)), Tuned(bad, schedule, foreign)]
    library, problems = build_library(target, choose_base("plain", target, None), parts)
    assert [entry.key for entry in library.entries] == [good.key]
    assert list(problems) == [bad.key]


def test_the_command_prints_a_table_and_saves(
    model: Path, database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--scope", "quick", "--seconds", "0.5", "--trials", "2", "--base", "plain", "--top", "1"]
    place = ["--target", "cpu,threads=1", "--db", str(database), "-o", str(tmp_path / "out")]
    assert main(["tune", str(model), *words, *place]) == 0
    printed = capsys.readouterr()
    assert "contraction 64x14x14x32 f32" in printed.out
    assert "not among the 1 heaviest" in printed.out
    assert "iree-compile" in printed.out
    assert printed.err == ""
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"library.mlir", "model.vmfb", "report.json", "report.html"}


def test_an_interrupt_keeps_the_best_so_far(model: Path, tmp_path: Path) -> None:
    words = ["--scope", "quick", "--seconds", "0.5", "--trials", "2000", "--base", "plain", "--target", "cpu,threads=1"]
    place = ["--db", str(tmp_path / "a.db"), "-o", str(tmp_path / "out"), "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tcl_iree", "tune", str(model), *words, *place],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    try:
        deadline = time.monotonic() + 120
        while _trials(tmp_path / "a.db") < 6 and time.monotonic() < deadline:
            time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    report = json.loads(out)
    assert "the search was interrupted" in report["notes"]
    assert report["outputs"] == "agree"
    assert (tmp_path / "out" / "library.mlir").exists()


def _trials(path: Path) -> int:
    if not path.exists():
        return 0
    with Database(path) as database:
        return len(database.trials())


def test_without_the_device_candidates_are_packed_and_nothing_is_claimed(model: Path, tmp_path: Path) -> None:
    target = Target.parse("cuda:sm_80")
    if not target.why_not_run():
        pytest.skip("this machine has the device")
    result = tcl_iree.tune(model, target=target, database=tmp_path / "a.db", trials=4)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model.vmfb").write_text("of an earlier run")
    place = result.save(tmp_path / "out")
    written = json.loads((place / "report.json").read_text())
    assert [entry["static"] for entry in written["candidates"]] == [entry.static for entry in result.report.candidates]
    assert any("have no effect without the device" in note for note in written["notes"])
    jobs = JobFile(place / "candidates.jobs")
    assert {load.label for load in jobs.workloads} == {
        row.label for row in result.report.workloads if row.status == "unmeasured"
    }
    assert len(result.report.candidates) == sum(row.right for row in result.report.workloads) > 0
    assert result.speedup is None
    assert result.library.entries
    assert not any(entry.measured for entry in result.library.entries)
    assert not (place / "model.vmfb").exists()
    with pytest.raises(MeasureError, match="nothing was measured"):
        result(*inputs())


def test_nothing_can_be_picked_by_the_model_alone_without_the_device(model: Path, tmp_path: Path) -> None:
    target = Target.parse("cuda:sm_80")
    if not target.why_not_run():
        pytest.skip("this machine has the device")
    with pytest.raises(OptionError, match="take another effort"):
        tcl_iree.tune(model, target=target, database=tmp_path / "a.db", effort="none")


def test_an_interrupt_without_the_device_keeps_what_was_built(model: Path, tmp_path: Path) -> None:
    target = Target.parse("cuda:sm_80")
    if not target.why_not_run():
        pytest.skip("this machine has the device")
    begun: list[str] = []

    def say(text: str, advance: int = 0, total: int | None = None) -> None:
        if text.startswith("building candidates of"):
            begun.append(text)
            if len(begun) == 2:
                raise KeyboardInterrupt

    result = tcl_iree.tune(model, target=target, database=tmp_path / "a.db", say=say, trials=2)
    assert "interrupted: candidates of 1 of 2 workloads were built" in result.report.notes
    assert [row.tried for row in result.report.workloads] == [2, 0]
    assert [row.status for row in result.report.workloads] == ["unmeasured", "interrupted before it was built"]
    assert (result.save(tmp_path / "out") / "candidates.jobs").exists()
    assert len(result.library.entries) == 1


def test_the_choice_of_unmeasured_candidates_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assembler = tmp_path / "ptxas"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "for want of ptxas" in _how_guessed(Target.parse("cuda:sm_80"))
    assembler.touch(mode=0o755)
    assert "spills least" in _how_guessed(Target.parse("cuda:sm_80"))
    assert "nothing tells them apart" in _how_guessed(Target.parse("vulkan"))


def bench_report(**medians: float) -> BenchReport:
    flags = {"plain": (), "im2col": ("--im2col",), "data-tiling": ("--iree-opt-data-tiling",)}
    rows = tuple(BenchRow(name, flags[name], "ok", 1.0, median) for name, median in medians.items())
    return BenchReport("m", "cpu", "quick", rows, min(medians, key=lambda name: medians[name]), True, {})


def test_the_base_is_the_fastest_flag_set_that_leaves_something_to_tune(target: Target) -> None:
    fast = {"plain": 3.0, "im2col": 1.0, "data-tiling": 0.5}
    report = bench_report(**fast)
    assert choose_base("auto", target, report).flag_set.name == "im2col"
    close = bench_report(plain=1.0, im2col=0.98)
    assert choose_base("auto", target, close).flag_set.name == "plain"
    assert choose_base("--iree-opt-level=O2 --x", target, None).flag_set.flags == ("--iree-opt-level=O2", "--x")
    assert choose_base("O3+im2col", target, None).flag_set.flags[0] == "--iree-opt-level=O3"
    with pytest.raises(ModelError, match="give auto"):
        choose_base("fast", target, None)


def test_a_result_without_a_module_says_so(result: TuneResult) -> None:
    empty = TuneResult(result.report, result.library, None, Target.parse("cpu"), result._model, {}, None)
    with pytest.raises(MeasureError, match="tune again"):
        empty(*inputs())
