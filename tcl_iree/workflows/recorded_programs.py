"""Programs that another platform has measured, to be measured here too: the same scripts, so that both compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from tcl_iree.database import Database, ScheduleRecord, Trial
from tcl_iree.errors import ScheduleError, WorkloadError
from tcl_iree.learning.groups import target_of, trials_by_group
from tcl_iree.measure.builder import IREE_VERSION, Builder
from tcl_iree.measure.runner import Runner
from tcl_iree.transform_dialect.families import family_of
from tcl_iree.transform_dialect.schedule import DEFAULT_FAMILY, Schedule
from tcl_iree.workflows.trials import TrialSession
from tcl_iree.workload.analysis import analyse
from tcl_iree.workload.model import Workload


@dataclass(frozen=True)
class RecordedPrograms:
    """Programs of one workload as they were measured.

    Attributes:
        flags: that IREE was given beside them.
        records: each with its script.
        origins: how each was come by, by its hash.
    """

    workload: Workload
    flags: tuple[str, ...]
    records: tuple[ScheduleRecord, ...]
    origins: Mapping[str, str]


def recorded_programs(database: Database, each: int, workloads: int | None, seed: int) -> list[RecordedPrograms]:
    """Some of the programs that a database has, by chance, the same for the same seed whatever they are measured on.

    Args:
        each: programs of a workload, at most.
        workloads: at most so many, those with the most programs first; None for all.
    """
    schedules, payloads = database.schedules(), {row.key: row.payload for row in database.workloads()}
    trials: dict[tuple[str, str], list[Trial]] = {}
    for (key, _, flags, _), held in sorted(trials_by_group(database).items()):
        trials.setdefault((key, flags), []).extend(held)
    made = []
    for (key, flags), held in trials.items():
        found = _with_scripts(held, schedules, payloads[key])
        if found:
            drawn = Random(f"{seed} {key} {flags}").sample(sorted(found), min(each, len(found)))
            origins = {found[sha][0].sha: found[sha][1] for sha in drawn}
            records = tuple(found[sha][0] for sha in drawn)
            made.append(RecordedPrograms(analyse(payloads[key]), tuple(flags.split()), records, origins))
    if workloads is not None:
        made = sorted(made, key=lambda entry: (-len(entry.records), entry.workload.key))[:workloads]
    return made


def _with_scripts(
    trials: Sequence[Trial], schedules: Mapping[str, ScheduleRecord], payload: str
) -> dict[str, tuple[ScheduleRecord, str]]:
    """Distinct schedules and how they were come by; what has no script that can be made again is left out."""
    found: dict[str, tuple[ScheduleRecord, str]] = {}
    for trial in trials:
        record = schedules[trial.schedule]
        if record.family == DEFAULT_FAMILY or trial.schedule in found:
            continue
        try:
            written = record if record.script else _written(record, analyse(payload), trial)
        except (ScheduleError, WorkloadError, KeyError):
            continue
        if written:
            found[trial.schedule] = written, trial.origin
    return found


def _written(record: ScheduleRecord, workload: Workload, trial: Trial) -> ScheduleRecord | None:
    target = target_of(trial)
    if target is None:
        return None
    schedule = Schedule.from_plain(record.family, record.decisions)
    script = family_of(record.family).script(schedule, workload, target)
    return ScheduleRecord(record.family, record.decisions, script, record.entry)


class RepeatedMeasuring:
    """Measures recorded programs of one workload; what the database has of them is not measured again.

    Raises:
        MeasureError: IREE's default for the workload cannot be built, run or trusted.
    """

    def __init__(self, programs: RecordedPrograms, builder: Builder, runner: Runner, database: Database) -> None:
        self._programs = programs
        self._session = TrialSession(programs.workload, builder, runner, database)
        found = database.trials(
            workload=programs.workload.key, target=builder.target.key, iree=IREE_VERSION, flags=" ".join(builder.flags)
        )
        self._known = {trial.schedule: trial for trial in found if trial.reference == self._session.reference.sha}
        self.asked = 0

    @property
    def label(self) -> str:
        """The workload's."""
        return self._programs.workload.label

    @property
    def default_seconds(self) -> float:
        """Time of IREE's default."""
        return self._session.default.p50 or 0.0

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left to measure."""
        return self.asked >= len(self._programs.records)

    def step(self, count: int) -> Iterator[Trial]:
        """The next `count` programs; yields each trial, also those known from before."""
        records = self._programs.records[self.asked : self.asked + count]
        self.asked += len(records)
        yield from (self._known[record.sha] for record in records if record.sha in self._known)
        new = [record for record in records if record.sha not in self._known]
        yield from self._session.measure(new, self._programs.origins)
