"""Tile a root whose lanes are packed inside the dispatch, together with its pack, unpack, fill and consumers."""

from __future__ import annotations

from iree.compiler import ir

from tcl_iree.transform_dialect.names import FILL, GENERIC, PACK, UNPACK
from tcl_iree.transform_dialect.script import Script
from tcl_iree.transform_dialect.view import View


class PackedOps:
    """Handles of the ops that packing one loop of the root gives.

    The packed root has the lanes loop twice: panels outside, lanes as its last loop.

    Attributes:
        packed: the pack of the one operand that has the lanes.
        chain: the consumers, which read what is unpacked.
    """

    root: ir.Value
    packed: ir.Value
    fill: ir.Value
    unpack: ir.Value

    def __init__(self, script: Script, view: View, lanes: int, width: int) -> None:
        self.script, self.view = script, view
        self._lanes, self._width = lanes, width
        self.chain: list[ir.Value] = []

    def pack_root(self) -> None:
        """Pack the lanes: `op over (.., c, ..)` becomes pack, `op over (.., panel, .., lane)`, unpack."""
        script, view = self.script, self.view
        ops = view.workload.ops
        generics = [index for index, op in enumerate(ops) if op.kind == GENERIC]
        root = script.match([view.op.kind], "root", len(generics) if view.op.kind == GENERIC else 1)
        root = root[generics.index(view.root)] if view.op.kind == GENERIC else root[0]
        script.pack(root, view.root_sizes({self._lanes: self._width}), "root")
        script.simplify()
        (self.unpack,) = script.match([UNPACK], "unpack")
        (self.packed,) = script.match([PACK], "pack")
        (self.fill,) = script.match([FILL], "fill")
        self.root, *self.chain = script.match([GENERIC], "root", 1 + len(view.chain))

    def tail_sizes(self, sizes: dict[int, int]) -> list[int]:
        """Tile sizes of the root's parallel loops, written for the op that writes the result."""
        if self.chain:
            return self.view.tail_sizes(sizes)
        return [sizes.get(loop, 0) for loop in self.view.output_loops]

    def distribute(self, workgroup: dict[int, int]) -> None:
        """Tile the last op over workgroups and pull all others in."""
        view = self.view
        sizes = {loop: size for loop, size in workgroup.items() if size < view.size(loop)}
        tiled, loop = self.script.tile_forall(self._tail, self.tail_sizes(sizes), "workgroup")
        self._pull_in(tiled, loop)

    def tile_tail(self, sizes: dict[int, int], name: str, *, root: bool = True, packed: bool = True) -> list[ir.Value]:
        """Tile the last op by sequential loops and pull the others in; returns the loops.

        Args:
            root: whether the root and what it reads are pulled in as well.
            packed: whether the pack is among these.
        """
        tiled, loops = self.script.tile(self._tail, self.tail_sizes(sizes), name)
        loops[-1] = self._pull_in(tiled, loops[-1], root=root, packed=packed)
        return loops

    def root_sizes(self, sizes: dict[int, int]) -> list[int]:
        """Tile sizes written for the packed root's loops."""
        return [*self.view.root_sizes(sizes), 0]

    def tile_root(self, sizes: dict[int, int], name: str) -> list[ir.Value]:
        """Tile the root alone."""
        self.root, loops = self.script.tile(self.root, self.root_sizes(sizes), name)
        return loops

    @property
    def _tail(self) -> ir.Value:
        return self.chain[-1] if self.chain else self.unpack

    def _pull_in(self, tiled: ir.Value, loop: ir.Value, *, root: bool = True, packed: bool = True) -> ir.Value:
        script = self.script
        if self.chain:
            self.chain[-1] = tiled
            for position in range(len(self.chain) - 2, -1, -1):
                self.chain[position], loop = script.fuse(self.chain[position], loop, "consumer")
            self.unpack, loop = script.fuse(self.unpack, loop, "unpack")
        else:
            self.unpack = tiled
        if root:
            self.root, loop = script.fuse(self.root, loop, "root")
            if packed:
                self.packed, loop = script.fuse(self.packed, loop, "pack")
            self.fill, loop = script.fuse(self.fill, loop, "fill")
        return loop
