"""What CPU families with register tiles of rows x lanes have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Generic, TypeVar

from tcl_iree.target import Target
from tcl_iree.transform_dialect.cpu_limits import CpuLimits, cpu_limits
from tcl_iree.transform_dialect.family import Family
from tcl_iree.transform_dialect.schedule import Schedule, Value
from tcl_iree.transform_dialect.view import View, element_bytes
from tcl_iree.workload.model import Workload


@dataclass(frozen=True)
class TileDims:
    """The root's parallel loops by what they do.

    Attributes:
        lanes: runs along vectors.
        rows: runs along accumulators.
        extra: all others, taken one at a time.
    """

    lanes: int
    rows: int
    extra: tuple[int, ...]

    def largest_extra(self, view: View) -> int:
        """Trip count of the largest extra loop, the one a workgroup may take several of."""
        return max((view.size(loop) for loop in self.extra), default=1)

    def workgroup(self, schedule: Schedule, view: View) -> dict[int, int]:
        """What one workgroup takes of every parallel loop it does not take whole."""
        decisions = dict(schedule.decisions)
        largest = max(self.extra, key=view.size, default=None)
        taken = {loop: schedule["extra_workgroup"] if loop == largest else 1 for loop in self.extra}
        for loop, name in ((self.rows, "row_workgroup"), (self.lanes, "lane_workgroup")):
            if name in decisions:
                taken[loop] = schedule[name]
        return taken


D = TypeVar("D", bound=TileDims)


class RegisterTiles(Family, Generic[D]):
    """A CPU family whose schedules are register tiles of rows x lanes."""

    @abstractmethod
    def dims(self, workload: Workload) -> tuple[View, D] | str:
        """The view and loops of a workload, or why the family cannot serve it."""

    def why_not(self, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        if target.kind != "cpu":
            return "it is for CPUs"
        found = self.dims(workload)
        return found if isinstance(found, str) else None

    def found(self, workload: Workload) -> tuple[View, D]:
        """The view and loops of a workload that is served."""
        found = self.dims(workload)
        assert not isinstance(found, str)
        return found

    def limits(self, view: View, target: Target) -> CpuLimits:
        """The target's limits for what the root accumulates."""
        return cpu_limits(target, view.output.dtype)

    def why_not_tile(self, schedule: Schedule, view: View, dims: D, target: Target) -> str | None:
        """Why a register tile and its workgroup are too large or too small, or None if they are neither."""
        limits = self.limits(view, target)
        rows, lanes = schedule["rows"], schedule["lanes"]
        workgroup = dims.workgroup(schedule, view)
        if rows > workgroup.get(dims.rows, rows) or lanes > workgroup.get(dims.lanes, lanes):
            return "a register tile is larger than its workgroup's"
        if sum(size < view.size(loop) for loop, size in workgroup.items()) > 3:
            return "workgroups have three dimensions at most"
        accumulators, workgroups = _most(self, view.workload, target)
        return (
            limits.why_not_accumulators(rows, lanes)
            or limits.why_not_busy(rows, lanes, accumulators)
            or limits.why_not_workgroups(view.workgroups(workgroup), workgroups)
        )

    def why_not_alone(self, schedule: Schedule, view: View, dims: D, target: Target) -> str | None:
        """Why one workgroup cannot have all the work: what is left undistributed is not fused with what follows.

        Then the root's whole result is a buffer inside the dispatch, which must fit.
        """
        if not view.chain or view.workgroups(dims.workgroup(schedule, view)) > 1:
            return None
        return self.limits(view, target).why_not_stack(prod(view.output.shape) * element_bytes(view.output))


@lru_cache(maxsize=1024)
def _most(family: RegisterTiles[TileDims], workload: Workload, target: Target) -> tuple[int, int]:
    """The most accumulators of a register tile, and the most workgroups of busy ones, that can be chosen."""
    view, dims = family.found(workload)
    limits = family.limits(view, target)
    choices = {decision.name: decision.choices for decision in family.decisions(workload, target)}
    pairs = list(product(_numbers(choices["rows"]), _numbers(choices["lanes"])))
    tiles = [pair for pair in pairs if not limits.why_not_accumulators(*pair)] or pairs
    accumulators = max(limits.accumulators(*pair) for pair in tiles)
    busy = [pair for pair in tiles if not limits.why_not_busy(*pair, accumulators)]
    return accumulators, max(_most_workgroups(family.name, view, dims, choices, *pair) for pair in busy)


def _most_workgroups(
    family: str, view: View, dims: TileDims, choices: Mapping[str, tuple[Value, ...]], rows: int, lanes: int
) -> int:
    """How many workgroups there can be, in three dimensions, with this register tile."""
    least = {"row_workgroup": rows, "lane_workgroup": lanes}
    smallest, largest = {"rows": rows, "lanes": lanes}, {"rows": rows, "lanes": lanes}
    for name in (name for name in choices if name.endswith("_workgroup")):
        fitting = [size for size in _numbers(choices[name]) if size >= least.get(name, 1)] or [*_numbers(choices[name])]
        whole = [size for size in fitting if size % least.get(name, 1) == 0] or fitting
        smallest[name], largest[name] = min(whole), max(fitting)
    some, few = (dims.workgroup(Schedule(family, tuple(sizes.items())), view) for sizes in (smallest, largest))
    forced = {loop: size for loop, size in few.items() if size < view.size(loop)}
    free = sorted((loop for loop in some if loop not in forced), key=lambda loop: some[loop] / view.size(loop))
    return view.workgroups(forced | {loop: some[loop] for loop in free[: max(0, 3 - len(forced))]})


def _numbers(choices: tuple[Value, ...]) -> list[int]:
    return [choice for choice in choices if isinstance(choice, int)]
