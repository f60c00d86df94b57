"""Measured programs to learn from: groups of candidates, each of one workload on one target."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tcl_iree.database import UNMEASURED, Database, ScheduleRecord, Trial, WorkloadRecord
from tcl_iree.errors import LearningError, TclIreeError
from tcl_iree.features.steps import Candidate
from tcl_iree.hardware import Hardware
from tcl_iree.target import Target
from tcl_iree.transform_dialect.families import FAMILIES, family_of
from tcl_iree.transform_dialect.schedule import DEFAULT_FAMILY, Schedule
from tcl_iree.workload.analysis import analyse
from tcl_iree.workload.model import Workload


@dataclass(frozen=True)
class Group:
    """Candidates of one workload on one target, measured beside the same default.

    Attributes:
        platform: the target's key, which names the machine too.
        candidates: what was measured; the first is IREE's default.
        seconds: of each candidate; NaN where it failed.
        origins: how each candidate was come by.
    """

    workload: Workload
    target: Target
    platform: str
    candidates: tuple[Candidate, ...]
    seconds: np.ndarray
    origins: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.candidates)

    @cached_property
    def labels(self) -> np.ndarray:
        """The best time over each candidate's: 1 for the best, 0 for a failure."""
        best = np.nanmin(self.seconds)
        return np.nan_to_num(best / self.seconds, nan=0.0).astype(np.float32)

    @property
    def works(self) -> np.ndarray:
        """Whether each candidate compiled and gave right results."""
        return ~np.isnan(self.seconds)

    def take(self, chosen: Sequence[int] | np.ndarray) -> Group:
        """The same with some of the candidates; the default stays the first."""
        wanted = [0, *(int(index) for index in chosen if index != 0)]
        origins = tuple(self.origins[index] for index in wanted) if self.origins else ()
        picked = tuple(self.candidates[index] for index in wanted)
        return Group(self.workload, self.target, self.platform, picked, self.seconds[wanted], origins)


def load_groups(database: Database, platform: str | None = None, least: int = 2) -> list[Group]:
    """Groups of everything measured in a database.

    Args:
        platform: only of this target key.
        least: leave out groups with fewer candidates.

    Raises:
        LearningError: nothing to learn from, or times that are no numbers.
    """
    schedules, workloads = database.schedules(), {row.key: row for row in database.workloads()}
    found: dict[tuple[str, str, str, str], list[Trial]] = {}
    for trial in database.trials(target=platform):
        if trial.status != UNMEASURED:
            _check(trial, database)
            found.setdefault((trial.workload, trial.target, trial.iree, trial.flags), []).append(trial)
    groups = [_group(workloads[key[0]], trials, schedules) for key, trials in sorted(found.items())]
    kept = [group for group in groups if group and len(group) >= least]
    if not kept:
        raise LearningError(
            f"{database.path} has no measured programs to learn from"
            + (f" on {platform}" if platform else "")
            + "; measure some with `tcl-iree collect` or `tcl-iree tune`"
        )
    return kept


def candidates_in(groups: Iterable[Group]) -> int:
    """How many programs groups hold, defaults left out."""
    return sum(len(group) - 1 for group in groups)


def _check(trial: Trial, database: Database) -> None:
    if trial.status == "ok" and not (trial.ratio and np.isfinite(trial.ratio) and trial.ratio > 0):
        raise LearningError(
            f"trial {trial.uid} in {database.path} has no usable time (ratio {trial.ratio}); remove it or collect again"
        )


def _group(record: WorkloadRecord, trials: list[Trial], schedules: Mapping[str, ScheduleRecord]) -> Group | None:
    defaults = [trial for trial in trials if schedules[trial.schedule].family == DEFAULT_FAMILY]
    timed = [trial.p50 for trial in defaults if trial.p50]
    target = target_of(trials[-1])
    if not timed or target is None:
        return None
    default = float(np.median(timed))
    workload = analyse(record.payload)
    ratios: dict[str, list[Trial]] = {}
    for trial in trials:
        if schedules[trial.schedule].family != DEFAULT_FAMILY:
            ratios.setdefault(trial.schedule, []).append(trial)
    records = [schedules[sha] for sha in ratios]
    seconds = [default]
    for measured in ratios.values():
        good = [trial.ratio for trial in measured if trial.status == "ok" and trial.ratio]
        seconds.append(default / float(np.median(good)) if good else float("nan"))
    origins = ("", *(measured[-1].origin for measured in ratios.values()))
    candidates = (None, *_candidates(records, workload, target))
    return Group(workload, target, trials[-1].target, candidates, np.array(seconds), origins)


def target_of(trial: Trial) -> Target | None:
    """The target of a trial with the hardware it was measured on; None if that is not known here."""
    head, *options = trial.spec.split(",")
    kind, _, arch = head.partition(":")
    threads = next((int(option.partition("=")[2]) for option in options if option.startswith("threads=")), 0)
    if trial.hardware:
        hardware = Hardware(**json.loads(trial.hardware))
        return Target(kind, arch, (threads or hardware.cores) if kind == "cpu" else 0, hardware)
    try:
        here = Target.parse(trial.spec)
    except TclIreeError:
        return None
    return here if here.key == trial.target else None


def _candidates(records: Sequence[ScheduleRecord], workload: Workload, target: Target) -> list[Candidate]:
    """Schedules where their family still writes the very script that was measured, else that script."""
    known = {family.name for family in FAMILIES}
    same: dict[str, bool] = {}
    made: list[Candidate] = []
    for record in records:
        schedule = Schedule.from_plain(record.family, record.decisions)
        if record.family in known and record.family not in same:
            same[record.family] = _unchanged(schedule, record.script, workload, target)
        made.append(schedule if same.get(record.family) else record.script)
    return made


def _unchanged(schedule: Schedule, script: str | None, workload: Workload, target: Target) -> bool:
    try:
        return script is None or family_of(schedule.family).script(schedule, workload, target) == script
    except (TclIreeError, KeyError):
        return False
