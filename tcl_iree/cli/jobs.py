"""`tcl-iree jobs`: build here, measure on another machine, take the results home."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tcl_iree.cli.common import (
    MODEL_HELP,
    add_command,
    add_database,
    add_flags,
    add_json,
    add_target,
    flags_of,
    parse_target,
    print_json,
)
from tcl_iree.database import Database, ScheduleRecord
from tcl_iree.errors import JobError, MeasureError
from tcl_iree.frontend import extract, load_model
from tcl_iree.measure.builder import Builder
from tcl_iree.report.progress import progress
from tcl_iree.report.static_figures import static_table
from tcl_iree.report.tables import console, table, trial_table
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.workflows.job_runs import merge_results, pending, results_path, run_jobs
from tcl_iree.workflows.jobs import Job, JobFile, pack_jobs
from tcl_iree.workflows.tuned import writable_directory
from tcl_iree.workflows.unmeasured import build_unmeasured, sample_schedules
from tcl_iree.workload.model import Workload


def register(commands: Any, summary: str) -> None:
    """Add the sub-command and its own."""
    parser = add_command(
        commands,
        "jobs",
        summary,
        "  tcl-iree jobs pack zoo:resnet-50 resnet.jobs --target cuda:sm_80 --trials 64\n"
        "  tcl-iree jobs run resnet.jobs                  # on the machine with the GPU; writes resnet.results.db\n"
        "  tcl-iree jobs merge resnet.results.db          # back here\n",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    summary = "Sample and build schedules of every dispatch of a model, and write them as one file."
    action = actions.add_parser("pack", help=summary, description=summary)
    action.add_argument("model", help=MODEL_HELP)
    action.add_argument("file", type=Path, help="the file to write, by habit NAME.jobs")
    add_target(action)
    add_flags(action)
    action.add_argument(
        "--trials", type=int, default=32, metavar="N", help="schedules for each dispatch (default %(default)s)"
    )
    action.add_argument("--seed", type=int, default=0, help="of the sampling (default %(default)s)")
    add_database(action)
    add_json(action)
    action.set_defaults(run=pack)
    summary = "Measure a file of jobs; goes on where an earlier run stopped."
    action = actions.add_parser("run", help=summary, description=summary)
    action.add_argument("file", type=Path, help="what `jobs pack` wrote")
    action.add_argument("--results", type=Path, metavar="FILE", help="where results go (default: NAME.results.db)")
    add_json(action)
    action.set_defaults(run=run)
    summary = "Take results over into the database."
    action = actions.add_parser("merge", help=summary, description=summary)
    action.add_argument("file", type=Path, help="NAME.results.db, or the file of jobs it lies beside")
    add_database(action)
    add_json(action)
    action.set_defaults(run=merge)


def pack(arguments: argparse.Namespace) -> int:
    """Build and write; an interrupt ends the building."""
    if arguments.trials < 1:
        raise JobError("--trials must be at least 1")
    writable_directory(arguments.file.parent)
    target = parse_target(arguments)
    flags = flags_of(arguments, target)
    jobs: list[Job] = []
    left: list[dict[str, str]] = []
    code = 0
    with progress(1, "importing the model") as step:
        extraction = extract(load_model(arguments.model), target, flags)
        extraction.require_tunable()
        with Database(arguments.db) as database, Builder(target, flags) as builder:
            step("building", total=len(extraction.dispatches))
            try:
                for entry in extraction.dispatches:
                    step(f"building {entry.workload.label}")
                    schedules = sample_schedules(entry.workload, builder, arguments.trials, arguments.seed)
                    try:
                        jobs += build_unmeasured(entry.workload, schedules, builder, database)
                    except MeasureError as error:
                        left.append(_left_out(entry.workload, error))
                    step(f"built {entry.workload.label}", advance=1)
            except KeyboardInterrupt:
                code = 130
                print("interrupted: what was built by then is packed", file=sys.stderr)
    _print_left_out(left)
    count = pack_jobs(arguments.file, target, flags, jobs)
    facts = [_facts(job) for job in jobs]
    if arguments.json:
        print_json({"file": str(arguments.file), "jobs": count, "left_out": left, "candidates": facts})
        return code
    rows = [(entry["label"], entry["schedule"], entry["static"]) for entry in facts]
    if target.kind == "cuda":
        console().print(static_table("what ptxas says", rows))
    else:
        console().print(table("candidates", ["workload", "schedule"], [row[:2] for row in rows]))
    command = shlex.join(["tcl-iree", "jobs", "run", arguments.file.name])
    print(f"{count} candidates written to {arguments.file}; measure them with\n  {command}")
    return code


def run(arguments: argparse.Namespace) -> None:
    """Measure and print."""
    jobs = JobFile(arguments.file)
    path = arguments.results or results_path(arguments.file)
    with Database(path) as results:
        rows = []
        left: list[dict[str, str]] = []
        names = {entry.sha: _named(entry) for load in jobs.workloads for entry in jobs.schedules(load)}
        labels = {load.key: load.label for load in jobs.workloads}
        with progress(pending(jobs, results), f"measuring on {jobs.target}") as step:
            for trial in run_jobs(jobs, results, lambda load, error: left.append(_left_out(load, error))):
                rows.append((f"{labels[trial.workload]}: {names[trial.schedule]}", trial))
                step(f"measured {labels[trial.workload]}", advance=1)
    _print_left_out(left)
    if arguments.json:
        print_json({"results": str(path), "left_out": left, "trials": [asdict(trial) for _, trial in rows]})
        return
    console().print(trial_table(f"{arguments.file} on {jobs.target}", rows))
    command = shlex.join(["tcl-iree", "jobs", "merge", path.name])
    print(f"{len(rows)} new results in {path}; take them home and run\n  {command}")


def merge(arguments: argparse.Namespace) -> None:
    """Merge and print how many trials were new."""
    with Database(arguments.db) as database:
        count = merge_results(arguments.file, database)
    if arguments.json:
        print_json({"trials": count})
    else:
        print(f"{count} new trials taken from {arguments.file}")


def _named(schedule: ScheduleRecord) -> str:
    """A schedule with its decisions, in a line."""
    return str(Schedule.from_plain(schedule.family, schedule.decisions))


def _left_out(workload: Workload, error: MeasureError) -> dict[str, str]:
    return {"workload": workload.key, "label": workload.label, "reason": str(error)}


def _print_left_out(left: list[dict[str, str]]) -> None:
    for entry in left:
        print(f"left out {entry['label']} ({entry['workload']}): {entry['reason']}", file=sys.stderr)


def _facts(job: Job) -> dict[str, Any]:
    static = json.loads(job.built.static) if job.built.static else None
    return {
        "workload": job.workload.key,
        "label": job.workload.label,
        "schedule": _named(job.schedule),
        "family": job.schedule.family,
        "decisions": job.schedule.decisions,
        "static": static,
    }
