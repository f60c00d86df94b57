"""Candidates built here, measured in another directory with an empty database, merged: the same records."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from conftest import DATA, QUICK, workload_of

from tcl_iree.cli import jobs as jobs_command
from tcl_iree.cli import main
from tcl_iree.database import UNMEASURED, Database
from tcl_iree.errors import JobError, MeasureError
from tcl_iree.measure.builder import Builder
from tcl_iree.measure.cache import artifact_sha
from tcl_iree.measure.results import Artifact, BuildResult
from tcl_iree.measure.runner import Runner
from tcl_iree.target import Target
from tcl_iree.transform_dialect.cpu_limits import STACK_FLAG
from tcl_iree.transform_dialect.schedule import Schedule as FamilySchedule
from tcl_iree.workflows import jobs as jobs_module
from tcl_iree.workflows.base_flags import with_stack
from tcl_iree.workflows.flag_sets import PLAIN
from tcl_iree.workflows.job_runs import merge_results, pending, results_path, run_jobs
from tcl_iree.workflows.jobs import Job, JobFile, pack_jobs
from tcl_iree.workflows.trials import TrialSession
from tcl_iree.workflows.unmeasured import build_unmeasured, sample_schedules
from tcl_iree.workload.model import Workload

MATMUL = (DATA / "matmul_bias_relu.mlir").read_text()
# What says which code was tried and what came of it; times differ from run to run.
SAME = ("workload", "target", "spec", "iree", "flags", "schedule", "status", "artifact", "reference", "static")


def usable(text: str) -> Target:
    target = Target.parse(text)
    if reason := target.why_not_run():
        pytest.skip(reason)
    return target


def refuse(workload: Workload, error: MeasureError) -> None:
    raise error


def packed(tmp_path: Path, target: Target, count: int) -> Path:
    workload = workload_of(MATMUL, tmp_path, target)
    path = tmp_path / "here" / "some.jobs"
    with Builder(target, cache=None) as builder, Database(tmp_path / "here" / "a.db") as database:
        schedules = sample_schedules(workload, builder, count, seed=1)
        built = list(build_unmeasured(workload, schedules, builder, database))
        assert {trial.status for trial in database.trials()} == {UNMEASURED}
        assert pack_jobs(path, target, [], built) == count
    return path


def identity(database: Database) -> list[dict[str, object]]:
    rows = [{name: asdict(trial)[name] for name in SAME} for trial in database.trials() if trial.status != UNMEASURED]
    return sorted(rows, key=lambda row: str(row["schedule"]))


@pytest.mark.parametrize("spec", ["cpu,threads=1", "vulkan"])
def test_packed_run_elsewhere_and_merged_gives_the_records_of_a_direct_run(tmp_path: Path, spec: str) -> None:
    target = usable(spec)
    path = packed(tmp_path, target, 3)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    there = Path(shutil.copy(path, elsewhere))
    jobs = JobFile(there)
    with Database(results_path(there)) as results:
        assert pending(jobs, results) == 3
        first = next(iter(run_jobs(jobs, results, refuse, QUICK)))  # cut off after one
        assert pending(jobs, results) == 2
        rest = list(run_jobs(jobs, results, refuse, QUICK))
        assert len(rest) == 2
        assert first.schedule not in {trial.schedule for trial in rest}
        assert list(run_jobs(jobs, results, refuse, QUICK)) == []
    with Database(tmp_path / "here" / "a.db") as home:
        assert pending(jobs, home) == 3  # what was only built is not done
    workload = workload_of(MATMUL, tmp_path, target)
    with (
        Database(tmp_path / "direct.db") as direct,
        Builder(target, cache=None) as builder,
        Runner(target, QUICK) as runner,
        Database(tmp_path / "here" / "a.db") as home,
    ):
        schedules = sample_schedules(workload, builder, 3, seed=1)
        assert len(list(TrialSession(workload, builder, runner, direct).measure(schedules))) == 3
        new = merge_results(results_path(there), home)
        assert new >= 4  # the default, too; once more after the cut
        assert merge_results(there, home) == 0
        renamed = Path(shutil.copy(results_path(there), elsewhere / "any.db"))
        assert merge_results(renamed, home) == 0
        merged = [row for index, row in enumerate(identity(home)) if row not in identity(home)[:index]]
        assert merged == identity(direct)
        assert {row["status"] for row in merged} == {"ok"}
        assert home.schedules().keys() >= direct.schedules().keys()
        assert home.workloads() == direct.workloads()


def test_a_workload_that_cannot_be_measured_does_not_stop_the_others(tmp_path: Path, target: Target) -> None:
    loads = [workload_of(MATMUL.replace("128", size), tmp_path, target) for size in ("112", "128")]
    path = tmp_path / "some.jobs"
    with Builder(target, cache=None) as builder, Database(tmp_path / "a.db") as database:
        bad, good = (
            list(build_unmeasured(load, sample_schedules(load, builder, 1, seed=1), builder, database))
            for load in loads
        )
    broken = BuildResult(Artifact(b"no code", artifact_sha(b"no code"), ""), None, 0.0)
    pack_jobs(path, target, [], [*(replace(job, default=broken) for job in bad), *good])
    left = {}
    with Database(results_path(path)) as results:
        trials = list(run_jobs(JobFile(path), results, lambda load, error: left.update({load.key: str(error)}), QUICK))
    assert [(trial.workload, trial.status) for trial in trials] == [(loads[1].key, "ok")]
    assert list(left) == [loads[0].key]
    assert "IREE's default" in left[loads[0].key]


def flipped(content: bytes, position: int) -> bytes:
    return content[:position] + bytes([content[position] ^ 0xFF]) + content[position + 1 :]


def test_damaged_and_foreign_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(tmp_path, Target.parse("cpu,threads=1"), 1)
    with pytest.raises(JobError, match="jobs pack"):
        JobFile(tmp_path / "missing.jobs")
    (tmp_path / "text.jobs").write_text("hello")
    with pytest.raises(JobError, match="not a file of jobs"):
        JobFile(tmp_path / "text.jobs")
    whole, refused = path.read_bytes(), []
    (tmp_path / "half.jobs").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(JobError, match="damaged"):
        JobFile(tmp_path / "half.jobs")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "changed.jobs", "w") as new:
        new.comment = old.comment
        for name in old.namelist():
            new.writestr(name, old.read(name)[:-1] if name.startswith("objects/") else old.read(name))
    with pytest.raises(JobError, match="changed since"):
        JobFile(tmp_path / "changed.jobs")
    for position in range(0, len(whole), max(1, len(whole) // 300)):
        (tmp_path / "flipped.jobs").write_bytes(flipped(whole, position))
        try:
            JobFile(tmp_path / "flipped.jobs")  # a byte that means nothing, such as of a date
        except JobError as error:
            refused.append(str(error))
    assert len(refused) > 200
    monkeypatch.setattr(jobs_module, "IREE_VERSION", "2.0")
    with pytest.raises(JobError, match=r"install that one"):
        JobFile(path)
    with Database(tmp_path / "a.db") as database, pytest.raises(JobError, match="jobs run"):
        merge_results(path, database)
    with pytest.raises(JobError, match="nothing to pack"):
        pack_jobs(tmp_path / "empty.jobs", Target.parse("cpu,threads=1"), [], [])


def cli(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TCL_IREE_DB": str(tmp_path / "cli.db"), "TCL_IREE_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "tcl_iree", "jobs", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_packed_under_the_flags_of_tune_run_and_merged_by_any_name(tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(MATMUL)
    path, results = tmp_path / "a b.jobs", tmp_path / "foo.db"
    done = cli(tmp_path, "pack", str(tmp_path / "model.mlir"), str(path), "--target=cpu,threads=1", "--trials=1")
    assert done.returncode == 0, done.stderr
    jobs = JobFile(path)
    assert jobs.flags == with_stack(PLAIN, jobs.target).flags == (STACK_FLAG,)
    (load,) = jobs.workloads
    (schedule,) = jobs.schedules(load)
    assert str(FamilySchedule.from_plain(schedule.family, schedule.decisions)) in done.stdout
    assert "tcl-iree jobs run 'a b.jobs'" in done.stdout
    done = cli(tmp_path, "run", str(path), "--results", str(results), "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [(trial["status"], trial["flags"]) for trial in said["trials"]] == [("ok", STACK_FLAG)]
    assert said["left_out"] == []
    done = cli(tmp_path, "merge", str(results), "--json")
    assert json.loads(done.stdout) == {"trials": 2}, done.stderr


def test_cuda_is_packed_without_a_gpu_with_what_ptxas_says(tmp_path: Path) -> None:
    if not shutil.which("ptxas"):
        pytest.skip("ptxas is not installed")
    (tmp_path / "model.mlir").write_text(MATMUL)
    path = tmp_path / "gpu.jobs"
    done = cli(tmp_path, "pack", str(tmp_path / "model.mlir"), str(path), "--target=cuda:sm_80", "--trials=4", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["jobs"] == 4
    assert all(entry["static"]["registers"] > 0 for entry in said["candidates"])
    with Database(tmp_path / "cli.db", create=False) as database:
        trials = database.trials()
    assert len(trials) == 5
    assert {trial.status for trial in trials} == {UNMEASURED}
    assert all(json.loads(trial.static or "{}")["registers"] > 0 for trial in trials)
    if Target.parse("cuda:sm_80").why_not_run():
        refused = cli(tmp_path, "run", str(path))
        assert refused.returncode == 2
        assert "cannot run here" in refused.stderr


def test_an_interrupted_pack_holds_what_was_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    two = "import torch\ndef build():\n"
    two += "    return torch.nn.Sequential(torch.nn.Linear(48, 96), torch.nn.Linear(96, 32)).eval(), (torch.randn(64, 48),)\n"
    (tmp_path / "two.py").write_text(two)
    begun: list[str] = []

    def once(workload: Workload, *others: object) -> Iterator[Job]:
        begun.append(workload.key)
        if len(begun) > 1:
            raise KeyboardInterrupt
        yield from build_unmeasured(workload, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(jobs_command, "build_unmeasured", once)
    arguments = ["jobs", "pack", f"{tmp_path / 'two.py'}:build", str(tmp_path / "two.jobs"), "--trials", "2"]
    assert main([*arguments, "--target", "cpu,threads=1", "--db", str(tmp_path / "a.db")]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert [load.key for load in JobFile(tmp_path / "two.jobs").workloads] == begun[:1]
