"""Measure a file of jobs where the device is, and take the results home.

Results are a small database beside the file of jobs: every trial is on disk once it is reported, a run that was cut off
goes on where it stopped, and merging twice adds nothing twice.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tcl_iree.database import UNMEASURED, Database, Trial
from tcl_iree.errors import JobError, MeasureError
from tcl_iree.measure.builder import IREE_VERSION
from tcl_iree.measure.runner import Runner
from tcl_iree.measure.timing import TimingPolicy
from tcl_iree.workflows.jobs import JobFile
from tcl_iree.workflows.trials import TrialSession
from tcl_iree.workload.model import Workload


def results_path(jobs: Path) -> Path:
    """Where the results of a file of jobs are kept: `x.jobs` gives `x.results.db`."""
    return jobs.with_name(f"{jobs.name.removesuffix('.jobs')}.results.db")


def pending(jobs: JobFile, results: Database) -> int:
    """Jobs that have no result yet."""
    done = _done(jobs, results)
    return sum((load.key, entry.sha) not in done for load in jobs.workloads for entry in jobs.schedules(load))


def run_jobs(
    jobs: JobFile,
    results: Database,
    leave_out: Callable[[Workload, MeasureError], None],
    policy: TimingPolicy | None = None,
) -> Iterator[Trial]:
    """Measure what has no result yet; yields each trial once it is on disk.

    Args:
        leave_out: told of each workload that cannot be measured, since IREE's default code for it does not run or is
            wrong; the others go on.

    Raises:
        TargetError: the target cannot run here.
    """
    jobs.target.require_runnable()
    done = _done(jobs, results)
    with Runner(jobs.target, policy) as runner:
        for workload in jobs.workloads:
            schedules = [entry for entry in jobs.schedules(workload) if (workload.key, entry.sha) not in done]
            if not schedules:
                continue
            try:
                yield from TrialSession(workload, jobs, runner, results).measure(schedules)
            except MeasureError as error:
                leave_out(workload, error)


def merge_results(path: Path, database: Database) -> int:
    """Take over results as ordinary trials; returns how many were new.

    Args:
        path: the results, whatever their name, or the file of jobs they lie beside.

    Raises:
        JobError: there are none.
    """
    found = results_path(path) if zipfile.is_zipfile(path) else path
    if not found.exists():
        raise JobError(f"no results at {found}; measure them first with `tcl-iree jobs run`")
    with Database(found, create=False) as results:
        return database.merge(results)


def _done(jobs: JobFile, results: Database) -> set[tuple[str, str]]:
    trials = results.trials(target=jobs.target.key, iree=IREE_VERSION, flags=" ".join(jobs.flags))
    return {(trial.workload, trial.schedule) for trial in trials if trial.status != UNMEASURED}
