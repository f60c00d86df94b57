"""Depthwise convolutions and pooling: every output point reduces a small window, channels do not mix.

In each workgroup, for each channel, for each tile of image rows x columns (narrower ones for what is left over):

    for each window position: accumulators(rows x columns) op= shifted tile of the image
"""

from __future__ import annotations

from functools import cache

from tcl_iree.target import Target
from tcl_iree.transform_dialect.backend import lower_to_vectors_and_buffers
from tcl_iree.transform_dialect.family import Decision
from tcl_iree.transform_dialect.fused_ops import FusedOps
from tcl_iree.transform_dialect.register_tiles import RegisterTiles, TileDims
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import Script
from tcl_iree.transform_dialect.sizes import divisors, power_below, spread
from tcl_iree.transform_dialect.view import View, indices, view_of
from tcl_iree.workload.model import Workload


@cache
def window_dims(workload: Workload) -> tuple[View, TileDims] | str:
    """The view and loops of a workload this family can schedule, or why it cannot."""
    view = view_of(workload)
    if isinstance(view, str):
        return view
    if reason := why_no_window(view):
        return reason
    *extra, rows, lanes = view.output_loops
    strided = any(index.get(lanes, 1) != 1 for operand in view.inputs for index in indices(operand))
    if strided and "mul" not in view.op.body:
        return "columns are strided, and only sums of products can be vectorized then"
    return view, TileDims(lanes, rows, tuple(extra))


def why_no_window(view: View) -> str | None:
    """Why a root is no reduction of windows of an image with rows and columns, or None if it is one."""
    if not view.reductions or not view.inputs:
        return "the root reduces nothing"
    windows = [{loop for index in indices(operand) if len(index) > 1 for loop in index} for operand in view.inputs]
    if not all(any(loop in window for window in windows) for loop in view.reductions):
        return "not every reduction is over a window"
    if len(view.output_loops) < 2:
        return "the result has no rows and columns"
    return None


class Window(RegisterTiles[TileDims]):
    """Register tiles of image rows x columns of one channel."""

    name = "window"

    def dims(self, workload: Workload) -> tuple[View, TileDims] | str:
        """See `RegisterTiles`."""
        return window_dims(workload)

    def decisions(self, workload: Workload, target: Target) -> tuple[Decision, ...]:
        """See `Family`."""
        view, dims = self.found(workload)
        limits = self.limits(view, target)
        lanes, rows = view.size(dims.lanes), view.size(dims.rows)
        widths = [width for width in (limits.lanes * f // 2 for f in (1, 2, 4, 8)) if 2 <= width <= lanes]
        return (
            Decision("extra_workgroup", spread(divisors(dims.largest_extra(view)), 10)),
            Decision("rows", tuple(size for size in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 28) if size <= rows)),
            Decision("lanes", tuple(widths) or (power_below(lanes),)),
        )

    def why_illegal(self, schedule: Schedule, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        view, dims = self.found(workload)
        return self.why_not_tile(schedule, view, dims, target) or self.why_not_alone(schedule, view, dims, target)

    def emit(self, script: Script, schedule: Schedule, workload: Workload, target: Target) -> None:
        """See `Family`."""
        view, dims = self.found(workload)
        ops = FusedOps(script, view)
        script.phase("The ops of the dispatch.")
        ops.find()
        script.phase("Distribute to workgroups.")
        workgroup = dims.workgroup(schedule, view)
        ops.distribute(workgroup)
        if taken := {loop: 1 for loop in dims.extra if workgroup[loop] > 1}:
            script.phase("One channel at a time.")
            ops.tile_parallel(taken, "extra")
        script.phase("Panels of columns, narrower ones for what is left over.")
        segments = ops.segment(dims.lanes, view.size(dims.lanes), schedule["lanes"])
        for number, _ in enumerate(segments):
            script.phase(f"Panel {number}: rows, window positions.")
            loop = ops.tile_parallel({dims.rows: schedule["rows"]}, "rows", number)[0]
            ops.tile_root(dict.fromkeys(view.reductions, 1), "window", number)
            if view.size(dims.rows) % schedule["rows"]:
                script.peel(loop, "rows")
        ops.tile_result_fill(dims.lanes, view.size(dims.lanes), schedule["lanes"])
        script.phase("Drop loops of one iteration.")
        script.canonicalize(fold_units=True)
        lower_to_vectors_and_buffers(script)
