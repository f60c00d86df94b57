"""Explain one dispatch from the database: what was tried, what failed and why, and what mattered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from tcl_iree.database import Database, Trial, WorkloadRecord
from tcl_iree.errors import DatabaseError, TargetError
from tcl_iree.measure.builder import IREE_VERSION
from tcl_iree.report.explanation import ExplainedSchedule, Explanation, MeasuredWorkload
from tcl_iree.target import Target
from tcl_iree.workflows.explain_model import ModelOpinion, model_opinion
from tcl_iree.workflows.explain_trials import Group, Tried, best_ratio, decisions, failures, families, grouped
from tcl_iree.workflows.guide import BASE


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
        tried = [entry for group in grouped(by_workload.get(record.key, []), schedules).values() for entry in group]
        if tried:
            rows.append(MeasuredWorkload(record.key, record.label, len(tried), best_ratio(tried)))
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
    groups = grouped(database.trials(workload=workload.key), database.schedules())
    here = {group: tried for group, tried in groups.items() if group.target == target and flags in (None, group.flags)}
    if not here:
        raise DatabaseError(_nothing(workload, target, flags, groups))
    # This version's trials first: what a model says is of this version.
    chosen = max(here, key=lambda group: (group.iree == IREE_VERSION, len(here[group])))
    tried = here[chosen]
    ranked = sorted((entry for entry in tried if entry.ratio), key=lambda entry: entry.merit, reverse=True)
    notes = [
        f"{len(rest)} more schedules were tried with IREE {group.iree}, flags {group.flags or 'none'}"
        for group, rest in here.items()
        if group != chosen
    ]
    opinion: ModelOpinion | str | None = _opinion(workload, ranked, model) if ranked else "nothing worked"
    if isinstance(opinion, str):
        notes.append(f"no cost model was asked: {opinion}")
        opinion = None
    return Explanation(
        key=workload.key,
        label=workload.label,
        target=f"{tried[0].last.spec} ({target})",
        iree=chosen.iree,
        flags=chosen.flags,
        default_seconds=median(entry.last.reference_p50 or 0.0 for entry in ranked) if ranked else None,
        tried=len(tried),
        right=len(ranked),
        top=tuple(_listed(ranked, opinion)[:top]),
        families=families(tried),
        failures=failures(tried),
        decisions=decisions(ranked),
        view=opinion.view if opinion else None,
        notes=tuple(notes),
    )


def _opinion(workload: WorkloadRecord, ranked: Sequence[Tried], model: str) -> ModelOpinion | str:
    records, ratios = [entry.record for entry in ranked], [entry.ratio or 0.0 for entry in ranked]
    return model_opinion(workload, records, ratios, ranked[0].last, model)


def _nothing(workload: WorkloadRecord, target: str, flags: str | None, groups: Mapping[Group, list[Tried]]) -> str:
    under = "" if flags is None else f" with flags {flags!r}"
    known = sorted(
        {f"{tried[0].last.spec} ({group.target}) with flags {group.flags!r}" for group, tried in groups.items()}
    )
    hint = f"there are trials on {'; '.join(known)}: choose with --target and --flags" if known else "tune it first"
    return f"no schedule of {workload.label} ({workload.key}) was measured on {target}{under}; {hint}"


def _listed(ranked: Sequence[Tried], opinion: ModelOpinion | None) -> list[ExplainedSchedule]:
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
