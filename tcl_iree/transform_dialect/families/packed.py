"""Contractions and convolutions whose lanes are not contiguous in memory: one operand is packed inside the dispatch.

Lanes run along a loop that only one operand has, such as output channels. That operand's panel is packed so that lanes
are contiguous; rows run along a loop of the other operand, such as image columns. In each workgroup:

    for each panel of lanes
      for each block of k (optional; accumulators then rest in a buffer)
        pack the panel
        for each tile of rows
          for each window position, for k: accumulators(rows x lanes) += column x row
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod

from iree.compiler import ir

from tcl_iree.target import Target
from tcl_iree.transform_dialect.backend import lower_to_vectors_and_buffers
from tcl_iree.transform_dialect.family import Decision
from tcl_iree.transform_dialect.names import FILL, GENERIC, PACK, UNPACK
from tcl_iree.transform_dialect.packed_ops import PackedOps
from tcl_iree.transform_dialect.register_tiles import RegisterTiles, TileDims
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import Script
from tcl_iree.transform_dialect.sizes import divisors, largest_divisor, spread
from tcl_iree.transform_dialect.view import View, element_bytes, indices, plain_loops, view_of
from tcl_iree.workload.model import Workload

_MIN_LANES = 4
# Where so many lanes of 32 bits divide a loop, every CPU has whole vectors along it.
_WIDE_LANES = 16


@dataclass(frozen=True)
class Dims(TileDims):
    """The loops by what they do.

    Lanes are packed: only operand number `panel` has them. Rows are a loop of the other operand.

    Attributes:
        batch: the extra loops that the packed operand has too, so that each needs a panel of its own.
        window: reductions taken one at a time, such as a convolution's kernel positions.
        k: the reduction inside.
    """

    batch: tuple[int, ...]
    window: tuple[int, ...]
    k: int
    panel: int


@cache
def packed_dims(workload: Workload) -> tuple[View, Dims] | str:
    """The view and loops of a workload this family can schedule, or why it cannot."""
    view = view_of(workload)
    if isinstance(view, str):
        return view
    if len(view.inputs) != 2 or "mul" not in view.op.body or "add" not in view.op.body or not view.reductions:
        return "the root is not a sum of products of two tensors"
    used = [{loop for index in indices(operand) for loop in index} for operand in view.inputs]
    plain = [plain_loops(operand) for operand in view.inputs]
    alone = [
        (panel, loop)
        for panel in (0, 1)
        for loop in view.output_loops
        if plain[panel] is not None and loop in used[panel] and loop not in used[1 - panel]
    ]
    wide = [(panel, loop) for panel, loop in alone if view.size(loop) % _MIN_LANES == 0]
    # Not where the operand is contiguous along the result's own lanes: nothing is to be packed there.
    wide = [(panel, loop) for panel, loop in wide if (plain[panel] or [])[-1] != loop]
    if not wide:
        return "no loop of one operand alone is a multiple of the lanes and not contiguous already"
    panel, lanes = max(wide, key=lambda found: _worth(view, found[1]))
    others = [loop for loop in view.output_loops if loop in used[1 - panel] and loop not in used[panel]]
    if not others:
        return "the other operand has no loop of its own"
    rows = others[-1]
    k = max(view.reductions, key=lambda loop: (_is_plain(view, loop), view.size(loop), -loop))
    if not _is_plain(view, k):
        return "every reduction is part of a window"
    extra = tuple(loop for loop in view.output_loops if loop not in (lanes, rows))
    window = tuple(loop for loop in view.reductions if loop != k)
    batch = tuple(loop for loop in extra if loop in used[panel])
    return view, Dims(lanes, rows, extra, batch, window, k, panel)


def _worth(view: View, loop: int) -> tuple[int, bool, int, int]:
    """What is best as lanes comes last: whole vectors, results that lie along them, then many of them."""
    size = view.size(loop)
    return min(size & -size, _WIDE_LANES), loop == view.output_loops[-1], size, loop


def _is_plain(view: View, loop: int) -> bool:
    """Whether a loop always addresses a dimension by itself."""
    return all(len(index) == 1 for operand in view.inputs for index in indices(operand) if loop in index)


class Packed(RegisterTiles[Dims]):
    """Register tiles of rows x lanes from a packed panel."""

    name = "packed"

    def dims(self, workload: Workload) -> tuple[View, Dims] | str:
        """See `RegisterTiles`."""
        return packed_dims(workload)

    def decisions(self, workload: Workload, target: Target) -> tuple[Decision, ...]:
        """See `Family`."""
        view, dims = self.found(workload)
        limits = self.limits(view, target)
        lanes, rows, k = view.size(dims.lanes), view.size(dims.rows), view.size(dims.k)
        widths = [limits.lanes * factor for factor in (1, 2, 4) if lanes % (limits.lanes * factor) == 0]
        widths = widths or [next(width for width in (16, 8, _MIN_LANES) if lanes % width == 0)]
        window = prod(view.size(loop) for loop in dims.window)
        blocks = [0, *(size for size in divisors(k) if max(2, 32 // window) <= size < k)]
        multiples = [size for size in divisors(lanes) if size % min(widths) == 0]
        return (
            Decision("extra_workgroup", spread(divisors(dims.largest_extra(view)), 6)),
            Decision("row_workgroup", spread([size for size in divisors(rows) if size >= min(rows, 4)], 6)),
            Decision("lane_workgroup", spread(multiples, 8)),
            Decision("rows", tuple(size for size in (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 28) if size <= rows) or (1,)),
            Decision("lanes", tuple(widths)),
            Decision("k_block", spread(blocks, 10)),
            Decision("k_step", tuple(size for size in (1, 2, 4) if k % size == 0)),
        )

    def why_illegal(self, schedule: Schedule, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        view, dims = self.found(workload)
        lanes, rows = schedule["lanes"], schedule["rows"]
        block = schedule["k_block"] or view.size(dims.k)
        if reason := self.why_not_tile(schedule, view, dims, target):
            return reason
        if schedule["lane_workgroup"] % lanes:
            return "the workgroup's lanes are not a whole number of panels"
        if view.workgroups(dims.workgroup(schedule, view)) == 1:
            return "the whole operand would be packed at once; there must be several workgroups"
        if schedule["row_workgroup"] % rows == 1 or block == 1:
            return "a loop of one iteration would be left, which the vectorizer cannot take"
        if block % schedule["k_step"]:
            return "k_step does not divide the block of k"
        window = prod(view.size(loop) for loop in dims.window)
        stack = block * window * lanes * element_bytes(view.inputs[dims.panel])
        if schedule["k_block"]:
            accumulators = lanes * element_bytes(view.output) * schedule["row_workgroup"]
            if any(loop not in dims.batch for loop in dims.extra):
                accumulators *= schedule["extra_workgroup"]
            # Without a consumer to write the result, unpacking takes a second copy.
            stack += accumulators if view.chain else 2 * accumulators
        # The transposed tile of results.
        stack += rows * lanes * element_bytes(view.output)
        return self.limits(view, target).why_not_stack(stack)

    def emit(self, script: Script, schedule: Schedule, workload: Workload, target: Target) -> None:
        """See `Family`."""
        view, dims = self.found(workload)
        _Emitter(script, schedule, view, dims).emit()
        lower_to_vectors_and_buffers(script)


class _Emitter(PackedOps):
    """Writes one schedule."""

    def __init__(self, script: Script, schedule: Schedule, view: View, dims: Dims) -> None:
        super().__init__(script, view, dims.lanes, schedule["lanes"])
        self.schedule, self.dims = schedule, dims

    def emit(self) -> None:
        script, schedule, view, dims = self.script, self.schedule, self.view, self.dims
        script.phase("Pack the lanes: `op over (.., oc, ..)` becomes pack, op over (.., panel, .., lane), unpack.")
        self.pack_root()
        script.phase("Distribute to workgroups.")
        workgroup = dims.workgroup(schedule, view)
        self.distribute(workgroup)
        script.phase("Panels of lanes, each with its packed operand.")
        self._panels(workgroup)
        inner = {loop: 1 for loop in dims.extra if workgroup[loop] > 1 and loop not in dims.batch}
        inner[dims.rows] = schedule["rows"]
        if schedule["k_block"]:
            self._blocked(inner)
        else:
            self._unblocked(inner)
        self._finish()

    def _panels(self, workgroup: dict[int, int]) -> None:
        taken = {loop: 1 for loop in self.dims.batch if workgroup[loop] > 1}
        if workgroup[self.dims.lanes] > self.schedule["lanes"]:
            taken[self.dims.lanes] = self.schedule["lanes"]
        if taken:
            self.tile_tail(taken, "panel")

    def _unblocked(self, inner: dict[int, int]) -> None:
        self.script.phase("Rows, then window positions.")
        loops = self.tile_tail(inner, "rows", packed=False)
        self._take_window()
        self._peel_rows(loops, self.tail_sizes(inner))

    def _blocked(self, inner: dict[int, int]) -> None:
        script, dims = self.script, self.dims
        script.phase("Accumulators get a buffer of their own between blocks of k.")
        script.copy_operand(self.root, len(self.view.op.operands) - 1, "accumulators")
        script.canonicalize()
        packed_kinds = [loop.kind for loop in self.view.op.loops] + ["parallel"]
        (self.root,) = script.match([GENERIC], "root", 1, packed_kinds)
        (self.fill,) = script.match([FILL], "fill")
        (self.packed,) = script.match([PACK], "pack")
        (self.unpack,) = script.match([UNPACK], "unpack")
        if self.chain:
            kinds = ["parallel"] * len(self.view.workload.ops[self.view.tail].loops)
            self.chain = script.match([GENERIC], "consumer", len(self.chain), kinds)
        script.phase("Blocks of k with their packed panel, rows, then window positions.")
        fill_sizes = [inner.get(loop, 0) for loop in self.view.output_loops]
        self.fill, fill_loops = script.tile(self.fill, [*fill_sizes, 0], "zero")
        self._peel_rows(fill_loops, fill_sizes)
        block_loops = self.tile_root({dims.k: self.schedule["k_block"]}, "k_block")
        self.packed, _ = script.fuse(self.packed, block_loops[0], "pack")
        loops = self.tile_root(inner, "rows")
        self._take_window()
        self._peel_rows(loops, self.root_sizes(inner))
        loops = self.tile_tail(inner, "results", root=False)
        self._peel_rows(loops, self.tail_sizes(inner))

    def _take_window(self) -> None:
        if self.dims.window:
            self.tile_root(dict.fromkeys(self.dims.window, 1), "window")

    def _peel_rows(self, loops: list[ir.Value], sizes: list[int]) -> None:
        """Rows is the only tiled loop whose size need not divide its extent."""
        if self.schedule["row_workgroup"] % self.schedule["rows"]:
            tiled = [size for size in sizes if size]
            self.script.peel(loops[tiled.index(self.schedule["rows"])], "rows")

    def _finish(self) -> None:
        script, dims, view = self.script, self.dims, self.view
        script.phase("Pack by small tiles, so that they are transposed in registers.")
        panel_loops = plain_loops(view.inputs[dims.panel]) or []
        block = self.schedule["k_block"] or view.size(dims.k)
        step = 1 if dims.window else largest_divisor(block, 16)
        # A window's innermost positions lie side by side in memory: take them together.
        taken = dict.fromkeys(dims.window[:-1], 1) | {dims.k: step}
        script.tile(self.packed, [taken.get(loop, 0) for loop in panel_loops], "pack")
        script.canonicalize()
        script.run_pass("iree-codegen-decompose-pack-unpack-ops")
        script.phase("Drop loops of one iteration; what is left is a small matrix product.")
        script.canonicalize(fold_units=True)
        script.run_pass("iree-global-opt-convert-strided-contraction-to-contraction")
        product = script.match_all([GENERIC], "product", ["parallel", "reduction", "parallel"])
        if dims.panel == 0:  # the vectorizer wants the first operand's parallel loop first
            script.interchange_each(product, [2, 0, 1], "product")
            product = script.match_all([GENERIC], "product", ["parallel", "parallel", "reduction"])
            script.tile(product, [0, 0, self.schedule["k_step"]], "k")
        else:
            script.tile(product, [0, self.schedule["k_step"], 0], "k")
        script.canonicalize()
