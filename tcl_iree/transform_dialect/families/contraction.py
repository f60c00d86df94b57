"""Contractions whose result is contiguous along a dimension of one operand: register tiles straight from memory.

Lanes run along the result's innermost dimension, rows along a dimension of the other operand. In each workgroup:

    for each panel of lanes (narrower panels for what is left over)
      for each block of k (optional)         # accumulators then rest in a buffer between blocks
        copy the operand's panel (optional)  # contiguous, so that rows of k do not fight over cache sets and pages
        for each tile of rows
          for k: accumulators(rows x lanes) += column x row

With `k_outer`, blocks of k come first and panels inside: a block of the other operand then stays in the cache for all
panels, and a matrix that is used once, as in a product with a vector, is read in the order it lies in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from iree.compiler import ir

from tcl_iree.target import Target
from tcl_iree.transform_dialect.backend import lower_to_vectors_and_buffers
from tcl_iree.transform_dialect.family import Decision
from tcl_iree.transform_dialect.fused_ops import FusedOps, segment_widths
from tcl_iree.transform_dialect.register_tiles import RegisterTiles, TileDims
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import Script
from tcl_iree.transform_dialect.sizes import divisors, largest_divisor, power_below, spread
from tcl_iree.transform_dialect.view import View, element_bytes, plain_loops, view_of
from tcl_iree.workload.model import Workload

# Up to this many rows, a product is as good as one with a vector: wide tiles, short blocks of k.
_FEW_ROWS = 4


@dataclass(frozen=True)
class Dims(TileDims):
    """The loops of a contraction by what they do.

    Lanes run along the result's innermost dimension; rows are the largest loop that only the other operand has.

    Attributes:
        k: the reduction.
        panel: position of the operand that has the lanes.
    """

    k: int
    panel: int


@cache
def contraction_dims(workload: Workload) -> tuple[View, Dims] | str:
    """The view and loops of a contraction this family can schedule, or why it cannot."""
    view = view_of(workload)
    if isinstance(view, str):
        return view
    if len(view.inputs) != 2 or "mul" not in view.op.body or "add" not in view.op.body:
        return "the root is not a sum of products of two tensors"
    operands = [plain_loops(operand) for operand in view.inputs]
    if None in operands or len(view.reductions) != 1:
        return "the operands are not addressed by one loop each, or there is not just one reduction"
    first, second = (set(loops or []) for loops in operands)
    if not view.output_loops:
        return "the result has no loops"
    lanes = view.output_loops[-1]
    if (lanes in first) == (lanes in second):
        return "the result's innermost dimension is not of one operand alone"
    panel = 0 if lanes in first else 1
    only_other = (second - first if panel == 0 else first - second) - set(view.reductions)
    if not only_other:
        return "the other operand has no dimension of its own"
    rows = max(only_other, key=lambda loop: (view.size(loop), -loop))
    extra = tuple(loop for loop in view.output_loops if loop not in (lanes, rows))
    if plain_loops(view.inputs[panel])[-1] != lanes:  # type: ignore[index]
        return "the operand with the lanes is not contiguous along them"
    return view, Dims(lanes, rows, extra, view.reductions[0], panel)


class Contraction(RegisterTiles[Dims]):
    """Register tiles of rows x lanes, panels copied or not, k blocked or not."""

    name = "contraction"

    def dims(self, workload: Workload) -> tuple[View, Dims] | str:
        """See `RegisterTiles`."""
        return contraction_dims(workload)

    def decisions(self, workload: Workload, target: Target) -> tuple[Decision, ...]:
        """See `Family`."""
        view, dims = self.found(workload)
        limits = self.limits(view, target)
        lanes, rows, k = view.size(dims.lanes), view.size(dims.rows), view.size(dims.k)
        few = rows <= _FEW_ROWS
        widths = [limits.lanes * factor for factor in ((1, 2, 4, 8) if few else (1, 2, 4))]
        fitting = [width for width in widths if width <= lanes] or [power_below(lanes)]
        blocks = [0, *(size for size in divisors(k) if (4 if few else 24) <= size <= 512 and size < k)]
        return (
            Decision("extra_workgroup", spread(divisors(dims.largest_extra(view)), 6)),
            Decision("row_workgroup", spread([size for size in divisors(rows) if size >= min(rows, 4)], 10)),
            Decision(
                "lane_workgroup", spread([size for size in divisors(lanes) if size >= min(lanes, limits.lanes)], 10)
            ),
            Decision("rows", tuple(size for size in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14) if size <= rows)),
            Decision("lanes", tuple(fitting)),
            Decision("k_block", spread(blocks, 8)),
            Decision("k_step", tuple(size for size in ((1, 2, 4, 8) if few else (1, 2, 4)) if k % size == 0)),
            Decision("k_outer", (False, True)),
            Decision("copy", (False, True)),
        )

    def why_illegal(self, schedule: Schedule, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        view, dims = self.found(workload)
        block = schedule["k_block"] or view.size(dims.k)
        if reason := self.why_not_tile(schedule, view, dims, target):
            return reason
        if block % schedule["k_step"]:
            return "k_step does not divide the block of k"
        if schedule["k_outer"] and (not schedule["k_block"] or schedule["lane_workgroup"] % schedule["lanes"]):
            return "with k outermost there must be blocks of k, and panels of one width"
        # Every panel width has buffers of its own.
        lanes = sum(segment_widths(schedule["lane_workgroup"], schedule["lanes"]))
        stack = 0
        if schedule["copy"]:
            stack += block * lanes * element_bytes(view.inputs[dims.panel])
        if schedule["k_block"] and view.chain:
            held = schedule["lane_workgroup"] if schedule["k_outer"] else lanes
            stack += schedule["row_workgroup"] * held * element_bytes(view.output)
        return self.limits(view, target).why_not_stack(stack)

    def emit(self, script: Script, schedule: Schedule, workload: Workload, target: Target) -> None:
        """See `Family`."""
        view, dims = self.found(workload)
        _Emitter(script, schedule, view, dims).emit()
        lower_to_vectors_and_buffers(script)


class _Emitter:
    """Writes one schedule; the script's handles are state, so this is an object."""

    def __init__(self, script: Script, schedule: Schedule, view: View, dims: Dims) -> None:
        self.script, self.schedule, self.view, self.dims = script, schedule, view, dims
        self.ops = FusedOps(script, view)

    def emit(self) -> None:
        script, dims, view = self.script, self.dims, self.view
        script.phase("The ops of the dispatch.")
        self.ops.find()
        self._order_loops()
        script.phase("Distribute to workgroups.")
        workgroup = dims.workgroup(self.schedule, view)
        self.ops.distribute(workgroup)
        script.phase("Panels of lanes, narrower ones for what is left over.")
        if taken := {loop: 1 for loop in dims.extra if workgroup[loop] > 1}:
            self.ops.tile_parallel(taken, "extra")
        if self.schedule["k_outer"]:
            self._k_outer()
        else:
            segments = self.ops.segment(dims.lanes, self.schedule["lane_workgroup"], self.schedule["lanes"])
            if self.schedule["k_block"]:
                self._blocked(segments)
            else:
                self._unblocked(segments)
        self.ops.tile_result_fill(dims.lanes, self.schedule["lane_workgroup"], self.schedule["lanes"])
        script.canonicalize()

    def _order_loops(self) -> None:
        """The vectorizer wants the first operand's parallel loops first."""
        first = set(plain_loops(self.view.inputs[0]) or [])
        parallel = [loop for loop in range(len(self.view.op.loops)) if loop not in self.view.reductions]
        own = [loop for loop in parallel if loop in first]
        order = own + [loop for loop in parallel if loop not in own] + self.view.reductions
        self.ops.reorder_root(order)

    def _unblocked(self, segments: list[int]) -> None:
        script, dims = self.script, self.dims
        for number, _ in enumerate(segments):
            script.phase(f"Panel {number}: rows, then k.")
            if self.schedule["copy"]:
                self._copy_panel(number, self.view.size(dims.k))
            loop = self.ops.tile_parallel({dims.rows: self.schedule["rows"]}, "rows", number)[0]
            self.ops.tile_root({dims.k: self.schedule["k_step"]}, "k", number)
            self._peel_rows(loop)

    def _blocked(self, segments: list[int]) -> None:
        script, dims, view = self.script, self.dims, self.view
        self._keep_accumulators(len(segments))
        block, step, rows = self.schedule["k_block"], self.schedule["k_step"], self.schedule["rows"]
        for number, _ in enumerate(segments):
            script.phase(f"Panel {number}: blocks of k, rows, then k.")
            if self.ops.fill:
                self._peel_rows(self.ops.tile_fill({dims.rows: rows}, "zero", number)[0])
            self.ops.tile_root({dims.k: block}, "k_block", number)
            if self.schedule["copy"]:
                self._copy_panel(number, block)
            row_loop = self.ops.tile_root({dims.rows: rows}, "rows", number)[0]
            self.ops.tile_root({dims.k: step}, "k", number)
            self._peel_rows(row_loop)
            if view.chain:
                self._peel_rows(self.ops.tile_chain({dims.rows: rows}, "results", number)[0])

    def _k_outer(self) -> None:
        script, dims, schedule = self.script, self.dims, self.schedule
        self._keep_accumulators(1)
        script.phase("Blocks of k, panels of lanes, rows, then k.")
        panel = {dims.lanes: schedule["lanes"]} if schedule["lanes"] < schedule["lane_workgroup"] else {}
        rows = {dims.rows: schedule["rows"]}
        if self.ops.fill:
            if panel:
                self.ops.tile_fill(panel, "zero", 0)
            self._peel_rows(self.ops.tile_fill(rows, "zero", 0)[0])
        self.ops.tile_root({dims.k: schedule["k_block"]}, "k_block", 0)
        if panel:
            self.ops.tile_root(panel, "panel", 0)
        if schedule["copy"]:
            self._copy_panel(0, schedule["k_block"])
        row_loop = self.ops.tile_root(rows, "rows", 0)[0]
        self.ops.tile_root({dims.k: schedule["k_step"]}, "k", 0)
        self._peel_rows(row_loop)
        if self.view.chain:
            if panel:
                self.ops.tile_chain(panel, "results", 0)
            self._peel_rows(self.ops.tile_chain(rows, "results", 0)[0])

    def _keep_accumulators(self, segments: int) -> None:
        """Between blocks of k accumulators rest in the result, or, if it is computed from them, in a buffer."""
        if not self.view.chain:
            return
        self.script.phase("Accumulators get a buffer of their own between blocks of k.")
        for number in range(segments):
            self.script.copy_operand(self.ops.root[number], len(self.view.op.operands) - 1, "accumulators")
        self.script.canonicalize()
        self.ops.find_again(segments)

    def _copy_panel(self, number: int, block: int) -> None:
        panel = self.view.inputs[self.dims.panel]
        copied = self.script.copy_operand(self.ops.root[number], self.dims.panel, "panel")
        step = largest_divisor(block, 8)
        loops = plain_loops(panel) or []
        self.script.tile(copied, [step if loop == self.dims.k else 0 for loop in loops], "panel")

    def _peel_rows(self, loop: ir.Value) -> None:
        if self.schedule["row_workgroup"] % self.schedule["rows"]:
            self.script.peel(loop, "rows")
