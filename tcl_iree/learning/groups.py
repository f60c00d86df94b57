"""Measured programs to learn from: groups of candidates, each of one workload on one target."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from tcl_iree.database import UNMEASURED, Database, ScheduleRecord, Trial, WorkloadRecord, usual_default
from tcl_iree.errors import FeatureError, LearningError, TclIreeError, WorkloadError
from tcl_iree.features.script_ops import read_script
from tcl_iree.features.steps import Candidate, ScriptText
from tcl_iree.hardware import Hardware
from tcl_iree.measure.builder import IREE_VERSION
from tcl_iree.target import Target
from tcl_iree.transform_dialect.families import FAMILIES, family_of
from tcl_iree.transform_dialect.schedule import DEFAULT_FAMILY, Schedule
from tcl_iree.workload.analysis import analyse
from tcl_iree.workload.model import Workload

Made = TypeVar("Made")

_LOG = logging.getLogger(__name__)
# Scripts of each family that are compared with what the family writes now.
_COMPARED = 8
# A disturbed measurement counts if the default beside it was at most this much off its usual time.
_UNUSUAL = 0.05


@dataclass(frozen=True)
class Group:
    """Candidates of one workload on one target, measured beside the same default.

    Attributes:
        platform: the target's key, which names the machine too.
        candidates: what was measured; the first is IREE's default.
        seconds: of each candidate; NaN where it failed.
        origins: how each candidate was come by.
        spent: seconds that building and running each of them took; empty where nobody knows.
        source: the group this is a part of, and the positions of its candidates there.
    """

    workload: Workload
    target: Target
    platform: str
    candidates: tuple[Candidate, ...]
    seconds: np.ndarray
    origins: tuple[str, ...] = ()
    spent: tuple[float, ...] = field(default=(), repr=False, compare=False)
    source: tuple[Group, np.ndarray] | None = field(default=None, repr=False, compare=False)
    _made: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.candidates)

    @cached_property
    def labels(self) -> np.ndarray:
        """The best time over each candidate's: 1 for the best, 0 for a failure."""
        best = np.nanmin(self.seconds)
        return np.nan_to_num(best / self.seconds, nan=0.0).astype(np.float32)

    def part(self, positions: np.ndarray) -> Group:
        """Some of the candidates; IREE's default is always among them."""
        kept = np.unique(np.concatenate([[0], positions])).astype(np.int64)
        candidates = tuple(self.candidates[position] for position in kept)
        origins = tuple(self.origins[position] for position in kept) if self.origins else ()
        spent = tuple(self.spent[position] for position in kept) if self.spent else ()
        return replace(
            self, candidates=candidates, seconds=self.seconds[kept], origins=origins, spent=spent, source=(self, kept)
        )

    def hidden(self) -> Group:
        """The same programs with nothing known of their times."""
        return replace(self, seconds=np.full(len(self), np.nan), source=(self, np.arange(len(self))))

    def told(self, scores: np.ndarray) -> Group:
        """The same programs with times that a model's scores would have them in order by."""
        return replace(
            self, seconds=np.exp(-(scores - scores.mean())).astype(np.float64), source=(self, np.arange(len(self)))
        )

    @staticmethod
    def unmeasured(workload: Workload, target: Target, candidates: Sequence[Candidate]) -> Group:
        """Programs whose times are not known, IREE's default put first."""
        listed = (None, *candidates)
        return Group(workload, target, target.key, listed, np.full(len(listed), np.nan), ("",) * len(listed))

    def once(self, what: object, make: Callable[[], Made]) -> Made:
        """What was made of this group before under the same name, or is made now: several models read it alike."""
        if what not in self._made:
            self._made[what] = make()
        return self._made[what]

    @property
    def works(self) -> np.ndarray:
        """Whether each candidate compiled and gave right results."""
        return ~np.isnan(self.seconds)


