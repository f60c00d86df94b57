"""What was made for a workload on a target, kept for the next time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

Made = TypeVar("Made")
_KEPT = 64


class Recent(Generic[Made]):
    """Makes something for a workload on a target, once, and keeps the latest few: readers learn as they read."""

    def __init__(self, make: Callable[[Workload, Target], Made]) -> None:
        self._make = make
        self._kept: OrderedDict[tuple[str, Target], Made] = OrderedDict()

    def of(self, workload: Workload, target: Target) -> Made:
        """What was made, or is made now."""
        key = (workload.key, target)
        if key not in self._kept:
            self._kept[key] = self._make(workload, target)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]
