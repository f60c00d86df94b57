"""Convolutions straight from memory: lanes along the result's innermost dimension, nothing copied.

With images stored by channel lanes are image columns and rows are output channels; with channels stored last lanes are
output channels and rows are image columns. In each workgroup:

    for each image row, for each panel of lanes (narrower panels for what is left over)
      for each tile of rows
        for each block of input channels, for each window position, for k: accumulators(rows x lanes) += ..

Accumulators stay in registers throughout. Lanes must be contiguous, so they cannot be strided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from tcl_iree.target import Target
from tcl_iree.transform_dialect.backend import lower_to_vectors_and_buffers
from tcl_iree.transform_dialect.cpu_limits import CpuLimits
from tcl_iree.transform_dialect.family import Decision
from tcl_iree.transform_dialect.fused_ops import FusedOps, segment_widths
from tcl_iree.transform_dialect.names import GENERIC
from tcl_iree.transform_dialect.register_tiles import RegisterTiles, TileDims
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import Script
from tcl_iree.transform_dialect.sizes import divisors, power_below, spread
from tcl_iree.transform_dialect.view import View, indices, view_of
from tcl_iree.workload.model import Operand, Workload


@dataclass(frozen=True)
class Dims(TileDims):
    """The loops by what they do.

    Lanes are the result's innermost dimension, which one operand alone has; rows are a dimension of the other alone.

    Attributes:
        window: kernel positions and blocks of input channels, taken one at a time; none where only the stride tells it
            from a contraction.
        k: input channels.
        panel: position of the operand that has the lanes.
    """

    window: tuple[int, ...]
    k: int
    panel: int


@cache
def convolution_dims(workload: Workload) -> tuple[View, Dims] | str:
    """The view and loops of a convolution this family can schedule, or why it cannot."""
    view = view_of(workload)
    if isinstance(view, str):
        return view
    if len(view.inputs) != 2 or "mul" not in view.op.body or "add" not in view.op.body:
        return "the root is not a sum of products of two tensors"
    if not view.output_loops:
        return "the result has no loops"
    lanes = view.output_loops[-1]
    used = [{loop for index in indices(operand) for loop in index} for operand in view.inputs]
    if (lanes in used[0]) == (lanes in used[1]):
        return "the result's innermost dimension is not of one operand alone"
    panel = 0 if lanes in used[0] else 1
    if indices(view.inputs[panel])[-1].get(lanes) != 1:
        return "the operand with the result's innermost dimension is not contiguous along it"
    compound = {loop for operand in view.inputs for index in indices(operand) if len(index) > 1 for loop in index}
    window = tuple(loop for loop in view.reductions if loop in compound)
    plain = [loop for loop in view.reductions if loop not in window]
    strided = any(step != 1 for operand in view.inputs for index in indices(operand) for step in index.values())
    if not (window or strided or len(plain) > 1) or not plain:
        return "the root has neither window, stride nor several reductions, or no reduction beside a window"
    alone = [loop for loop in view.output_loops if loop in used[1 - panel] and loop not in used[panel]]
    if not alone:
        return "the other operand has no dimension of its own"
    k = max(plain, key=view.size) if window or strided else _contiguous(view.inputs[1 - panel], plain)
    if k is None:
        return "the other operand has no reduction"
    others = tuple(loop for loop in plain if loop != k)
    row = max(alone, key=lambda loop: (loop not in compound, view.size(loop), loop))
    extra = tuple(loop for loop in view.output_loops if loop not in (lanes, row))
    return view, Dims(lanes, row, extra, window + others, k, panel)


def _contiguous(operand: Operand, loops: Sequence[int]) -> int | None:
    """The one of some loops along which an operand lies most densely; None if it has none of them."""
    return next((loop for index in reversed(indices(operand)) for loop in index if loop in loops), None)


class Convolution(RegisterTiles[Dims]):
    """Register tiles of rows x lanes over every window position."""

    name = "convolution"

    def dims(self, workload: Workload) -> tuple[View, Dims] | str:
        """See `RegisterTiles`."""
        return convolution_dims(workload)

    def decisions(self, workload: Workload, target: Target) -> tuple[Decision, ...]:
        """See `Family`."""
        view, dims = self.found(workload)
        return tile_sizes(view, dims, self.limits(view, target))

    def why_illegal(self, schedule: Schedule, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        view, dims = self.found(workload)
        return (
            why_not_products(schedule, view.size(dims.lanes))
            or self.why_not_tile(schedule, view, dims, target)
            or self.why_not_alone(schedule, view, dims, target)
        )

    def emit(self, script: Script, schedule: Schedule, workload: Workload, target: Target) -> None:
        """See `Family`."""
        view, dims = self.found(workload)
        ops = FusedOps(script, view)
        script.phase("The ops of the dispatch.")
        ops.find()
        script.phase("Distribute to workgroups.")
        workgroup = dims.workgroup(schedule, view)
        ops.distribute(workgroup)
        script.phase("Image rows, then panels of lanes, narrower ones for what is left over.")
        if taken := {loop: 1 for loop in dims.extra if workgroup[loop] > 1}:
            ops.tile_parallel(taken, "extra")
        segments = ops.segment(dims.lanes, view.size(dims.lanes), schedule["lanes"])
        for number, _ in enumerate(segments):
            script.phase(f"Panel {number}: rows, blocks of input channels, window positions.")
            tile_panel(ops, schedule, dims, number)
        ops.tile_result_fill(dims.lanes, view.size(dims.lanes), schedule["lanes"])
        lower_products(script, schedule, dims)


def tile_sizes(view: View, dims: Dims, limits: CpuLimits) -> tuple[Decision, ...]:
    """How large workgroups, register tiles and blocks of input channels may be."""
    lanes, rows, k = view.size(dims.lanes), view.size(dims.rows), view.size(dims.k)
    widths = [limits.lanes * factor for factor in (1, 2, 4) if limits.lanes * factor <= lanes]
    return (
        Decision("extra_workgroup", spread(divisors(dims.largest_extra(view)), 6)),
        Decision("row_workgroup", spread([size for size in divisors(rows) if size >= min(rows, 4)], 6)),
        Decision("rows", tuple(size for size in (2, 3, 4, 5, 6, 7, 8, 10, 12, 14) if size <= rows) or (1,)),
        Decision("lanes", tuple(widths) or (power_below(lanes),)),
        Decision("k_block", spread([size for size in divisors(k) if size > 1], 6) or (1,)),
        Decision("k_step", tuple(size for size in (1, 2, 4) if k % size == 0)),
    )


def why_not_products(schedule: Schedule, lanes: int) -> str | None:
    """Why so many lanes of a workgroup cannot be cut into small matrix products, or None if they can."""
    rows, block = schedule["rows"], schedule["k_block"]
    left = schedule["row_workgroup"] % rows
    if 1 in (rows, left, block) or 1 in segment_widths(lanes, schedule["lanes"]):
        return "a loop of one iteration would be left, which the vectorizer cannot take"
    if block % schedule["k_step"]:
        return "k_step does not divide the block of k"
    return None


def tile_panel(ops: FusedOps, schedule: Schedule, dims: Dims, number: int) -> None:
    """Tile one panel of lanes down to single window positions: rows, blocks of input channels, the window."""
    loop = ops.tile_parallel({dims.rows: schedule["rows"]}, "rows", number)[0]
    if schedule["k_block"] < ops.view.size(dims.k):
        ops.tile_root({dims.k: schedule["k_block"]}, "k_block", number)
    if dims.window:
        ops.tile_root(dict.fromkeys(dims.window, 1), "window", number)
    if schedule["row_workgroup"] % schedule["rows"]:
        ops.script.peel(loop, "rows")


def lower_products(script: Script, schedule: Schedule, dims: Dims) -> None:
    """Lower what `tile_panel` leaves."""
    script.phase("Drop loops of one iteration; what is left are small matrix products.")
    script.canonicalize(fold_units=True)
    script.run_pass("iree-global-opt-convert-strided-contraction-to-contraction")
    kinds = ["parallel", "parallel", "reduction"]
    if _first_loop(dims) != min(dims.rows, dims.lanes):  # the vectorizer wants the first operand's loop first
        script.interchange_each(script.match_all([GENERIC], "product", kinds), [1, 0, 2], "product")
    script.tile(script.match_all([GENERIC], "product", kinds), [0, 0, schedule["k_step"]], "k")
    script.canonicalize()
    lower_to_vectors_and_buffers(script)


def _first_loop(dims: Dims) -> int:
    """The parallel loop that the first operand has."""
    return dims.lanes if dims.panel == 0 else dims.rows
