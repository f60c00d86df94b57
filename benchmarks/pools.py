"""Pools of measured programs that models are ranked by."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tcl_iree.features.steps import ScriptText
from tcl_iree.learning.groups import Group

LEAST_POOL = 100


def large_pools(groups: Iterable[Group]) -> list[Group]:
    """Groups with so many programs that choosing among them says something."""
    return [group for group in groups if len(group) > LEAST_POOL]


def searched_pools(groups: Iterable[Group]) -> list[Group]:
    """Large pools of what a search could propose today.

    Programs that their family wrote otherwise when they were measured are left out: no search meets them any more.
    """
    return large_pools(_written_today(group) for group in groups)


def _written_today(group: Group) -> Group:
    stale = [isinstance(candidate, ScriptText) for candidate in group.candidates]
    return group.part(np.flatnonzero(~np.array(stale))) if any(stale) else group
