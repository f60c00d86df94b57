"""What CPU families with register tiles of rows x lanes have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import prod
from typing import Generic, TypeVar

from tcl_iree.target import Target
from tcl_iree.transform_dialect.cpu_limits import CpuLimits, cpu_limits
from tcl_iree.transform_dialect.family import Family
from tcl_iree.transform_dialect.schedule import Schedule
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
        most = view.workgroups(dict.fromkeys(workgroup, 1))
        return (
            limits.why_not_accumulators(rows, lanes)
            or limits.why_not_busy(rows, lanes, view.size(dims.rows), view.size(dims.lanes))
            or limits.why_not_workgroups(view.workgroups(workgroup), most)
        )

    def why_not_alone(self, schedule: Schedule, view: View, dims: D, target: Target) -> str | None:
        """Why one workgroup cannot have all the work: what is left undistributed is not fused with what follows.

        Then the root's whole result is a buffer inside the dispatch, which must fit.
        """
        if not view.chain or view.workgroups(dims.workgroup(schedule, view)) > 1:
            return None
        return self.limits(view, target).why_not_stack(prod(view.output.shape) * element_bytes(view.output))
