"""Programs that are thought about and never measured: as many as one likes, for nothing."""

from __future__ import annotations

from itertools import islice
from random import Random

from tcl_iree.learning.groups import Group
from tcl_iree.target import Target
from tcl_iree.transform_dialect.space import Space

USUAL = 32


def drawn_programs(group: Group, target: Target | None = None, count: int = USUAL) -> Group:
    """Random schedules of a group's workload whose times nobody knows; the group remembers them.

    Args:
        target: another than the group's.
        count: at most so many.
    """
    on = target or group.target

    def draw() -> Group:
        found = islice(Space(group.workload, on).samples(Random(f"{group.workload.key} drawn")), count)
        return Group.unmeasured(group.workload, on, list(found))

    return group.once((drawn_programs, on.key, count), draw)
