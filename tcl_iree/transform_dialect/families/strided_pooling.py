"""Pooling with a stride along image columns, where vectors along columns would have gaps: lanes are channels.

The image of a few channels is packed inside the dispatch so that channels are contiguous. In each workgroup:

    for each panel of channels, for each few rows of the result
      pack the rows of the image that they read
      for each row, for each tile of columns
        for each window position, for each column: accumulator(channels) op= image(position, channels)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod

from tcl_iree.target import Target
from tcl_iree.transform_dialect.backend import lower_to_vectors_and_buffers
from tcl_iree.transform_dialect.cpu_limits import cpu_limits
from tcl_iree.transform_dialect.families.window import why_no_window
from tcl_iree.transform_dialect.family import Decision, Family
from tcl_iree.transform_dialect.packed_ops import PackedOps
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import Script
from tcl_iree.transform_dialect.sizes import divisors, spread
from tcl_iree.transform_dialect.view import View, element_bytes, indices, view_of
from tcl_iree.workload.model import Workload

_LEAST_LANES = 4
# Columns that are packed at once: a square of the widest vectors is transposed in registers.
_TRANSPOSED = 16
# Columns that are reduced beside each other, each with an accumulator of its own.
_MOST_COLUMNS = 28


@dataclass(frozen=True)
class Dims:
    """The root's parallel loops by what they do.

    Attributes:
        lanes: channels.
        rows: image rows.
        columns: image columns, the result's innermost dimension.
        others: batches and the like; a workgroup has one of each.
        image: which of the root's inputs is the image.
    """

    lanes: int
    rows: int
    columns: int
    others: tuple[int, ...]
    image: int

    def workgroup(self, schedule: Schedule) -> dict[int, int]:
        """What one workgroup takes of every parallel loop it does not take whole."""
        taken = dict.fromkeys(self.others, 1)
        return taken | {self.lanes: schedule["lane_workgroup"], self.rows: schedule["row_workgroup"]}


@cache
def strided_pooling_dims(workload: Workload) -> tuple[View, Dims] | str:
    """The view and loops of a workload this family can schedule, or why it cannot."""
    view = view_of(workload)
    if isinstance(view, str):
        return view
    if reason := why_no_window(view):
        return reason
    if "mul" in view.op.body or all(op.role != "fill" for op in view.workload.ops):
        return "the root is a sum of products, or does not start from a constant"
    columns = view.output_loops[-1]
    images = [at for at, operand in enumerate(view.inputs) if any(columns in index for index in indices(operand))]
    if len(images) != 1:
        return "not one operand is the image"
    index = indices(view.inputs[images[0]])
    if index[-1].get(columns, 1) == 1:
        return "columns are contiguous in the image or have no stride"
    own = [loop for loop in view.output_loops if {loop: 1} in index and view.size(loop) % _LEAST_LANES == 0]
    rows = [loop for loop in view.output_loops[:-1] if any(loop in at and len(at) > 1 for at in index)]
    if not own or len(rows) != 1:
        return "there are no channels to vectorize, or the image has not two dimensions"
    lanes = max(own, key=lambda loop: (view.size(loop), loop))
    others = tuple(loop for loop in view.output_loops if loop not in (lanes, rows[0], columns))
    return view, Dims(lanes, rows[0], columns, others, images[0])


class StridedPooling(Family):
    """Lanes of channels from a packed image."""

    name = "strided_pooling"

    def why_not(self, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        if target.kind != "cpu":
            return "it is for CPUs"
        found = strided_pooling_dims(workload)
        return found if isinstance(found, str) else None

    def decisions(self, workload: Workload, target: Target) -> tuple[Decision, ...]:
        """See `Family`."""
        view, dims = _found(workload)
        channels, rows, columns = view.size(dims.lanes), view.size(dims.rows), view.size(dims.columns)
        wide = cpu_limits(target, view.output.dtype).lanes
        widths = [wide * factor for factor in (1, 2) if channels % (wide * factor) == 0]
        widths = widths or [next(width for width in (16, 8, _LEAST_LANES) if channels % width == 0)]
        multiples = [size for size in divisors(channels) if size % min(widths) == 0]
        return (
            Decision("lane_workgroup", spread(multiples, 6)),
            Decision("row_workgroup", spread(divisors(rows), 8)),
            Decision("lanes", tuple(widths)),
            Decision("rows", tuple(size for size in (1, 2, 3, 4, 7, 8) if size <= rows)),
            Decision("columns", spread([size for size in divisors(columns) if size <= _MOST_COLUMNS], 6)),
        )

    def why_illegal(self, schedule: Schedule, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        view, dims = _found(workload)
        if schedule["lane_workgroup"] % schedule["lanes"] or schedule["row_workgroup"] % schedule["rows"]:
            return "a workgroup does not have a whole number of panels"
        workgroup = dims.workgroup(schedule)
        if sum(size < view.size(loop) for loop, size in workgroup.items()) > 3:
            return "workgroups have three dimensions at most"
        limits = cpu_limits(target, view.output.dtype)
        multiples = [size for size in divisors(view.size(dims.lanes)) if size % schedule["lanes"] == 0]
        most = view.workgroups({**workgroup, dims.lanes: min(multiples), dims.rows: schedule["rows"]})
        if view.workgroups(workgroup) == 1:
            return "there must be several workgroups"
        image = _image_elements(view, dims, schedule["rows"]) * schedule["lanes"]
        result = schedule["columns"] * schedule["lanes"]
        return limits.why_not_workgroups(view.workgroups(workgroup), most) or limits.why_not_stack(
            image * element_bytes(view.inputs[dims.image]) + 2 * result * element_bytes(view.output)
        )

    def emit(self, script: Script, schedule: Schedule, workload: Workload, target: Target) -> None:
        """See `Family`."""
        view, dims = _found(workload)
        ops = PackedOps(script, view, dims.lanes, schedule["lanes"])
        script.phase("Pack channels: `op over (c, ..)` becomes pack, op over (panel, .., lane), unpack.")
        ops.pack_root()
        script.phase("Distribute to workgroups.")
        workgroup = dims.workgroup(schedule)
        ops.distribute(workgroup)
        script.phase("A panel of channels and a few rows at a time, with their packed part of the image.")
        panel = {dims.lanes: schedule["lanes"], dims.rows: schedule["rows"]}
        if taken := {loop: size for loop, size in panel.items() if size < workgroup[loop]}:
            ops.tile_tail(taken, "panel")
        script.phase("Tiles of columns.")
        ops.tile_tail({dims.rows: 1, dims.columns: schedule["columns"]}, "columns", packed=False)
        script.phase("One window position at a time, for all columns of a tile.")
        ops.tile_root(dict.fromkeys(view.reductions, 1), "window")
        (loop,) = ops.tile_root({dims.columns: 1}, "column")
        if schedule["columns"] > 1:
            script.unroll(loop, schedule["columns"], "column")
        script.phase("Pack by small squares, so that they are transposed in registers.")
        shape = view.inputs[dims.image].shape
        sizes = [1] * (len(shape) - 1) + [min(_TRANSPOSED, shape[-1])]
        _, loops = script.tile(ops.packed, sizes, "pack")
        if shape[-1] % sizes[-1]:
            script.peel(loops[-1], "pack")
        script.canonicalize()
        script.run_pass("iree-codegen-decompose-pack-unpack-ops")
        script.phase("Drop loops of one iteration.")
        script.canonicalize(fold_units=True)
        lower_to_vectors_and_buffers(script)


def _found(workload: Workload) -> tuple[View, Dims]:
    found = strided_pooling_dims(workload)
    assert not isinstance(found, str)
    return found


def _image_elements(view: View, dims: Dims, rows: int) -> int:
    """Elements of one channel's image that so many rows of the result read."""
    taken = {loop: view.size(loop) for loop in (*view.reductions, dims.columns)} | {dims.rows: rows}
    return prod(
        1 + sum(step * (taken.get(loop, 1) - 1) for loop, step in index.items())
        for index in indices(view.inputs[dims.image])
    )
