"""Tune without timing anything: the cost model picks every schedule, and each pick is run once to see that it is right.

A second or two a dispatch, against minutes for a search. How fast IREE's own code is, the model can only guess: where
it thinks that better than its picks, there is none; where that is good and the model does not see it, a pick may lose.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from tcl_iree.errors import LearningError, TclIreeError
from tcl_iree.frontend import Dispatch, Model
from tcl_iree.frontend.iree_compile import compile_model
from tcl_iree.learning.cost_model import CostModel
from tcl_iree.measure.builder import IREE_VERSION, Builder, Candidate
from tcl_iree.measure.runner import Runner
from tcl_iree.processes import scratch_directory
from tcl_iree.report.progress import Step
from tcl_iree.report.tune import TuneReport, WorkloadRow
from tcl_iree.search import Guided
from tcl_iree.target import Target
from tcl_iree.transform_dialect.library import Tuned
from tcl_iree.transform_dialect.names import ENTRY
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workflows.base_flags import choose_base, with_stack
from tcl_iree.workflows.flag_sets import PLAIN
from tcl_iree.workflows.guide import load_guide
from tcl_iree.workflows.histories import dispatch_histories
from tcl_iree.workflows.layouts import KEEP, formed, with_layouts
from tcl_iree.workflows.model_library import build_library
from tcl_iree.workflows.model_runs import ModelRuns
from tcl_iree.workflows.tune_options import TuneOptions
from tcl_iree.workflows.tuned import TuneResult, library_command, now, reproduce_command
from tcl_iree.workflows.whole_model import NOT_TOGETHER, Compiled, WholeModel

# A pick that fails is followed by the next best, so often.
_PICKS = 4
# IREE's own pipelines with other tile sizes. Of the recorded training and validation workloads that have whole scripts
# as well, their best was ahead by more than 5 % in one of thirty contractions and reductions, and half as fast in the
# mean: that a model thinks one of them the best of a thousand is mostly its mistake.
_SELDOM = "config"


@dataclass(frozen=True)
class _Pick:
    """What came of one workload: a schedule with its script, or why there is none."""

    schedule: Schedule | None
    script: str
    tried: int
    reason: str = ""


def tune_by_model(model: Model, target: Target, say: Step, options: TuneOptions) -> TuneResult:
    """Pick, check and compile; an interrupt leaves the remaining workloads to IREE.

    Raises:
        LearningError: there is no cost model to pick by.
    """
    started = time.monotonic()
    guide = load_guide(options.model)
    if isinstance(guide, str):
        raise LearningError(f"effort none picks by the cost model, and there is none to use: {guide}")
    base = choose_base(options.base, target, None)
    under = with_stack(base.flag_set, target)
    say(f"forming dispatches under {base.name}")
    notes = ["nothing was timed: the cost model picked every schedule, and each was run once to see that it is right"]
    changed = None
    if options.layouts != KEEP:
        try:
            changed = with_layouts(model, target, base)
        except TclIreeError as error:
            notes.append(f"with other layouts the model does not compile: {error}")
    base, extraction = changed or (base, formed(model, target, base))
    dispatches = extraction.dispatches[: options.top]
    picks: dict[str, _Pick] = {}
    say("picking schedules", total=len(dispatches))
    with Builder(target, under.flags) as builder, Runner(target) as runner:
        try:
            for dispatch in dispatches:
                say(f"picking a schedule for {dispatch.workload.label}")
                picks[dispatch.workload.key] = _pick(dispatch, builder, runner, guide.model, options.seed)
                say("picked", 1)
        except KeyboardInterrupt:
            say("finishing with what was picked; interrupt again to stop at once")
            notes.append(f"interrupted: schedules of {len(picks)} of {len(dispatches)} workloads were picked")
    left = {key: pick.reason for key, pick in picks.items() if not pick.schedule}
    parts = [
        Tuned(dispatch.workload, pick.schedule, pick.script, None, measured=False)
        for dispatch in dispatches
        if (pick := picks.get(dispatch.workload.key)) and pick.schedule
    ]
    library, problems = build_library(target, base, parts)
    left |= problems
    scratch = scratch_directory("tune")
    with ModelRuns(target) as runs:
        say("compiling the whole model", total=2)
        plain = Path(scratch.name) / f"{PLAIN.name}.vmfb"
        compile_model(model.path, target.compile_flags, plain)
        own = [Compiled(PLAIN.name, (), plain, 0.0)]
        whole = WholeModel(model, target, under, runs, Path(scratch.name), own, base.graph)
        say("compiling it with the schedules", 1)
        tuned = whole.tuned(library) if library.entries else None
        left |= {key: f"not used: {problem}" for key, problem in whole.problems.items()}
        made = whole.as_printed(tuned) if tuned else own[0] if base.graph else whole.base()
        say("done", 1)
    chosen = made.library or library.without(picks)
    shipped = {entry.key for entry in chosen.entries}
    left |= {part.workload.key: NOT_TOGETHER for part in parts if part.workload.key not in shipped | set(left)}
    report = TuneReport(
        model=model.name,
        target=str(target),
        iree=IREE_VERSION,
        effort=options.effort,
        strategy="model alone",
        seed=options.seed,
        trials=0,
        base=base.name,
        base_flags=base.flag_set.flags,
        base_reason=base.reason,
        workloads=tuple(_row(dispatch, picks.get(dispatch.workload.key), left) for dispatch in extraction.dispatches),
        rows=(),
        best_flags=None,
        shipped=made.name,
        speedup=None,
        vs_plain=None,
        outputs="agree",
        depends_on_input=whole.depends_on_input,
        command=reproduce_command(model, target, made),
        notes=tuple(notes),
        when=now(),
        seconds=time.monotonic() - started,
        histories=dispatch_histories([dispatch.workload for dispatch in dispatches], chosen),
        library_command=library_command(model, chosen),
    )
    return TuneResult(report, chosen, made.path, target, model, {made.name: made.path}, scratch)


def _pick(dispatch: Dispatch, builder: Builder, runner: Runner, model: CostModel, seed: int) -> _Pick:
    """The best by the model that compiles and is right."""
    load = dispatch.workload
    space = Space(load, builder.target)
    if not space.families:
        return _Pick(None, "", 0, "no schedule family serves it")
    reference = builder.build_default(load)
    if not reference.artifact:
        return _Pick(None, "", 0, "IREE's default does not compile by itself")
    chosen = _better(Space(load, builder.target, without=_SELDOM), model, seed) or _better(space, model, seed)
    if chosen is None:
        return _Pick(None, "", 0, "the space is empty")
    if not chosen:
        return _Pick(None, "", 0, "the cost model thinks IREE's default better")
    reason = ""
    for number, schedule in enumerate(chosen):
        script = space.script(schedule)
        (built,) = builder.build_many(load, [Candidate(script, ENTRY)])
        failure = built.failure
        if built.artifact:
            failure = runner.check(load, built.artifact, reference.artifact)
        if failure is None:
            return _Pick(schedule, script, number + 1)
        reason = f"none of {number + 1} picks was right: {failure.kind.value}"
    return _Pick(None, "", len(chosen), reason)


def _better(space: Space, model: CostModel, seed: int) -> list[Schedule] | None:
    """The schedules thought best, as far as they are thought better than IREE's default; None if there are none."""
    chosen = Guided(space, seed, model).best(_PICKS)
    if not chosen:
        return None
    default, *scores = model.predict(space.workload, space.target, [None, *chosen])
    return [schedule for schedule, score in zip(chosen, scores, strict=True) if score > default]


def _row(dispatch: Dispatch, pick: _Pick | None, left: dict[str, str]) -> WorkloadRow:
    load = dispatch.workload
    schedule = pick.schedule if pick and load.key not in left else None
    return WorkloadRow(
        key=load.key,
        label=load.label,
        occurrences=dispatch.occurrences,
        default_seconds=None,
        share=0.0,
        tried=pick.tried if pick else 0,
        right=int(bool(pick and pick.schedule)),
        schedule=str(schedule) if schedule else None,
        decisions=schedule.plain if schedule else {},
        speedup=None,
        error=None,
        status="unmeasured" if schedule else left.get(load.key, "nothing was tried"),
    )
