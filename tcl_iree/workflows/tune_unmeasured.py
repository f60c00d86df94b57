"""Tune for a device that is not here: build candidates, pack them for a machine that has it, and guess a library."""

from __future__ import annotations

import json
import time
from typing import Any

from tcl_iree.database import Database
from tcl_iree.errors import MeasureError
from tcl_iree.frontend import Dispatch, Model, extract
from tcl_iree.measure.builder import IREE_VERSION, Builder
from tcl_iree.measure.ptxas import find_ptxas
from tcl_iree.report.progress import Step
from tcl_iree.report.tune import BuiltCandidate, TuneReport, WorkloadRow
from tcl_iree.target import Target
from tcl_iree.transform_dialect.library import Tuned
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.workflows.base_flags import choose_base, with_stack
from tcl_iree.workflows.histories import dispatch_histories
from tcl_iree.workflows.jobs import Job
from tcl_iree.workflows.model_library import build_library
from tcl_iree.workflows.tune_options import TuneOptions
from tcl_iree.workflows.tuned import TuneResult, library_command, now
from tcl_iree.workflows.unmeasured import build_unmeasured, sample_schedules

_SPILLS = ("spill_stores", "spill_loads", "stack")
_IGNORED = (
    "candidates are drawn at random; strategy, cost model, time limit, layouts, scope, smallest share, seconds and "
    "again have no effect without the device"
)


def tune_unmeasured(
    model: Model, target: Target, database: Database, say: Step, options: TuneOptions, reason: str
) -> TuneResult:
    """Build `options.budget` candidates of each workload; what is best must be measured elsewhere.

    An interrupt ends the building; what was built by then is handed back.

    Args:
        reason: why nothing can run here.
    """
    started = time.monotonic()
    base = choose_base(options.base, target, None)
    flags = with_stack(base.flag_set, target).flags
    say(f"forming dispatches under {base.flag_set.name}")
    extraction = extract(model, target, flags)
    extraction.require_tunable()
    dispatches = extraction.dispatches[: options.top]
    built: dict[str, list[Job]] = {}
    left: dict[str, str] = {}
    tried: dict[str, int] = {}
    notes = [f"nothing was measured: {reason}", _IGNORED, _how_guessed(target)]
    say("building candidates", total=len(dispatches))
    with Builder(target, flags) as builder:
        try:
            for dispatch in dispatches:
                load = dispatch.workload
                say(f"building candidates of {load.label}")
                schedules = sample_schedules(load, builder, options.budget, options.seed)
                try:
                    built[load.key] = list(build_unmeasured(load, schedules, builder, database))
                except MeasureError as error:
                    left[load.key] = str(error)
                tried[load.key] = len(schedules)
                say(f"built candidates of {load.label}", 1)
        except KeyboardInterrupt:
            say("finishing with what was built; interrupt again to stop at once")
            notes.append(f"interrupted: candidates of {len(tried)} of {len(dispatches)} workloads were built")
            left |= {entry.workload.key: "interrupted before it was built" for entry in dispatches[len(tried) :]}
    guesses = {key: min(jobs, key=_spilled) for key, jobs in built.items() if jobs}
    library, problems = build_library(target, base, [_tuned(job) for job in guesses.values()])
    left |= problems
    jobs = tuple(job for entries in built.values() for job in entries)
    report = TuneReport(
        model=model.name,
        target=str(target),
        iree=IREE_VERSION,
        effort=options.effort,
        strategy="random",
        seed=options.seed,
        trials=options.budget,
        base=base.flag_set.name,
        base_flags=base.flag_set.flags,
        base_reason=base.reason,
        workloads=tuple(_row(entry, built, tried, guesses, left) for entry in dispatches),
        rows=(),
        best_flags=None,
        shipped=None,
        speedup=None,
        vs_plain=None,
        outputs="not checked",
        depends_on_input=None,
        command="",
        notes=tuple(notes),
        when=now(),
        seconds=time.monotonic() - started,
        candidates=tuple(BuiltCandidate(job.workload.label, str(_schedule(job)), _static(job)) for job in jobs),
        histories=dispatch_histories([dispatch.workload for dispatch in dispatches], library),
        library_command=library_command(model, library),
    )
    return TuneResult(report, library, None, target, model, {}, None, flags, jobs)


def _how_guessed(target: Target) -> str:
    """What the choice of the library's candidates rests on."""
    if target.kind == "cuda" and find_ptxas():
        chosen = "the candidate that spills least by ptxas"
    elif target.kind == "cuda":
        chosen = "just the first candidate, for want of ptxas (part of the CUDA toolkit), which tells what spills"
    else:
        chosen = "just the first candidate, as nothing tells them apart"
    return f"of each workload the library holds {chosen}, unmeasured: measure before you use it"


def _row(
    dispatch: Dispatch,
    built: dict[str, list[Job]],
    tried: dict[str, int],
    guesses: dict[str, Job],
    left: dict[str, str],
) -> WorkloadRow:
    load = dispatch.workload
    guess = guesses.get(load.key) if load.key not in left else None
    schedule = _schedule(guess) if guess else None
    return WorkloadRow(
        key=load.key,
        label=load.label,
        occurrences=dispatch.occurrences,
        default_seconds=None,
        share=0.0,
        tried=tried.get(load.key, 0),
        right=len(built.get(load.key, ())),
        schedule=str(schedule) if schedule else None,
        decisions=schedule.plain if schedule else {},
        speedup=None,
        error=None,
        status="unmeasured" if schedule else left.get(load.key, "no candidate was built"),
    )


def _schedule(job: Job) -> Schedule:
    return Schedule.from_plain(job.schedule.family, job.schedule.decisions)


def _tuned(job: Job) -> Tuned:
    return Tuned(job.workload, _schedule(job), job.schedule.script or "", None, measured=False)


def _static(job: Job) -> dict[str, Any] | None:
    return json.loads(job.built.static) if job.built.static else None


def _spilled(job: Job) -> int:
    """Bytes that did not fit into registers, where the assembler tells."""
    figures = _static(job) or {}
    return sum(int(figures.get(name, 0)) for name in _SPILLS)
