"""Tile a root together with what is fused to it: its fill before, its elementwise consumers after."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from tcl_iree.transform_dialect.names import FILL, GENERIC
from tcl_iree.transform_dialect.script import Script
from tcl_iree.transform_dialect.sizes import power_below
from tcl_iree.transform_dialect.view import View


def segment_widths(extent: int, width: int) -> list[int]:
    """Widths that cover an extent: as many of `width` as fit, then ever smaller powers of two for the rest."""
    widths: list[int] = []
    while extent:
        width = min(width, power_below(extent))
        widths.append(width)
        extent %= width
    return widths


class FusedOps:
    """Handles of a dispatch's root, fill and consumer chain, in as many copies as there are segments.

    A root with consumers has its fill pulled in beside it, so that accumulators start in registers. A root that
    writes the result itself accumulates there: its fill stays outside and is tiled on its own by `tile_result_fill`.

    Attributes:
        root, fill: one handle a segment; `fill` is empty where there is none to pull in.
        chain: the consumers of each segment.
    """

    def __init__(self, script: Script, view: View) -> None:
        self.script, self.view = script, view
        self.root: list[ir.Value] = []
        self.fill: list[ir.Value] = []
        self.chain: list[list[ir.Value]] = []
        # The root's loops as the script has ordered them.
        self._order = list(range(len(view.op.loops)))
        self._fuses_fill = bool(view.chain) and any(op.role == "fill" for op in view.workload.ops)

    def find(self) -> None:
        """Match every op of the dispatch, and make the root a generic."""
        handles: dict[int, ir.Value] = {}
        kinds: dict[str, list[int]] = {}
        for index, op in enumerate(self.view.workload.ops):
            kinds.setdefault(op.kind, []).append(index)
        for kind, positions in kinds.items():
            name = {FILL: "fill", self.view.op.kind: "root"}.get(kind, "consumer")
            found = self.script.match([kind], name, len(positions))
            handles |= dict(zip(positions, found, strict=True))
        root = handles[self.view.root]
        if self.view.op.kind != GENERIC:
            root = self.script.generalize(root, "root")
        self.root = [root]
        self.fill = [handle for index, handle in handles.items() if self.view.workload.ops[index].role == "fill"]
        self.chain = [[handles[index] for index in self.view.chain]]

    def reorder_root(self, order: Sequence[int]) -> None:
        """Put the root's loops in another order; tile sizes go on being given by the original loops."""
        if list(order) != self._order:
            self.root = [self.script.interchange(self.root[0], order, "root")]
            self._order = list(order)

    def distribute(self, sizes: dict[int, int]) -> None:
        """Tile the last op over workgroups and pull all others in."""
        whole = all(sizes.get(loop, 0) in (0, self.view.size(loop)) for loop in self.view.output_loops)
        if whole:  # one workgroup still needs a loop to carry it: tile an outer loop by its whole size
            sizes = {self.view.output_loops[0]: self.view.size(self.view.output_loops[0])}
        else:
            sizes = {loop: size for loop, size in sizes.items() if size < self.view.size(loop)}
        last = self.chain[0][-1] if self.chain[0] else self.root[0]
        given = self.view.tail_sizes(sizes) if self.chain[0] else self._root_sizes(sizes)
        tiled, loop = self.script.tile_forall(last, given, "workgroup")
        self._pull_in(0, tiled, loop)
        if not self._fuses_fill:
            self.fill = []

    def tile_parallel(self, sizes: dict[int, int], name: str, segment: int = 0) -> list[ir.Value]:
        """Tile the last op by sequential loops and pull all others in; returns the loops."""
        last = self.chain[segment][-1] if self.chain[segment] else self.root[segment]
        given = self.view.tail_sizes(sizes) if self.chain[segment] else self._root_sizes(sizes)
        tiled, loops = self.script.tile(last, given, name)
        loops[-1] = self._pull_in(segment, tiled, loops[-1])
        return loops

    def tile_root(self, sizes: dict[int, int], name: str, segment: int) -> list[ir.Value]:
        """Tile the root alone."""
        self.root[segment], loops = self.script.tile(self.root[segment], self._root_sizes(sizes), name)
        return loops

    def tile_fill(self, sizes: dict[int, int], name: str, segment: int) -> list[ir.Value]:
        """Tile the fill alone."""
        given = [sizes.get(loop, 0) for loop in self.view.output_loops]
        self.fill[segment], loops = self.script.tile(self.fill[segment], given, name)
        return loops

    def tile_result_fill(self, lanes: int, extent: int, width: int) -> None:
        """Tile the fill that stayed outside, if there is one, by vectors along one loop of `extent`."""
        if self._fuses_fill or not any(op.role == "fill" for op in self.view.workload.ops):
            return
        (fill,) = self.script.match([FILL], "zero")
        _, loops = self.script.tile(fill, [width if loop == lanes else 1 for loop in self.view.output_loops], "zero")
        if extent % width:
            self.script.peel(loops[self.view.output_loops.index(lanes)], "zero")

    def tile_chain(self, sizes: dict[int, int], name: str, segment: int) -> list[ir.Value]:
        """Tile the consumers, but not the root behind them."""
        chain = self.chain[segment]
        chain[-1], loops = self.script.tile(chain[-1], self.view.tail_sizes(sizes), name)
        for position in range(len(chain) - 2, -1, -1):
            chain[position], loops[-1] = self.script.fuse(chain[position], loops[-1], name)
        return loops

    def segment(self, loop: int, extent: int, width: int) -> list[int]:
        """Cut a loop of `extent` into tiles of `width`, and what is left into ever narrower powers of two.

        Each width becomes a segment with code of its own, so that every vector is full:
        `500` by `32` becomes tiles of 32, then of 16, then of 4.

        Returns:
            The width of each segment.
        """
        widths = segment_widths(extent, width)
        for number, taken in enumerate(widths):
            rest = extent % taken
            if extent > taken:
                loops = self.tile_parallel({loop: taken}, "panel", number)
                if rest:
                    self.script.peel(loops[-1], "panel")
                    self.script.canonicalize()
                    self.find_again(number + 2)
            extent = rest
        return widths

    def find_again(self, segments: int) -> None:
        """Match all ops anew after loops were cut or shapes became static; they come in program order."""
        root_kinds = [self.view.op.loops[loop].kind for loop in self._order]
        self.root = self.script.match([GENERIC], "root", segments, root_kinds)
        if self._fuses_fill:
            self.fill = self.script.match([FILL], "fill", segments)
        self.chain = self._find_consumers(segments) if self.view.chain else [[] for _ in range(segments)]

    def _find_consumers(self, segments: int) -> list[list[ir.Value]]:
        """The chain of every segment; its ops all run over the same loops."""
        length = len(self.view.chain)
        kinds = [loop.kind for loop in self.view.workload.ops[self.view.tail].loops]
        found = self.script.match([GENERIC], "consumer", segments * length, kinds)
        return [found[start : start + length] for start in range(0, len(found), length)]

    def _root_sizes(self, sizes: dict[int, int]) -> list[int]:
        return [sizes.get(loop, 0) for loop in self._order]

    def _pull_in(self, segment: int, tiled: ir.Value, loop: ir.Value) -> ir.Value:
        chain = self.chain[segment]
        if chain:
            chain[-1] = tiled
            for position in range(len(chain) - 2, -1, -1):
                chain[position], loop = self.script.fuse(chain[position], loop, "consumer")
            self.root[segment], loop = self.script.fuse(self.root[segment], loop, "root")
        else:
            self.root[segment] = tiled
        if self.fill:
            self.fill[segment], loop = self.script.fuse(self.fill[segment], loop, "fill")
        return loop
