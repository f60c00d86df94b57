"""Explain one dispatch from the database: what was tried, what failed and why, and what mattered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tcl_iree.database import UNMEASURED, Database, ScheduleRecord, Trial, WorkloadRecord
from tcl_iree.errors import DatabaseError, TargetError
from tcl_iree.learning.groups import ratio_of
from tcl_iree.measure.builder import IREE_VERSION
from tcl_iree.report.explain import (
    DecisionEffect,
    DecisionValue,
    ExplainedSchedule,
    Explanation,
    FailureGroup,
    FamilyOutcome,
    MeasuredWorkload,
)
from tcl_iree.target import Target
from tcl_iree.transform_dialect.schedule import DEFAULT_FAMILY, Schedule
from tcl_iree.workflows.explain_model import ModelOpinion, model_opinion
from tcl_iree.workflows.guide import BASE

_OK = "ok"


@dataclass(frozen=True)
class _Tried:
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
        return Schedule.from_plain(self.record.family, self.record.decisions)

    @property
    def text(self) -> str:
        return str(self.schedule) if self.record.decisions else f"{self.record.family} {self.record.sha[:12]}"


def target_key(text: str, database: Database) -> str:
    """The key of a target as users write it, or of one in the database that begins like this.

    Raises:
        TargetError: it is neither.
    """
    try:
        return Target.parse(text).key
    except TargetError:
        found = {trial.target for trial in database.trials() if trial.target.startswith(text)}
        if len(found) != 1:
            raise
        return found.pop()


def measured_workloads(database: Database, target: str) -> list[MeasuredWorkload]:
    """What was measured on a target, most tried first."""
    schedules = database.schedules()
    by_workload: dict[str, list[Trial]] = {}
    for trial in database.trials(target=target):
        by_workload.setdefault(trial.workload, []).append(trial)
    rows = []
    for record in database.workloads():
        tried = [entry for group in _groups(by_workload.get(record.key, []), schedules).values() for entry in group]
        if tried:
            rows.append(MeasuredWorkload(record.key, record.label, len(tried), _best(tried)))
    return sorted(rows, key=lambda row: -row.tried)


def explain(
    database: Database,
    workload: WorkloadRecord,
    target: str,
    top: int = 10,
    flags: str | None = None,
    model: str = BASE,
) -> Explanation:
    """Explain a workload on a target.

    Args:
        target: the target's key.
        top: how many of the fastest to list.
        flags: only trials with these compile flags; by default those with most trials.
        model: the cost model to ask, as for tuning.

    Raises:
        DatabaseError: nothing was measured there.
        LearningError: a model was named that cannot be used.
    """
    groups = _groups(database.trials(workload=workload.key), database.schedules())
    here = {key: tried for key, tried in groups.items() if key[0] == target and flags in (None, key[2])}
    if not here:
        raise DatabaseError(_nothing(workload, target, flags, groups))
    # This version's trials first: what a model says is of this version.
    chosen = max(here, key=lambda key: (key[1] == IREE_VERSION, len(here[key])))
    tried = here[chosen]
    ranked = sorted((entry for entry in tried if entry.ratio), key=lambda entry: entry.merit, reverse=True)
    opinion = _opinion(workload, ranked, model) if ranked else None
    notes = [f"{len(rest)} more schedules were tried with IREE {iree}, flags {used or 'none'}"
             for (_, iree, used, _), rest in here.items() if rest is not tried]  # fmt: skip
    if isinstance(opinion, str):
        notes.append(f"no cost model was asked: {opinion}")
    return Explanation(
        key=workload.key,
        label=workload.label,
        target=f"{tried[0].last.spec} ({target})",
        iree=chosen[1],
        flags=chosen[2],
        default_seconds=median(entry.last.reference_p50 or 0.0 for entry in ranked) if ranked else None,
        tried=len(tried),
        right=len(ranked),
        top=tuple(_listed(ranked, opinion if isinstance(opinion, ModelOpinion) else None)[:top]),
        families=_families(tried),
        failures=_failures(tried),
        decisions=_decisions(ranked),
        view=opinion.view if isinstance(opinion, ModelOpinion) else None,
        notes=tuple(notes),
    )


def _opinion(workload: WorkloadRecord, ranked: Sequence[_Tried], model: str) -> ModelOpinion | str:
    records, ratios = [entry.record for entry in ranked], [entry.ratio or 0.0 for entry in ranked]
    return model_opinion(workload, records, ratios, ranked[0].last, model)


# Target, IREE version, flags, and the default's code: ratios are comparable where all are the same.
_Group = tuple[str, str, str, str]


def _groups(trials: Sequence[Trial], schedules: Mapping[str, ScheduleRecord]) -> dict[_Group, list[_Tried]]:
    found: dict[_Group, dict[str, list[Trial]]] = {}
    for trial in trials:
        if trial.status != UNMEASURED and schedules[trial.schedule].family != DEFAULT_FAMILY:
            group = found.setdefault((trial.target, trial.iree, trial.flags, trial.reference or ""), {})
            group.setdefault(trial.schedule, []).append(trial)
    return {key: [_Tried(schedules[sha], tuple(held)) for sha, held in group.items()] for key, group in found.items()}


def _best(tried: Sequence[_Tried]) -> float | None:
    """The ratio of the fastest; None if nothing worked."""
    return max(tried, key=lambda entry: entry.merit).ratio


def _nothing(workload: WorkloadRecord, target: str, flags: str | None, groups: Mapping[_Group, list[_Tried]]) -> str:
    under = "" if flags is None else f" with flags {flags!r}"
    known = sorted({f"{tried[0].last.spec} ({key[0]}) with flags {key[2]!r}" for key, tried in groups.items()})
    hint = f"there are trials on {'; '.join(known)}: choose with --target and --flags" if known else "tune it first"
    return f"no schedule of {workload.label} ({workload.key}) was measured on {target}{under}; {hint}"


def _listed(ranked: Sequence[_Tried], opinion: ModelOpinion | None) -> list[ExplainedSchedule]:
    return [
        ExplainedSchedule(
            entry.record.family,
            entry.text,
            entry.ratio or 0.0,
            entry.last.ratio_error,
            place + 1,
            opinion.ranks[place] if opinion else None,
        )
        for place, entry in enumerate(ranked)
    ]


def _families(tried: Sequence[_Tried]) -> tuple[FamilyOutcome, ...]:
    by_family: dict[str, list[_Tried]] = {}
    for entry in tried:
        by_family.setdefault(entry.record.family, []).append(entry)
    made = [
        FamilyOutcome(
            name,
            len(held),
            dict(Counter(entry.last.status for entry in held).most_common()),
            _best(held),
        )
        for name, held in by_family.items()
    ]
    return tuple(sorted(made, key=lambda entry: -(entry.best or 0.0)))


def _failures(tried: Sequence[_Tried]) -> tuple[FailureGroup, ...]:
    by_kind: dict[str, list[_Tried]] = {}
    for entry in tried:
        if entry.ratio is None:
            by_kind.setdefault(entry.last.status, []).append(entry)
    made = [
        FailureGroup(kind, len(held), held[-1].text, next(iter(held[-1].last.detail.splitlines()), "")[:200])
        for kind, held in by_kind.items()
    ]
    return tuple(sorted(made, key=lambda group: -group.count))


def _decisions(ranked: Sequence[_Tried]) -> tuple[DecisionEffect, ...]:
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
