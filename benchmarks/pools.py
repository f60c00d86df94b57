"""Pools of measured programs that models are ranked by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tcl_iree.features.steps import ScriptText
from tcl_iree.learning.groups import Group
from tcl_iree.learning.split import signature

LEAST_POOL = 100


def large_pools(groups: Iterable[Group]) -> list[Group]:
    """Groups with so many programs that choosing among them says something."""
    return [group for group in groups if len(group) > LEAST_POOL]


def halves(groups: Sequence[Group]) -> tuple[list[Group], list[Group]]:
    """Two halves that have no computation in common: what says when to stop would flatter itself as a judge."""
    names = sorted({signature(group.workload) for group in groups})
    first = set(names[::2])
    return (
        [group for group in groups if signature(group.workload) in first],
        [group for group in groups if signature(group.workload) not in first],
    )


def searched_pools(groups: Iterable[Group]) -> list[Group]:
    """Large pools of what a search could propose today.

    Programs that their family wrote otherwise when they were measured are left out: no search meets them any more.
    """
    return large_pools(_written_today(group) for group in groups)


def _written_today(group: Group) -> Group:
    stale = [isinstance(candidate, ScriptText) for candidate in group.candidates]
    return group.part(np.flatnonzero(~np.array(stale))) if any(stale) else group
