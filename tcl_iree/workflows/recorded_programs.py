"""Programs of workloads that were measured before: the same scripts, so that platforms compare, or more of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from random import Random

from tcl_iree.database import UNMEASURED, Database, ScheduleRecord, Trial
from tcl_iree.errors import LearningError, ScheduleError, WorkloadError
from tcl_iree.learning.groups import trials_by_group
from tcl_iree.measure.builder import IREE_VERSION, Builder
from tcl_iree.measure.runner import Runner
from tcl_iree.target import Target
from tcl_iree.transform_dialect.names import ENTRY
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workflows.trials import TrialSession
from tcl_iree.workload.analysis import analyse
from tcl_iree.workload.model import Workload

_LOG = logging.getLogger(__name__)


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


def recorded_programs(
    database: Database, each: int | None, workloads: int | None, only: Sequence[str], seed: int
) -> list[RecordedPrograms]:
    """Some of the programs that a database has, by chance, the same for the same seed whatever they are measured on.

    Args:
        each: programs of a workload, at most; None for all.
        workloads: at most so many, those with the most programs first; None for all.
        only: of workloads whose keys begin with one of these; of all if there are none.

    Raises:
        LearningError: there are none that could be measured again.
    """
    schedules, payloads = database.schedules(), {row.key: row.payload for row in database.workloads()}
    found: dict[tuple[str, str], dict[str, str]] = {}
    for (key, _, flags, _), trials in sorted(trials_by_group(database).items()):
        origins = {trial.schedule: trial.origin for trial in trials if schedules[trial.schedule].script}
        if origins and (not only or key.startswith(tuple(only))):
            found.setdefault((key, flags), {}).update(origins)
    largest = sorted(found.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    made = []
    for (key, flags), origins in largest[:workloads]:
        count = len(origins) if each is None else min(each, len(origins))
        drawn = Random(f"{seed} {key} {flags}").sample(sorted(origins), count)
        try:
            workload = analyse(payloads[key])
        except WorkloadError as error:
            _LOG.warning("workload %s is left out: %s", key, error)
            continue
        records = tuple(schedules[sha] for sha in drawn)
        made.append(RecordedPrograms(workload, tuple(flags.split()), records, {sha: origins[sha] for sha in drawn}))
    if not made:
        raise LearningError(
            f"there are no programs with scripts that IREE {IREE_VERSION} has measured"
            + (f" of workloads whose keys begin with {' or '.join(only)}" if only else "")
            + "; give databases or Parquet "
            "files that `tcl-iree collect` or `tcl-iree tune` wrote"
        )
    return made


def fresh_programs(recorded: RecordedPrograms, target: Target, each: int, seed: int) -> RecordedPrograms:
    """Random schedules of the same workload under the same flags, none of them among those that were recorded."""
    space = Space(recorded.workload, target)
    known = {record.sha for record in recorded.records}

    def drawn() -> Iterator[ScheduleRecord]:
        for schedule in space.samples(Random(f"{seed} {recorded.workload.key} fresh")):
            try:
                record = ScheduleRecord(schedule.family, schedule.plain, space.script(schedule), ENTRY)
            except ScheduleError:
                continue
            if record.sha not in known:
                yield record

    return replace(recorded, records=tuple(islice(drawn(), each)), origins={})


class RepeatedMeasuring:
    """Measures programs of one workload; what the database has of them is not measured again.

    Raises:
        MeasureError: IREE's default for the workload cannot be built, run or trusted.
    """

    def __init__(self, programs: RecordedPrograms, builder: Builder, runner: Runner, database: Database) -> None:
        self._programs = programs
        self._session = TrialSession(programs.workload, builder, runner, database)
        found = database.trials(
            workload=programs.workload.key, target=builder.target.key, iree=IREE_VERSION, flags=" ".join(builder.flags)
        )
        beside = [trial for trial in found if trial.reference == self._session.reference.sha]
        self._known = {trial.schedule: trial for trial in beside if trial.status != UNMEASURED}
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
