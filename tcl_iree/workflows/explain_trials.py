"""Trials of one workload put in order: by group, by family, by what failed, by what was decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tcl_iree.database import UNMEASURED, ScheduleRecord, Trial
from tcl_iree.learning.groups import ratio_of
from tcl_iree.report.explanation import DecisionEffect, DecisionValue, FailureGroup, FamilyOutcome
from tcl_iree.transform_dialect.schedule import DEFAULT_FAMILY, Schedule

_OK = "ok"


class Group(NamedTuple):
    """What trials must share for their ratios to be comparable; `reference` is the default's code."""

    target: str
    iree: str
    flags: str
    reference: str


@dataclass(frozen=True)
class Tried:
    """One schedule and all its trials of one group, oldest first."""

    record: ScheduleRecord
    trials: tuple[Trial, ...]

    @property
    def last(self) -> Trial:
        """The latest trial that was right, or the latest."""
        return next((trial for trial in reversed(self.trials) if trial.status == _OK), self.trials[-1])

    @property
    def ratio(self) -> float | None:
        """Default's time over its time; None if it never was right."""
        return ratio_of(self.trials) if self.last.status == _OK else None

    @property
    def merit(self) -> tuple[bool, float]:
        """By which it is ranked: a time that was cut short, for being slow, is a rough one."""
        return any(trial.status == _OK and not trial.stopped_early for trial in self.trials), self.ratio or 0.0

    @property
    def schedule(self) -> Schedule:
        """The schedule as a value."""
        return Schedule.from_plain(self.record.family, self.record.decisions)

    @property
    def text(self) -> str:
        """The schedule as people read it; a script brought as text has only its hash."""
        return str(self.schedule) if self.record.decisions else f"{self.record.family} {self.record.sha[:12]}"


def grouped(trials: Sequence[Trial], schedules: Mapping[str, ScheduleRecord]) -> dict[Group, list[Tried]]:
    """Schedules that were run, by what makes their ratios comparable; IREE's default is not one of them."""
    found: dict[Group, dict[str, list[Trial]]] = {}
    for trial in trials:
        if trial.status != UNMEASURED and schedules[trial.schedule].family != DEFAULT_FAMILY:
            key = Group(trial.target, trial.iree, trial.flags, trial.reference or "")
            found.setdefault(key, {}).setdefault(trial.schedule, []).append(trial)
    return {key: [Tried(schedules[sha], tuple(held)) for sha, held in group.items()] for key, group in found.items()}


def best_ratio(tried: Sequence[Tried]) -> float | None:
    """The ratio of the fastest; None if nothing worked."""
    return max(tried, key=lambda entry: entry.merit).ratio


def families(tried: Sequence[Tried]) -> tuple[FamilyOutcome, ...]:
    """What came of each family's schedules, the fastest family first."""
    by_family: dict[str, list[Tried]] = {}
    for entry in tried:
        by_family.setdefault(entry.record.family, []).append(entry)
    made = [
        FamilyOutcome(
            name,
            len(held),
            dict(Counter(entry.last.status for entry in held).most_common()),
            best_ratio(held),
        )
        for name, held in by_family.items()
    ]
    return tuple(sorted(made, key=lambda entry: -(entry.best or 0.0)))


def failures(tried: Sequence[Tried]) -> tuple[FailureGroup, ...]:
    """What failed, by kind, the most frequent first."""
    by_kind: dict[str, list[Tried]] = {}
    for entry in tried:
        if entry.ratio is None:
            by_kind.setdefault(entry.last.status, []).append(entry)
    made = [
        FailureGroup(kind, len(held), held[-1].text, next(iter(held[-1].last.detail.splitlines()), "")[:200])
        for kind, held in by_kind.items()
    ]
    return tuple(sorted(made, key=lambda group: -group.count))


def decisions(ranked: Sequence[Tried]) -> tuple[DecisionEffect, ...]:
    """Of the winner's family, the best ratio with each value; decisions that never varied say nothing."""
    best: dict[str, dict[str, list[float]]] = {}
    for entry in ranked:
        if entry.record.family == ranked[0].record.family:
            for name, word in entry.schedule.words.items():
                best.setdefault(name, {}).setdefault(word, []).append(entry.ratio or 0.0)
    made = []
    for name, by_value in best.items():
        values = [DecisionValue(word, len(ratios), max(ratios)) for word, ratios in by_value.items()]
        values.sort(key=lambda value: -value.best)
        if len(values) > 1:
            made.append(DecisionEffect(name, values[0].best / values[-1].best, tuple(values)))
    return tuple(sorted(made, key=lambda effect: -effect.spread))
