"""Collect measured programs to learn from: random schedules of many workloads, kept as they come."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tcl_iree.database import Database, export_parquet, trial_uids
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
from tcl_iree.workflows.dispatches import form_dispatches
from tcl_iree.workflows.layouts import CHANGE, KEEP
from tcl_iree.workflows.workload_search import WorkloadSearch

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
    target.require_runnable()
    return _Collecting(target, database, options, shards, say).run(networks)


class _Collecting:
    def __init__(
        self, target: Target, database: Database, options: CollectOptions, shards: Path | None, say: Step
    ) -> None:
        self._target, self._database, self._options = target, database, options
        self._shards, self._say = shards, say
        self._left: dict[str, str] = {}
        self._unwritten = 0
        self._programs = self._failed = self._known = 0
        self._written: list[Path] = []
        self._started = time.monotonic()

    def run(self, networks: Sequence[str]) -> Collected:
        if self._options.base == "auto":
            raise OptionError("collecting measures no flag sets to choose from: give --base one's name, such as plain")
        base = choose_base(self._options.base, self._target, None)
        flags = with_stack(base.flag_set, self._target).flags
        interrupted = False
        count = 0
        try:
            dispatches, self._left = form_dispatches(networks, self._target, base, self._options.layouts, self._say)
            with Builder(self._target, flags) as builder, Runner(self._target, LABELLING) as runner:
                wanted = round(self._options.per_workload * (1.0 - self._options.evolved))
                searches = self._open(dispatches, builder, runner, partial(Evolutionary, population=wanted))
                count = len(searches)
                total = self._options.per_workload * count
                self._say("measuring", total=min(total, self._options.budget or total))
                self._measure(searches, wanted)
                self._measure(searches, self._options.per_workload)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            self._write_shard()
        seconds = time.monotonic() - self._started
        return Collected(
            self._programs, self._failed, self._known, count, seconds, self._left, tuple(self._written), interrupted
        )

    @property
    def _full(self) -> bool:
        return self._options.budget is not None and self._programs + self._known >= self._options.budget

    def _open(
        self, dispatches: Sequence[Dispatch], builder: Builder, runner: Runner, strategy: StrategyMaker
    ) -> list[WorkloadSearch]:
        self._say("measuring IREE's default", total=len(dispatches))
        records, searches = self._database.schedules(), []
        for dispatch in dispatches:
            label = dispatch.workload.label
            name = f"{dispatch.workload.key} ({label})"
            self._say(f"measuring IREE's default for {label}")
            if not Space(dispatch.workload, self._target).families:
                self._left[name] = "no schedule family serves it"
            else:
                try:
                    search = WorkloadSearch(
                        dispatch, builder, runner, self._database, records, strategy, self._options.seed
                    )
                    if search.default_seconds > self._options.longest:
                        self._left[name] = f"IREE's default takes {search.default_seconds:.2g} s"
                    else:
                        searches.append(search)
                except MeasureError as error:
                    self._left[name] = str(error)
            self._say(f"measured IREE's default for {label}", 1)
        return searches

    def _measure(self, searches: Sequence[WorkloadSearch], wanted: int) -> None:
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

    def _line(self, search: WorkloadSearch) -> str:
        rate = self._programs / max(1e-9, time.monotonic() - self._started)
        return f"{search.dispatch.workload.label}: {self._programs} new programs, {rate:.2f} a second"

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
