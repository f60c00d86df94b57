"""How well platforms are ranked before and after one more was learned."""

from __future__ import annotations

from collections.abc import Sequence

from tcl_iree.learning.cost_model import CostModel
from tcl_iree.learning.distillation.lesson import Lesson
from tcl_iree.learning.evaluation import Evaluation, evaluate, rank
from tcl_iree.learning.groups import Group
from tcl_iree.learning.split import TEST, VALIDATION, load_split
from tcl_iree.report.transfer import PlatformRow

# Platform -> which part of the split, and its groups.
Judged = dict[str, tuple[str, Sequence[Group]]]


def to_judge(groups: Sequence[Group], lesson: Lesson, learned: Sequence[str]) -> Judged:
    """Each platform's test workloads, or those of validation where it has none that were not learned from.

    Args:
        learned: keys of the workloads that were learned from before.
    """
    split = load_split()
    found: Judged = {}
    taught = {group.workload.key for group in lesson.labelled}
    seen = {*learned, *taught, *(group.workload.key for group in lesson.validation)}
    for platform in dict.fromkeys(group.platform for group in groups):
        parts = split.divide(group for group in groups if group.platform == platform)
        unseen = [group for group in parts[TEST] if group.workload.key not in seen]
        listed = [group for group in unseen if split.occurrences(group.workload.key)]
        stopped_by = [group for group in parts[VALIDATION] if group.workload.key not in taught]
        found[platform] = (TEST, listed) if listed else (VALIDATION, stopped_by)
    if not found.get(lesson.platform, ("", ()))[1]:
        found[lesson.platform] = (VALIDATION, lesson.validation)
    return {platform: entry for platform, entry in found.items() if entry[1]}


def judge_platforms(judged: Judged, before: CostModel, after: CostModel) -> tuple[PlatformRow, ...]:
    """The figures of two models on each platform."""
    rows = []
    for platform, (part, groups) in judged.items():
        old, new = (_figures(model, part, groups) for model in (before, after))
        rows.append(PlatformRow(platform, part, old.workloads, old.top_1, new.top_1, old.top_5, new.top_5))
    return tuple(rows)


def _figures(model: CostModel, part: str, groups: Sequence[Group]) -> Evaluation:
    return evaluate(rank(model, groups, load_split() if part == TEST else None))