def load_groups(
    database: Database, platform: str = "", least: int = 2, only: Sequence[Trial] | None = None
) -> list[Group]:
    """Groups of everything measured in a database with this version of IREE.

    What cannot be read (a script that is no valid MLIR, a workload of another version) is left out with a warning.

    Args:
        platform: only of target keys that begin like this.
        least: leave out groups with fewer candidates.
        only: of these trials, defaults among them, and not of all that the database has.

    Raises:
        LearningError: nothing to learn from, or times that are no numbers.
    """
    found = trials_by_group(database, platform, only)  # before what they refer to: another process may be measuring
    schedules, workloads = database.schedules(), {row.key: row for row in database.workloads()}
    groups = [group_of(workloads[key[0]], held, schedules) for key, held in sorted(found.items())]
    kept = [group for group in groups if group and len(group) >= least and group.works[1:].any()]
    if not kept:
        trials = database.trials() if only is None else only
        others = sorted({trial.iree for trial in trials if _usable(trial, platform)} - {IREE_VERSION})
        raise LearningError(
            f"{database.path} has no measured programs to learn from"
            + (f" on {platform}" if platform else "")
            + (f" with IREE {IREE_VERSION} (there are some with {', '.join(others)})" if others else "")
            + "; measure some with `tcl-iree collect` or `tcl-iree tune`"
        )
    return kept


def trials_by_group(
    database: Database, platform: str = "", only: Sequence[Trial] | None = None
) -> dict[tuple[str, ...], list[Trial]]:
    """Trials that were run with this version of IREE, by what they have in common.

    That is the workload's key, the target's, the flags, and the default code beside which they were timed.

    Args:
        platform, only: see `load_groups`.

    Raises:
        LearningError: a time that is no number.
    """
    found: dict[tuple[str, ...], list[Trial]] = {}
    for trial in database.trials() if only is None else only:
        if _usable(trial, platform) and trial.iree == IREE_VERSION:
            _check(trial, database)
            found.setdefault((trial.workload, trial.target, trial.flags, trial.reference or ""), []).append(trial)
    return found


def _usable(trial: Trial, platform: str) -> bool:
    return trial.status != UNMEASURED and trial.target.startswith(platform)


def candidates_in(groups: Iterable[Group]) -> int:
    """How many programs groups hold, defaults left out."""
    return sum(len(group) - 1 for group in groups)


def fingerprint(settings: object, groups: Iterable[Group]) -> str:
    """A name for a run: another for other settings, programs or times."""
    digest = hashlib.sha256(repr(settings).encode())
    for group in groups:
        digest.update(f"{group.workload.key} {group.platform}".encode() + group.labels.tobytes())
    return digest.hexdigest()[:16]


def _check(trial: Trial, database: Database) -> None:
    if trial.status == "ok" and not (trial.ratio and np.isfinite(trial.ratio) and trial.ratio > 0):
        raise LearningError(
            f"trial {trial.uid} in {database.path} has no usable time (ratio {trial.ratio}); remove it or collect again"
        )


def group_of(record: WorkloadRecord, trials: list[Trial], schedules: Mapping[str, ScheduleRecord]) -> Group | None:
    """One group of `trials_by_group`; None where its default was not timed or it cannot be read."""
    defaults = [trial for trial in trials if schedules[trial.schedule].family == DEFAULT_FAMILY]
    timed = [trial.p50 for trial in defaults if trial.p50]
    target = target_of(trials[-1])
    if not timed or target is None:
        return None
    try:
        workload = analyse(record.payload)
    except WorkloadError as error:
        _LOG.warning("workload %s is left out: %s", record.label, error)
        return None
    by_schedule = trials_by_schedule(trials, schedules)
    default = usual_default(trials) or float(np.median(timed))
    candidates: list[Candidate] = [None]
    seconds, origins, spent = [default], [""], [_spent(defaults)]
    read = readable_candidates([schedules[sha] for sha in by_schedule], workload, target)
    for candidate, measured in zip(read, by_schedule.values(), strict=True):
        if candidate is not None:
            candidates.append(candidate)
            seconds.append(default / ratio_of(measured))
            origins.append(measured[-1].origin)
            spent.append(_spent(measured))
    return Group(
        workload, target, trials[-1].target, tuple(candidates), np.array(seconds), tuple(origins), tuple(spent)
    )


