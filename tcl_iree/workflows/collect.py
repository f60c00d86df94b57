"""Collect measured programs to learn from: random schedules of many workloads, kept as they come."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from tcl_iree.database import Database, Trial, export_parquet, trial_uids
from tcl_iree.errors import MeasureError, OptionError
from tcl_iree.frontend import Dispatch
from tcl_iree.measure.builder import Builder
from tcl_iree.measure.runner import Runner
from tcl_iree.measure.timing import TimingPolicy
from tcl_iree.report.progress import Step, silent
from tcl_iree.search import Evolutionary, StrategyMaker
from tcl_iree.target import Target
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workflows.base_flags import choose_base, with_stack
from tcl_iree.workflows.data import Programs
from tcl_iree.workflows.dispatches import form_dispatches
from tcl_iree.workflows.layouts import CHANGE, KEEP
from tcl_iree.workflows.recorded_programs import (
    RecordedPrograms,
    RepeatedMeasuring,
    fresh_programs,
    recorded_programs,
)
from tcl_iree.workflows.workload_search import WorkloadSearch
from tcl_iree.workload.model import Workload

# Labels are learned from as they are, slow programs' too: only hopeless ones are given up early.
LABELLING = TimingPolicy(round_seconds=0.02, max_rounds=16, precision=0.015, patience=1.0, give_up_at=20.0)
_BATCH = 16
_SHARD_TRIALS = 500


@dataclass(frozen=True)
class CollectOptions:
    """What to collect.

    Attributes:
        budget: programs in all, those that earlier runs measured for the same networks and seed included; None for
            all there are.
        per_workload: programs of each distinct workload.
        evolved: share of them that come after the random ones: mostly children of the fastest, marked so, and some
            more random ones.
        base: flags to form the dispatches under, as in `tune`.
        layouts: `keep` those the networks have, or `change` them, as in `tune`.
        longest: leave out workloads whose default takes more seconds than this.
        workloads: of recorded programs: only so many workloads, those with the most programs; None for all.
        only: of recorded programs: only of workloads whose keys begin with one of these; of all if there are none.
        fresh: not the recorded programs themselves, but as many others of their workloads, drawn by chance.
        seed: the same seed and database give the same programs.

    Raises:
        OptionError: a value that means nothing.
    """

    budget: int | None = None
    per_workload: int = 128
    evolved: float = 0.2
    base: str = "plain"
    layouts: str = KEEP
    longest: float = 0.25
    workloads: int | None = None
    only: tuple[str, ...] = ()
    fresh: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.budget is not None and self.budget < 1:
            raise OptionError(f"the budget must be at least 1 program, not {self.budget}")
        if self.per_workload < 1:
            raise OptionError(f"programs per workload must be at least 1, not {self.per_workload}")
        if not 0 <= self.evolved < 1:
            raise OptionError(f"the evolved share must be from 0 to below 1, not {self.evolved:g}")
        if self.layouts not in (KEEP, CHANGE):
            raise OptionError(f"collecting can {KEEP} or {CHANGE} layouts, not {self.layouts!r}")
        if not self.longest > 0:
            raise OptionError(f"the longest default must be more than 0 seconds, not {self.longest:g}")
        if self.workloads is not None and self.workloads < 1:
            raise OptionError(f"there must be at least 1 workload, not {self.workloads}")


@dataclass(frozen=True)
class Collected:
    """What came of it.

    Attributes:
        programs: measured in this run; `failed` of them did not compile or were wrong.
        known: programs that the database had already.
        left: workloads or networks left out, and why.
        shards: files written.
    """

    programs: int
    failed: int
    known: int
    workloads: int
    seconds: float
    left: dict[str, str]
    shards: tuple[Path, ...]
    interrupted: bool


class Measuring(Protocol):
    """Programs of one workload that are measured a few at a time."""

    asked: int

    @property
    def label(self) -> str:
        """The workload's."""

    @property
    def default_seconds(self) -> float:
        """Time of IREE's default."""

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left to measure."""

    def step(self, count: int) -> Iterator[Trial]:
        """Measure so many more; yields each trial, also those known from before."""


def collect(
    networks: Sequence[str],
    target: Target,
    database: Database,
    options: CollectOptions,
    shards: Path | None = None,
    say: Step = silent,
) -> Collected:
    """Measure schedules of every workload of some networks, in turn, so that cutting it short leaves none untried.

    Args:
        networks: whatever `load_model` reads.
        shards: directory for Parquet files of what was measured; one is written every few hundred programs.
    """
    return _Collecting(target, database, options, shards, say).of_networks(networks)


def collect_recorded(
    sources: Sequence[Path],
    target: Target,
    database: Database,
    options: CollectOptions,
    shards: Path | None = None,
    say: Step = silent,
) -> Collected:
    """Measure recorded programs as they are, or others of the same workloads, under the flags they had there.

    Args:
        sources: databases, Parquet files, or directories of Parquet files.
        shards: as for `collect`.
    """
    each = None if options.fresh else options.per_workload
    with Programs(sources) as programs:
        found = recorded_programs(programs.database, each, options.workloads, options.only, options.seed)
    if options.fresh:
        say("drawing programs", total=len(found))
        drawn = []
        for entry in found:
            drawn.append(fresh_programs(entry, target, options.per_workload, options.seed))
            say(f"drew programs of {entry.workload.label}", 1)
        found = [entry for entry in drawn if entry.records]
    return _Collecting(target, database, options, shards, say).of_records(found)


Opened = TypeVar("Opened", bound=Measuring)


class _Collecting:
    def __init__(
        self, target: Target, database: Database, options: CollectOptions, shards: Path | None, say: Step
    ) -> None:
        target.require_runnable()
        self._target, self._database, self._options = target, database, options
        self._shards, self._say = shards, say
        self._left: dict[str, str] = {}
        self._unwritten = self._workloads = 0
        self._programs = self._failed = self._known = 0
        self._written: list[Path] = []
        self._started = time.monotonic()

    def of_networks(self, networks: Sequence[str]) -> Collected:
        if self._options.base == "auto":
            raise OptionError("collecting measures no flag sets to choose from: give --base one's name, such as plain")
        base = choose_base(self._options.base, self._target, None)
        flags = with_stack(base.flag_set, self._target).flags

        def measure() -> None:
            dispatches, self._left = form_dispatches(networks, self._target, base, self._options.layouts, self._say)
            with Builder(self._target, flags) as builder, Runner(self._target, LABELLING) as runner:
                wanted = round(self._options.per_workload * (1.0 - self._options.evolved))
                self._say("measuring IREE's default", total=len(dispatches))
                searches = self._open(dispatches, builder, runner, partial(Evolutionary, population=wanted))
                self._announce(searches, self._options.per_workload * len(searches))
                self._measure(searches, wanted)
                self._measure(searches, self._options.per_workload)

        return self._watched(measure)

    def of_records(self, records: Sequence[RecordedPrograms]) -> Collected:
        def measure() -> None:
            self._say("measuring IREE's default", total=len(records))
            with ExitStack() as stack:
                runner = stack.enter_context(Runner(self._target, LABELLING))
                flags = {entry.flags for entry in records}
                builders = {given: stack.enter_context(Builder(self._target, given)) for given in sorted(flags)}
                found = [self._repeated(entry, builders[entry.flags], runner) for entry in records]
                opened = [(entry, made) for entry, made in zip(records, found, strict=True) if made]
                self._announce([made for _, made in opened], sum(len(entry.records) for entry, _ in opened))
                self._measure([made for _, made in opened], self._options.per_workload)

        return self._watched(measure)

    def _watched(self, measure: Callable[[], None]) -> Collected:
        """Whatever happens, what was measured reaches a shard."""
        interrupted = False
        try:
            measure()
        except KeyboardInterrupt:
            interrupted = True
        finally:
            self._write_shard()
        return Collected(
            self._programs,
            self._failed,
            self._known,
            self._workloads,
            time.monotonic() - self._started,
            self._left,
            tuple(self._written),
            interrupted,
        )

    def _announce(self, searches: Sequence[Measuring], total: int) -> None:
        self._workloads = len(searches)
        self._say("measuring", total=min(total, self._options.budget or total))

    def _repeated(self, entry: RecordedPrograms, builder: Builder, runner: Runner) -> RepeatedMeasuring | None:
        def make() -> RepeatedMeasuring:
            return RepeatedMeasuring(entry, builder, runner, self._database)

        return self._usable(entry.workload, make)

    @property
    def _full(self) -> bool:
        return self._options.budget is not None and self._programs + self._known >= self._options.budget

    def _open(
        self, dispatches: Sequence[Dispatch], builder: Builder, runner: Runner, strategy: StrategyMaker
    ) -> list[WorkloadSearch]:
        records, seed = self._database.schedules(), self._options.seed
        searches = []
        for dispatch in dispatches:
            if not Space(dispatch.workload, self._target).families:
                self._left[_name(dispatch.workload)] = "no schedule family serves it"
                self._say(f"nothing to measure of {dispatch.workload.label}", 1)
                continue
            make = partial(WorkloadSearch, dispatch, builder, runner, self._database, records, strategy, seed)
            if search := self._usable(dispatch.workload, make):
                searches.append(search)
        return searches

    def _usable(self, workload: Workload, make: Callable[[], Opened]) -> Opened | None:
        """A workload's programs, its default measured; None if it is left out."""
        self._say(f"measuring IREE's default for {workload.label}")
        made: Opened | None = None
        try:
            made = make()
            if made.default_seconds > self._options.longest:
                self._left[_name(workload)] = f"IREE's default takes {made.default_seconds:.2g} s"
                made = None
        except MeasureError as error:
            self._left[_name(workload)] = str(error)
        self._say(f"measured IREE's default for {workload.label}", 1)
        return made

    def _measure(self, searches: Sequence[Measuring], wanted: int) -> None:
        while active := [search for search in searches if search.asked < wanted and not search.exhausted]:
            for search in active:
                if self._full:
                    return
                since = time.time()
                for trial in search.step(min(_BATCH, wanted - search.asked)):
                    if trial.created >= since:
                        self._programs += 1
                        self._failed += trial.status != "ok"
                        self._unwritten += 1
                    else:
                        self._known += 1
                    self._say(self._line(search), 1)
                    if self._full:
                        break
                if self._unwritten >= _SHARD_TRIALS:
                    self._write_shard()

    def _line(self, search: Measuring) -> str:
        rate = self._programs / max(1e-9, time.monotonic() - self._started)
        return f"{search.label}: {self._programs} new programs, {rate:.2f} a second"

    def _write_shard(self) -> None:
        """Everything of this target that no shard has yet: also what a run measured that was killed."""
        if not self._shards:
            return
        written = {uid for path in self._shards.glob("*.parquet") for uid in trial_uids(path)}
        new = [trial for trial in self._database.trials(target=self._target.key) if trial.uid not in written]
        if new:
            path = self._shards / f"{self._target.key}-{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:6]}.parquet"
            export_parquet(self._database, path, new)
            self._written.append(path)
        self._unwritten = 0


def _name(workload: Workload) -> str:
    return f"{workload.key} ({workload.label})"
