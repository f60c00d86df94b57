"""What was best for similar workloads, as a start for a new one."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from tcl_iree.database import Database, ScheduleRecord, Trial
from tcl_iree.errors import WorkloadError
from tcl_iree.measure.builder import IREE_VERSION
from tcl_iree.target import Target
from tcl_iree.transform_dialect.families import FAMILIES, family_of
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.workload.analysis import analyse
from tcl_iree.workload.model import Workload

# So many of the most similar workloads are asked, and so many of the best schedules of each taken.
_WORKLOADS, _SCHEDULES = 6, 3
_NAMES = {family.name for family in FAMILIES}


@dataclass(frozen=True)
class _Known:
    """A workload with the best that was measured of it, fastest first."""

    workload: Workload
    best: tuple[Schedule, ...]


class Similar:
    """The best schedules the database has for workloads other than those of one model.

    A model's own workloads are left out: else a run that is repeated would start from other schedules than the first
    time, and measure anew.

    Args:
        records: the schedules the database has, by their hash.
        own: keys of the model's workloads.
    """

    def __init__(
        self, database: Database, records: Mapping[str, ScheduleRecord], target: Target, own: Collection[str]
    ) -> None:
        best: dict[str, list[Trial]] = {}
        for trial in database.trials(target=target.key, iree=IREE_VERSION):
            record = records.get(trial.schedule)
            if trial.ratio and trial.workload not in own and record and record.family in _NAMES:
                best.setdefault(trial.workload, []).append(trial)
        self._target = target
        self._known: list[_Known] = []
        for stored in database.workloads():
            if stored.key in best:
                ranked = sorted(best[stored.key], key=lambda trial: -(trial.ratio or 0.0))
                found = dict.fromkeys(_schedule(records[trial.schedule]) for trial in ranked)
                try:
                    self._known.append(_Known(analyse(stored.payload), tuple(found)[:_SCHEDULES]))
                except WorkloadError:
                    continue

    def schedules(self, workload: Workload) -> list[Schedule]:
        """Legal schedules for a workload, nearest to the best of those most similar to it."""
        near = sorted(
            (known for known in self._known if _alike(known.workload, workload)),
            key=lambda known: _distance(known.workload, workload),
        )
        found = (
            family_of(schedule.family).nearest(schedule, workload, self._target)
            for known in near[:_WORKLOADS]
            for schedule in known.best
            if not family_of(schedule.family).why_not(workload, self._target)
        )
        return list(dict.fromkeys(schedule for schedule in found if schedule))


def _schedule(record: ScheduleRecord) -> Schedule:
    return Schedule.from_plain(record.family, record.decisions)


def _alike(one: Workload, other: Workload) -> bool:
    return (one.root.computes, _dtype(one)) == (other.root.computes, _dtype(other))


def _dtype(workload: Workload) -> str:
    return workload.root.operands[0].dtype


def _distance(one: Workload, other: Workload) -> float:
    """By the ratios of loop sizes, the largest beside the largest."""
    return sum(
        abs(math.log2(a / b))
        for kind in ("parallel", "reduction")
        for a, b in zip_longest(_sizes(one, kind), _sizes(other, kind), fillvalue=1)
    )


def _sizes(workload: Workload, kind: str) -> list[int]:
    return sorted((loop.size for loop in workload.root.loops if loop.kind == kind), reverse=True)
