"""Fully measured programs of one workload, for searches that are replayed instead of measured."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tcl_iree.database import Database, ScheduleRecord, Trial
from tcl_iree.learning.groups import Group, group_of, trials_by_group
from tcl_iree.learning.split import TEST, Split
from tcl_iree.transform_dialect.schedule import Schedule


@dataclass(frozen=True)
class Recorded:
    """What is known of one program.

    Attributes:
        ratio: time of IREE's default over its time; None if it failed.
        artifact: hash of its code; None if there is none.
        build_seconds, run_seconds: what it took to build it, and to check and time it.
        reused: whether another program with the same code takes over its time.
    """

    ratio: float | None
    artifact: str | None
    build_seconds: float
    run_seconds: float
    reused: bool


@dataclass(frozen=True)
class ReplayPool:
    """All measured programs of one workload on one target.

    Attributes:
        group: the same as models learn from it.
        programs: those that a family still writes the same way.
    """

    group: Group
    programs: Mapping[Schedule, Recorded]

    @staticmethod
    def of(group: Group, trials: Sequence[Trial], schedules: Mapping[str, ScheduleRecord]) -> ReplayPool:
        """A group with what its trials took.

        Trials of one program are one entry: median times. Where an equal program's time was reused, running it is
        thought to take what that took.
        """
        held: dict[Schedule, list[Trial]] = {}
        runs: dict[str | None, list[float]] = {}
        for trial in trials:
            record = schedules[trial.schedule]
            held.setdefault(Schedule.from_plain(record.family, record.decisions), []).append(trial)
            if trial.measured:
                runs.setdefault(trial.artifact, []).append(trial.run_seconds)
        ratios = dict(zip(group.candidates, group.seconds[0] / group.seconds, strict=True))
        programs = {
            candidate: _recorded(ratios[candidate], held[candidate], runs)
            for candidate in group.candidates
            if isinstance(candidate, Schedule)
        }
        return ReplayPool(group, programs)

    @property
    def default_seconds(self) -> float:
        """Time of IREE's default."""
        return float(self.group.seconds[0])

    @property
    def best_seconds(self) -> float:
        """Time of the fastest program."""
        return self.default_seconds / max(entry.ratio or 0.0 for entry in self.programs.values())


def replay_pools(database: Database, split: Split, least: int, platform: str = "") -> list[ReplayPool]:
    """Pools of test workloads with at least so many programs; of two pools of one workload and target, the larger.

    Args:
        platform: only of target keys that begin like this.
    """
    found = trials_by_group(database, platform)
    schedules, workloads = database.schedules(), {row.key: row for row in database.workloads()}
    made: dict[tuple[str, str], ReplayPool] = {}
    for (key, target, *_), trials in sorted(found.items()):
        if len({trial.schedule for trial in trials}) < least:
            continue
        group = group_of(workloads[key], trials, schedules)
        if group is None or split.part(group.workload) != TEST or not group.works[1:].any():
            continue
        pool = ReplayPool.of(group, trials, schedules)
        known = made.get((key, target))
        if len(pool.programs) >= least and (known is None or len(pool.programs) > len(known.programs)):
            made[key, target] = pool
    return list(made.values())


def _recorded(ratio: float, trials: Sequence[Trial], runs: Mapping[str | None, Sequence[float]]) -> Recorded:
    last = trials[-1]
    # Failures have no time, but took some; a reused time took none.
    own = [trial.run_seconds for trial in trials if trial.measured or trial.status != "ok"]
    return Recorded(
        None if np.isnan(ratio) else float(ratio),
        last.artifact,
        statistics.median(trial.build_seconds for trial in trials),
        statistics.median(own or runs.get(last.artifact) or [0.0]),
        any(trial.status == "ok" and trial.calm and not trial.stopped_early for trial in trials),
    )
