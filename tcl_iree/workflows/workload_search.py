"""Search the schedules of one workload: ask a strategy, measure what is new, remember everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tcl_iree.database import UNMEASURED, Database, ScheduleRecord, Trial, usual_default
from tcl_iree.errors import ScheduleError
from tcl_iree.frontend import Dispatch
from tcl_iree.measure.builder import IREE_VERSION, Builder, Candidate
from tcl_iree.measure.results import Artifact, Timing
from tcl_iree.measure.runner import Runner
from tcl_iree.report.history import TriedSchedule
from tcl_iree.report.live import Standing
from tcl_iree.search import Outcome, StrategyMaker
from tcl_iree.transform_dialect.families import FAMILIES
from tcl_iree.transform_dialect.names import ENTRY
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workflows.trials import TrialSession
from tcl_iree.workload.model import Workload

# A schedule that its family could not write: there is nothing to build.
_NO_SCRIPT = "no_script"
# A gain smaller than this is not told from noise, whatever its standard error says.
_MARGIN = 0.02


@dataclass(frozen=True)
class Winner:
    """The best schedule of a workload.

    Attributes:
        speedup: default's time over its time; from a fresh interleaved run if `timing` is set, else from the search.
    """

    workload: Workload
    record: ScheduleRecord
    speedup: float
    timing: Timing | None

    @property
    def schedule(self) -> Schedule:
        """The schedule as a value."""
        return Schedule.from_plain(self.record.family, self.record.decisions)


class WorkloadSearch:
    """One workload of a model under search.

    Trials that the database has already, with the same default beside them, are told to the strategy and not measured
    again: the same seed takes the same way, so a run that was cut off goes on where it stopped. What was only built
    counts as not tried. Scripts that were measured by hand are left alone: a library takes what families write.

    Args:
        records: the schedules the database has, by their hash.

    Raises:
        MeasureError: IREE's default for the workload cannot be built, run or trusted.
    """

    def __init__(
        self,
        dispatch: Dispatch,
        builder: Builder,
        runner: Runner,
        database: Database,
        records: Mapping[str, ScheduleRecord],
        strategy: StrategyMaker,
        seed: int,
    ) -> None:
        self.dispatch, self._builder, self._database = dispatch, builder, database
        self._session = TrialSession(dispatch.workload, builder, runner, database)
        self._space = Space(dispatch.workload, builder.target)
        self._strategy = strategy(self._space, seed)
        families = {family.name for family in FAMILIES}
        self._records = {sha: record for sha, record in records.items() if record.family in families}
        self._known = {trial.schedule: trial for trial in self._trials()}
        self._tried: list[TriedSchedule] = []
        self._batches = 0
        self.asked = 0
        self.exhausted = not self._space.families

    @property
    def label(self) -> str:
        """The workload's."""
        return self.dispatch.workload.label

    @property
    def default(self) -> Trial:
        """IREE's default, as measured first."""
        return self._session.default

    @property
    def default_seconds(self) -> float:
        """Time of IREE's default, which every trial takes again."""
        return usual_default([self.default, *self._known.values()])

    @property
    def weight(self) -> float:
        """Seconds one inference spends in this workload by default."""
        return self.dispatch.occurrences * self.default_seconds

    @property
    def tried(self) -> tuple[TriedSchedule, ...]:
        """What this search asked for and what came of it, in order."""
        return tuple(self._tried)

    @property
    def standing(self) -> Standing:
        """How the search stands."""
        right = [trial for trial in self._known.values() if trial.ratio]
        full = [trial for trial in right if not trial.stopped_early] or right
        return Standing(
            self.label,
            self.dispatch.occurrences,
            self.default_seconds,
            max((trial.ratio or 0.0 for trial in full), default=None),
            len(self._known),
        )

    def step(self, count: int) -> Iterator[Trial]:
        """Try `count` more schedules; yields each trial, also those known from before."""
        asked = self._strategy.ask(count)
        self.asked += len(asked)
        self._batches += 1
        self.exhausted = len(asked) < count
        records = {schedule: self._record(schedule) for schedule in asked}
        self._records |= {record.sha: record for record in records.values() if record}
        new = [record for record in records.values() if record and record.sha not in self._known]
        for schedule, record in records.items():
            if record is None:
                self._note(schedule, None)
            elif record not in new:
                self._note(schedule, self._known[record.sha])
                yield self._known[record.sha]
        by_sha = {record.sha: schedule for schedule, record in records.items() if record}
        origins = {sha: self._strategy.origin(schedule) for sha, schedule in by_sha.items()}
        for trial in self._session.measure(new, origins):
            self._known[trial.schedule] = trial
            self._note(by_sha[trial.schedule], trial)
            yield trial
        # Told in the order of asking, whatever was known before: the next proposals must not depend on that.
        for schedule, record in records.items():
            known = self._known[record.sha] if record else None
            self._strategy.tell(schedule, Outcome(known.ratio if known else None, known.artifact if known else None))

    def best(self, count: int) -> list[Trial]:
        """The fastest trials of families in the database, one for each distinct code."""
        codes: dict[str, Trial] = {}
        for trial in self._trials():
            if trial.status == "ok" and trial.ratio and trial.artifact and not trial.stopped_early:
                kept = codes.get(trial.artifact)
                if kept is None or trial.ratio > (kept.ratio or 0.0):
                    codes[trial.artifact] = trial
        codes.pop(self._session.reference.sha, None)
        return sorted(codes.values(), key=lambda trial: -(trial.ratio or 0.0))[:count]

    def best_ratio(self) -> float:
        """Default's time over that of the fastest so far; 0 if nothing worked."""
        return max((trial.ratio or 0.0 for trial in self.best(1)), default=0.0)

    def found_ratio(self) -> float:
        """The same of what this search has asked for, whatever else is known."""
        return max((entry.ratio or 0.0 for entry in self._tried), default=0.0)

    def counts(self) -> tuple[int, int]:
        """Schedules tried in all, and how many of them gave a right result."""
        tried = {trial.schedule: trial.status for trial in self._trials()}
        return len(tried), sum(status == "ok" for status in tried.values())

    def retimed_winner(self, count: int, runner: Runner) -> Winner | None:
        """Time the best `count` beside the default in one fresh run; the fastest of them, if it beats the default.

        The fastest of many noisy measurements looks faster than it is; the fastest of a few long ones far less so.
        """
        workload = self.dispatch.workload
        found = [self._records[trial.schedule] for trial in self.best(count)]
        built = self._builder.build_many(workload, [Candidate(entry.script or "", entry.entry) for entry in found])
        usable: list[tuple[ScheduleRecord, Artifact]] = [
            (record, result.artifact) for record, result in zip(found, built, strict=True) if result.artifact
        ]
        results = runner.compare(workload, [artifact for _, artifact in usable], self._session.reference)
        timed = [(result.timing, record) for (record, _), result in zip(usable, results, strict=True) if result.timing]
        if not timed:
            return None
        timing, record = max(timed, key=lambda entry: entry[0].ratio)
        if timing.ratio < 1.0 + max(_MARGIN, 2.0 * (timing.ratio_error or 0.0)):
            return None
        return Winner(workload, record, timing.ratio, timing)

    def searched_winner(self) -> Winner | None:
        """The best as the search saw it, for when there is no time for a fresh run."""
        best = self.best(1)
        if not best or (best[0].ratio or 0.0) < 1.0 + _MARGIN:
            return None
        return Winner(self.dispatch.workload, self._records[best[0].schedule], best[0].ratio or 0.0, None)

    def _note(self, schedule: Schedule, trial: Trial | None) -> None:
        status, ratio = (trial.status, trial.ratio) if trial else (_NO_SCRIPT, None)
        predicted = self._strategy.predicted(schedule)
        self._tried.append(TriedSchedule(len(self._tried) + 1, self._batches, str(schedule), status, ratio, predicted))

    def _record(self, schedule: Schedule) -> ScheduleRecord | None:
        try:
            return ScheduleRecord(schedule.family, schedule.plain, self._space.script(schedule), ENTRY)
        except ScheduleError:
            return None

    def _trials(self) -> list[Trial]:
        """Trials of families that were run beside the same default."""
        found = self._database.trials(
            workload=self.dispatch.workload.key,
            target=self._builder.target.key,
            iree=IREE_VERSION,
            flags=" ".join(self._builder.flags),
        )
        beside = [trial for trial in found if trial.reference == self._session.reference.sha]
        return [trial for trial in beside if trial.status != UNMEASURED and trial.schedule in self._records]