def trials_by_schedule(trials: Sequence[Trial], schedules: Mapping[str, ScheduleRecord]) -> dict[str, list[Trial]]:
    """Trials of one group that can be trusted, by their schedule; IREE's default is left out."""
    found: dict[str, list[Trial]] = {}
    for trial in trusted([trial for trial in trials if schedules[trial.schedule].family != DEFAULT_FAMILY]):
        found.setdefault(trial.schedule, []).append(trial)
    return found


def trusted(trials: Sequence[Trial]) -> list[Trial]:
    """Trials of one group without those whose ratio means little: disturbed, with the default far from its usual time.

    The best of many is what a ranking is judged by, and a disturbed ratio may be off by a third.
    """
    usual = usual_default([trial for trial in trials if trial.ratio])
    return [
        trial
        for trial in trials
        if trial.calm or not (trial.ratio and trial.reference_p50) or abs(trial.reference_p50 / usual - 1.0) <= _UNUSUAL
    ]


def _spent(trials: Sequence[Trial]) -> float:
    """What one of these trials took, the median of them."""
    return float(np.median([trial.build_seconds + trial.run_seconds for trial in trials]))


def ratio_of(trials: Sequence[Trial]) -> float:
    """Of one schedule: the median over the trials that were timed in full, or over all; NaN if none was right."""
    good = [trial for trial in trials if trial.status == "ok" and trial.ratio]
    full = [trial for trial in good if not trial.stopped_early] or good
    return float(np.median([trial.ratio or 0.0 for trial in full])) if full else float("nan")


def target_of(trial: Trial) -> Target | None:
    """The target of a trial with the hardware it was measured on; None if that is not known here."""
    if trial.hardware:
        return Target.elsewhere(trial.spec, Hardware.from_json(trial.hardware))
    try:
        here = Target.parse(trial.spec)
    except TclIreeError:
        return None
    return here if here.key == trial.target else None


def readable_candidates(records: Sequence[ScheduleRecord], workload: Workload, target: Target) -> list[Candidate]:
    """Schedules where their family still writes the very script that was measured, else that script.

    A script that cannot be read, or that nobody kept, gives None.
    """
    by_family: dict[str, list[ScheduleRecord]] = {}
    for record in records:
        by_family.setdefault(record.family, []).append(record)
    same = {name: _unchanged(held, workload, target) for name, held in by_family.items()}
    return [
        Schedule.from_plain(record.family, record.decisions) if same[record.family] else _readable(record)
        for record in records
    ]


def _unchanged(records: Sequence[ScheduleRecord], workload: Workload, target: Target) -> bool:
    """Whether a family takes these decisions and writes the scripts that were measured; a few are compared."""
    if records[0].family not in {family.name for family in FAMILIES}:
        return False
    family = family_of(records[0].family)
    if family.why_not(workload, target):
        return False
    names = {decision.name for decision in family.decisions(workload, target)}
    if any(set(record.decisions) != names for record in records):
        return False
    compared = records[:: max(1, len(records) // _COMPARED)]
    try:
        written = [
            family.script(Schedule.from_plain(record.family, record.decisions), workload, target) for record in compared
        ]
    except (TclIreeError, KeyError):
        return False
    return all(record.script in (None, script) for record, script in zip(compared, written, strict=True))


def _readable(record: ScheduleRecord) -> ScriptText | None:
    if record.script is None:
        _LOG.warning("a %s schedule without a script is left out: the family has changed since", record.family)
        return None
    try:
        read_script(record.script, record.entry)
    except FeatureError as error:
        _LOG.warning("a script is left out: %s", error)
        return None
    return ScriptText(record.script, record.entry)
