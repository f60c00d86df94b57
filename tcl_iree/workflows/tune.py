"""Tune a model: find a schedule for each of its dispatches, hand back one library, and prove what it brings."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tcl_iree.database import Database, ScheduleRecord, default_database
from tcl_iree.errors import MeasureError, OptionError, TclIreeError
from tcl_iree.frontend import Dispatch, Extraction, Model, load_model
from tcl_iree.measure.builder import IREE_VERSION, Builder
from tcl_iree.measure.runner import Runner
from tcl_iree.measure.timing import TimingPolicy
from tcl_iree.occupied import OCCUPIED
from tcl_iree.processes import scratch_directory
from tcl_iree.report.bench import BenchReport
from tcl_iree.report.live import Show, unseen
from tcl_iree.report.progress import Step, silent
from tcl_iree.report.tune import NOT_SHIPPED, ModelRow, TuneReport, WorkloadRow
from tcl_iree.search import GUIDED, Strategy, make_strategy
from tcl_iree.target import Target
from tcl_iree.transform_dialect.library import Library, Tuned
from tcl_iree.workflows.base_flags import Base, choose_base, with_stack
from tcl_iree.workflows.bench import bench, bench_steps
from tcl_iree.workflows.finished import Finished
from tcl_iree.workflows.first_look import first_look
from tcl_iree.workflows.form import Form, choose_all
from tcl_iree.workflows.guide import load_guide
from tcl_iree.workflows.histories import dispatch_histories
from tcl_iree.workflows.layouts import CHANGE, KEEP, formed, untunable_seconds, with_layouts
from tcl_iree.workflows.model_library import build_library
from tcl_iree.workflows.model_runs import ModelRuns
from tcl_iree.workflows.promise import Rates
from tcl_iree.workflows.search_rounds import INTERRUPTED, search_rounds
from tcl_iree.workflows.similar import Similar
from tcl_iree.workflows.surroundings import Surroundings, placed, surroundings
from tcl_iree.workflows.tune_by_model import tune_by_model
from tcl_iree.workflows.tune_options import TuneOptions
from tcl_iree.workflows.tune_unmeasured import tune_unmeasured
from tcl_iree.workflows.tuned import TuneResult, library_command, now, reproduce_command
from tcl_iree.workflows.whole_model import NOT_TOGETHER, TUNED, Compiled, WholeModel, compiled_by_bench
from tcl_iree.workflows.workload_search import Winner, WorkloadSearch

_DEFAULT_WINS = "IREE's default is the best found"
_RETIMED = 8
# IREE's flag sets have to be put into an order; the fastest are timed again at the end, for all the time there is.
_FLAGS_TO_WITHIN = 0.01
# Trials a computation and layout, and share of the time, of the look that decides between layouts.
_LOOK, _LOOK_SHARE = 8, 0.4
# A trial has to be put into an order; the best are timed again, and then for longer.
_SEARCHING = TimingPolicy(round_seconds=0.02, max_rounds=12, precision=0.02, patience=0.7, give_up_at=1.4)
_RETIMING = TimingPolicy(patience=8.0)


def tune(
    source: Any,
    inputs: Sequence[Any] | None = None,
    target: str | Target = "cpu",
    database: Database | str | Path | None = None,
    say: Step = silent,
    show: Show = unseen,
    **options: Any,
) -> TuneResult:
    """Tune a model and compile it with what was found.

    Args:
        source: a torch module (with example `inputs`), or whatever `load_model` reads.
        target: where the model is to run; for a GPU that is not here, candidates are built and packed, not measured.
        database: trials go there, and those of earlier runs are used; the user's own by default.
        say: told what is going on.
        show: told how the dispatches stand.
        options: fields of `TuneOptions`.

    Returns:
        A result that can be called like the model, and saved.

    Raises:
        TclIreeError: with what is wrong and what to do.
    """
    wanted = TuneOptions(**options)
    place = Target.parse(target) if isinstance(target, str) else target
    missing = place.why_not_run()
    if missing and place.kind == "cpu":  # another CPU class cannot be tuned from here, and its code not be checked
        place.require_runnable()
    if missing and wanted.effort == "none":
        raise OptionError(
            f"effort none runs what it picks once, and nothing can run here ({missing}); take another effort: "
            "candidates are then packed for a machine that has the device"
        )
    say("importing the model")
    model = source if isinstance(source, Model) else load_model(source, inputs)
    with ExitStack() as stack:
        if not isinstance(database, Database):
            database = stack.enter_context(Database(database or default_database()))
        if missing:
            return tune_unmeasured(model, place, database, say, wanted, missing)
        if wanted.effort == "none":
            return tune_by_model(model, place, say, wanted)
        finished = Finished(database.path, model, place, wanted)
        if not wanted.again and (before := finished.load()):
            return before
        tuning = _Tuning(model, place, database, say, show, wanted)
        result = tuning.run()
        if result.module and not tuning.interrupted:
            finished.keep(result)
        return result


class _Tuning:
    """One run of the tuner, phase by phase."""

    def __init__(
        self, model: Model, target: Target, database: Database, say: Step, show: Show, options: TuneOptions
    ) -> None:
        self._model, self._target, self._database = model, target, database
        self._say, self._show, self._options = say, show, options
        self._scratch = scratch_directory("tune")
        self._directory = Path(self._scratch.name)
        self._started, self._occupied = time.monotonic(), OCCUPIED.seconds
        self._left: dict[str, str] = {}
        self._notes: list[str] = []
        self.interrupted = False
        self._around = Surroundings()
        self._looked = 0.0  # seconds of the search that went into layouts
        self._strategy = self._guided()  # a model that cannot be used is told of before anything is measured

    def run(self) -> TuneResult:
        options, target = self._options, self._target
        # A base that was asked for is tried first: if it is no good, that is known before the flag sets are compiled.
        asked = self._formed(choose_base(options.base, target, None)) if options.base != "auto" else None
        self._say("measuring IREE's own flag sets", total=bench_steps(target, options.scope))
        measured = bench(
            self._model, target, options.scope, options.seconds, self._say, self._directory, enough=_FLAGS_TO_WITHIN
        )
        form = asked or self._formed(choose_base("auto", target, measured))
        with Builder(target, with_stack(form.base.flag_set, target).flags) as builder:
            with Runner(target, _SEARCHING) as runner:
                form = self._laid_out(form, builder, runner)
                if not self.interrupted:
                    self._notes += self._search(form, options)
            self._left = form.left
            base, extraction, searches = form.base, form.extraction, form.searches
            with Runner(target, _RETIMING) as runner, ModelRuns(target) as runs:
                winners: dict[str, Winner] | None = None
                try:
                    winners = self._retime(searches, runner)
                    return self._finish(extraction, measured, base, searches, winners, runs)
                except KeyboardInterrupt:
                    self._notes.append("interrupted: there is a library, but no compiled model")
                except TclIreeError as error:  # what was found by then is worth keeping
                    self._notes.append(f"there is a library, but no compiled model: {error}")
                if winners is None:
                    self._notes.append("speed-ups are as the search saw them: the best were not timed again")
                    found = [search.searched_winner() for search in searches]
                    winners = {winner.workload.key: winner for winner in found if winner}
                return self._result(extraction, measured, base, searches, winners, None, None, [])

    def _formed(self, base: Base) -> Form:
        """The model's dispatches under some base flags and layouts."""
        self._say(f"forming dispatches under {base.name}")
        extraction = formed(self._model, self._target, base)
        # Decided once, so that layouts can be compared.
        self._around = surroundings(extraction, self._target)
        return Form(base, placed(extraction, self._around))

    # The search.

    def _laid_out(self, kept: Form, builder: Builder, runner: Runner) -> Form:
        """The model with the layouts it has or with others, whichever promises most after a short search of each."""
        wanted = self._options.layouts
        changed = [] if wanted == KEEP else self._changed(kept.base)
        forms = changed if changed and wanted == CHANGE else [kept, *changed]
        records = self._database.schedules()
        similar = self._similar(records, [kept, *changed])
        for form in forms:
            self._open_searches(form, records, similar, builder, runner)
        choose_all(forms, self._options)
        if len(forms) == 1:
            return forms[0]
        options = self._options
        limit = options.time_limit and _LOOK_SHARE * options.time_limit
        began = time.monotonic()
        if first_look([form.chosen for form in forms], min(_LOOK, options.budget), limit, self._say):
            self.interrupted = True
            self._notes.append(INTERRUPTED)
        self._looked = time.monotonic() - began
        for form in [] if self.interrupted else forms:
            self._weigh(form)
        rates = Rates.of([stand for form in forms for stand in form.stands])
        thought = [form.untunable + rates.promise(form.stands) for form in forms]
        each = [
            f"{1e3 * seconds:.3g} ms {f'under {form.base.layouts}' if form.base.graph else 'as the model has them'}"
            for form, seconds in zip(forms, thought, strict=True)
        ]
        self._notes.append(f"layouts: after a first look, dispatches are thought to come to {', to '.join(each)}")
        order = sorted(range(len(forms)), key=lambda index: (forms[index].unmeasured, thought[index]))
        return forms[order[0]]

    def _weigh(self, form: Form) -> None:
        """Time what cannot be searched; layouts under which that fails come last."""
        try:
            form.untunable = untunable_seconds(self._model, self._target, form.base, form.extraction, self._directory)
        except TclIreeError as error:
            form.unmeasured += 1
            self._notes.append(f"under {form.base.layouts or 'its own layouts'} the whole model was not timed: {error}")

    def _search(self, form: Form, options: TuneOptions) -> list[str]:
        """Search the dispatches of a form, and show how all of them stand."""

        def say(text: str, advance: int = 0, total: int | None = None) -> None:
            self._say(text, advance, total)
            self._show([search.standing for search in form.searches])

        notes = search_rounds(form.chosen, options, say, self._looked)
        self.interrupted |= INTERRUPTED in notes
        return notes

    def _changed(self, base: Base) -> list[Form]:
        """The model's dispatches with channels last, and filters whole or in panels; none where that cannot be."""
        found: list[Form] = []
        try:
            for cut in (False, True):
                self._say(f"forming dispatches under {base.name} with other layouts")
                changed = with_layouts(self._model, self._target, base, cut)
                if changed and not any(_same(changed[1], form.extraction) for form in found):
                    found.append(Form(changed[0], placed(changed[1], self._around)))
        except TclIreeError as error:
            self._notes.append(f"with other layouts the model does not compile: {error}")
        return found

    def _similar(self, records: Mapping[str, ScheduleRecord], forms: Sequence[Form]) -> Similar | None:
        """What to start from, the model's own workloads in all its forms left out; None where no model guides."""
        if self._options.strategy not in GUIDED:
            return None
        own = {dispatch.workload.key for form in forms for dispatch in form.extraction.dispatches}
        return Similar(self._database, records, self._target, own)

    def _open_searches(
        self,
        form: Form,
        records: Mapping[str, ScheduleRecord],
        similar: Similar | None,
        builder: Builder,
        runner: Runner,
    ) -> None:
        """One search for each workload, heaviest first."""
        extraction = form.extraction
        self._say("measuring IREE's default", total=len(extraction.dispatches))
        searches = []
        for dispatch in extraction.dispatches:
            self._say(f"measuring IREE's default for {dispatch.workload.label}")
            strategy = self._strategy
            if similar and (seeds := similar.schedules(dispatch.workload)):
                strategy = partial(strategy, seeds=seeds)
            try:
                searches.append(
                    WorkloadSearch(dispatch, builder, runner, self._database, records, strategy, self._options.seed)
                )
            except MeasureError as error:
                form.left[dispatch.workload.key] = str(error)
                form.unmeasured += 1
            self._say(f"measured IREE's default for {dispatch.workload.label}", 1)
        form.searches = sorted(searches, key=lambda search: -search.weight)

    def _guided(self) -> Callable[..., Strategy]:
        name = self._options.strategy
        if name not in GUIDED:
            return partial(make_strategy, name)
        guide = load_guide(self._options.model)
        if isinstance(guide, str):
            self._notes.append(f"the search went by measurements alone: {guide}")
            return partial(make_strategy, "evolutionary")
        return partial(make_strategy, name, model=guide.model)

    def _retime(self, searches: list[WorkloadSearch], runner: Runner) -> dict[str, Winner]:
        self._say("timing the best again", total=len(searches))
        winners = {}
        for search in searches:
            self._say(f"timing the best again: {search.dispatch.workload.label}")
            if search.dispatch.workload.key not in self._left:
                winner = search.retimed_winner(_RETIMED, runner)
                if winner:
                    winners[winner.workload.key] = winner
            self._say("timed", 1)
        return winners

    # The whole model.

    def _finish(
        self,
        extraction: Extraction,
        measured: BenchReport,
        base: Base,
        searches: list[WorkloadSearch],
        winners: dict[str, Winner],
        runs: ModelRuns,
    ) -> TuneResult:
        self._say("compiling the whole model", total=3)
        under = with_stack(base.flag_set, self._target)
        whole = WholeModel(
            self._model,
            self._target,
            under,
            runs,
            self._directory,
            compiled_by_bench(measured, self._directory),
            base.graph,
        )
        library = self._library(base, winners)
        tuned = whole.tuned(library) if library.entries else None
        for key, problem in whole.problems.items():
            self._left[key] = f"not used: {problem}"
        self._leave(winners, tuned, NOT_TOGETHER)
        candidates = []
        if tuned:
            untuned = whole.base()
            self._say("looking for schedules that hurt inside the model", 1)
            thinned = whole.without_harm(tuned, untuned, extraction.dispatches)
            # Layouts without their schedules are a trap: never to be shipped.
            alone = [] if base.graph else [untuned]
            candidates = [*alone, tuned, *([replace(thinned, name=f"{TUNED}, thinned")] if thinned else [])]
        self._say("timing the whole model", 1)
        rows = whole.compare(candidates, self._options.seconds)
        by_speed = [row.name for row in sorted(rows, key=lambda row: -row.vs_plain)]
        ours = {made.name: made for made in candidates if made.library}
        best = next((ours[name] for name in by_speed if name in ours), None)
        self._leave(winners, best, "its schedule does not help inside the model")
        shipped = self._ship(whole, by_speed[0], candidates)
        self._say("done", 1)
        return self._result(extraction, measured, base, searches, winners, shipped, whole, rows)

    def _leave(self, winners: dict[str, Winner], made: Compiled | None, reason: str) -> None:
        """Leave to IREE what a compiled model has no schedule for."""
        kept = {entry.key for entry in made.library.entries} if made and made.library else set()
        for key in set(winners) - kept - set(self._left):
            self._left[key] = reason

    def _ship(self, whole: WholeModel, fastest: str, candidates: list[Compiled]) -> Compiled:
        """The fastest way to compile the model; one of ours as compiled by the very command that users are given."""
        made = next((made for made in candidates if made.name == fastest), None) or whole.own(fastest)
        if made.library:
            self._say("compiling the module to ship")
            return whole.as_printed(made)
        self._notes.append(
            f"no schedule makes the whole model faster than IREE's own flags {fastest}: these are shipped"
        )
        self._notes.append(
            "the library holds the schedules that beat IREE's default one by one; the shipped module is without them"
            if any(other.library for other in candidates)
            else "the library is empty"
        )
        return made

    def _library(self, base: Base, winners: dict[str, Winner]) -> Library:
        library, problems = build_library(self._target, base, [_tuned(winner) for winner in winners.values()])
        self._left |= problems
        return library

    # The report.

    def _result(
        self,
        extraction: Extraction,
        measured: BenchReport,
        base: Base,
        searches: list[WorkloadSearch],
        winners: dict[str, Winner],
        shipped: Compiled | None,
        whole: WholeModel | None,
        rows: list[ModelRow],
    ) -> TuneResult:
        used = {key: winner for key, winner in winners.items() if key not in self._left}
        library = (shipped.library if shipped else None) or self._library(base, used)
        by_name = {row.name: row for row in rows}
        untuned = [row for row in rows if not row.name.startswith(TUNED)]
        best = max(untuned, key=lambda row: row.vs_plain, default=None)
        mine = by_name.get(shipped.name) if shipped else None
        taken, occupied = time.monotonic() - self._started, OCCUPIED.seconds - self._occupied
        report = TuneReport(
            model=self._model.name,
            target=str(self._target),
            iree=IREE_VERSION,
            effort=self._options.effort,
            strategy=self._options.strategy,
            seed=self._options.seed,
            trials=self._options.budget,
            base=base.name,
            base_flags=base.flag_set.flags,
            base_reason=base.reason,
            workloads=self._workload_rows(extraction, searches, winners, shipped),
            rows=tuple(rows),
            best_flags=best.name if best else measured.best,
            shipped=shipped.name if shipped else None,
            speedup=mine.vs_plain / best.vs_plain if mine and best else None,
            vs_plain=mine.vs_plain if mine else None,
            outputs="agree" if shipped else "not checked",
            depends_on_input=whole.depends_on_input if whole else None,
            command=reproduce_command(self._model, self._target, shipped) if shipped else "",
            notes=tuple(self._notes),
            when=now(),
            seconds=taken,
            flag_sets=measured.rows,
            histories=dispatch_histories(
                [search.dispatch.workload for search in searches],
                library,
                {search.dispatch.workload.key: search.tried for search in searches},
            ),
            library_command=library_command(self._model, library),
            overhead=1.0 - occupied / taken,
        )
        module, compiled = shipped.path if shipped else None, whole.compared if whole else {}
        return TuneResult(report, library, module, self._target, self._model, compiled, self._scratch)

    def _workload_rows(
        self,
        extraction: Extraction,
        searches: list[WorkloadSearch],
        winners: dict[str, Winner],
        shipped: Compiled | None,
    ) -> tuple[WorkloadRow, ...]:
        status = "tuned" if shipped and shipped.library else NOT_SHIPPED
        by_key = {search.dispatch.workload.key: search for search in searches}
        total = sum(search.weight for search in searches) or 1.0
        rows = [
            self._workload_row(entry, by_key.get(entry.workload.key), winners, total, status)
            for entry in extraction.dispatches
        ]
        return tuple(sorted(rows, key=lambda row: -row.share))

    def _workload_row(
        self, dispatch: Dispatch, search: WorkloadSearch | None, winners: dict[str, Winner], total: float, status: str
    ) -> WorkloadRow:
        key = dispatch.workload.key
        winner = winners.get(key)
        used = winner if key not in self._left else None
        tried, right = search.counts() if search else (0, 0)
        return WorkloadRow(
            key=key,
            label=dispatch.workload.label,
            occurrences=dispatch.occurrences,
            default_seconds=search.default_seconds if search else None,
            share=search.weight / total if search else 0.0,
            tried=tried,
            right=right,
            schedule=str(used.schedule) if used else None,
            decisions=used.schedule.plain if used else {},
            speedup=winner.speedup if winner else None,
            error=winner.timing.ratio_error if winner and winner.timing else None,
            status=status if used else self._left.get(key, _DEFAULT_WINS if tried else "nothing was tried"),
        )


def _same(one: Extraction, other: Extraction) -> bool:
    """Whether two ways to form a model's dispatches come to the same."""
    first, second = ({entry.workload.key for entry in made.dispatches} for made in (one, other))
    return first == second


def _tuned(winner: Winner) -> Tuned:
    return Tuned(winner.workload, winner.schedule, winner.record.script or "", winner.speedup, measured=True)
