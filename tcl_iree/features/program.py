"""What a script has made of a dispatch so far: the ops that handles stand for, and how large their loops still are.

This is no second compiler. It follows what structure ops do to loops (tile, fuse, peel, pack, reorder) as far as that
is plain; where it loses track, an op's loops are unknown and only what the script itself says is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

from tcl_iree.transform_dialect.names import GENERIC, ONLINE_ATTENTION, PACK, UNPACK
from tcl_iree.transform_dialect.view import indices, plain_loops
from tcl_iree.workload.model import DTYPE_BYTES, Workload
from tcl_iree.workload.structure import ATTENTION

MADE = -1


@dataclass(frozen=True)
class Around:
    """One loop that a script has put around an op.

    Attributes:
        origin: the op's own loop that it cuts up; `MADE` if it runs over something the op does not have.
        kind: `parallel` or `reduction`.
        level: `workgroup`, `thread`, `warp` or `serial`.
        trips: iterations; 0 if not known.
        size: how many iterations of the op's own loop one of these covers.
    """

    origin: int
    kind: str
    level: str
    trips: int
    size: int


@dataclass(frozen=True)
class Nest:
    """One op as a script leaves it: the loops around it, outermost first, and what is left inside them.

    Attributes:
        op: position of the workload's op it came from.
        inside: each of the op's loops with what is left of it, which is what becomes vectors.
    """

    op: int
    role: str
    around: tuple[Around, ...]
    inside: tuple[tuple[int, int], ...]

    @property
    def count(self) -> int:
        """How many `numbers` there are."""
        return 2 * len(self.around) + len(self.inside)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Trips and size of each loop around, then the extents inside."""
        pairs = (number for loop in self.around for number in (loop.trips, loop.size))
        return (*pairs, *(extent for _, extent in self.inside))


@dataclass(eq=False)
class Axis:
    """One loop of an op.

    Attributes:
        origin: the workload op's loop it came from; `MADE` if the script made it.
        blocked: elements one iteration covers, where the loop was blocked by packing.
    """

    origin: int
    kind: str
    extent: int
    blocked: int = 1


@dataclass(eq=False)
class Piece:
    """One op of the dispatch as it stands now; peeling makes several of one.

    Attributes:
        position: of the workload's op it came from, or that it was made for.
        role: `root`, `fill`, `producer`, `consumer`, `pack` or `unpack`.
        around: the loops around it; the first `inherited` of them are those of ops it was fused to.
    """

    position: int
    role: str
    kind: str
    axes: list[Axis]
    element_bytes: int
    around: list[Around] = field(default_factory=list)
    inherited: int = 0

    def copy(self) -> Piece:
        """An equal piece that changes on its own."""
        return replace(self, axes=[replace(axis) for axis in self.axes], around=list(self.around))


@dataclass(eq=False)
class Handle:
    """What a script's value stands for.

    Attributes:
        what: `function`, `ops`, `loop`, `parameter` or `unknown`.
        pieces: the ops; those inside, for a loop.
        tile: for a loop, how its ops were tiled: axis by its origin, size, and extent before.
        depth: for a loop, how many loops there are around its first op, itself the last.
    """

    what: str = "unknown"
    pieces: list[Piece] = field(default_factory=list)
    tile: tuple[int, int, int] | None = None
    depth: int = 0


class Program:
    """The ops of a dispatch in program order."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self.pieces = [
            Piece(
                index,
                op.role,
                op.kind,
                [Axis(number, loop.kind, loop.size) for number, loop in enumerate(op.loops)],
                max((DTYPE_BYTES.get(operand.dtype, 4) for operand in op.operands if operand.is_output), default=4),
            )
            for index, op in enumerate(workload.ops)
        ]

    def match(self, kinds: tuple[str, ...], iterators: tuple[str, ...]) -> list[Piece]:
        """The ops of these kinds, in program order."""
        return [
            piece
            for piece in self.pieces
            if (piece.kind in kinds or (piece.kind == ATTENTION and ONLINE_ATTENTION in kinds))
            and (not iterators or tuple(axis.kind for axis in piece.axes) == iterators)
        ]

    def nests(self) -> tuple[Nest, ...]:
        """Every op as it stands now, in program order."""
        return tuple(
            Nest(
                piece.position,
                piece.role,
                tuple(piece.around),
                tuple((axis.origin, axis.extent * axis.blocked) for axis in piece.axes if axis.origin != MADE),
            )
            for piece in self.pieces
        )

    def tile(self, piece: Piece, sizes: tuple[int, ...], level: str = "serial") -> list[tuple[Axis, int, int]]:
        """Tile an op; returns for each tiled loop the axis, the size and the extent it had."""
        found = []
        for axis, size in zip(piece.axes, sizes, strict=False):
            if size > 0:
                before, trips = axis.extent, 0
                if before > 0:
                    trips = -(-before // size)
                    axis.extent = min(size, before)
                else:
                    axis.extent = size
                piece.around.append(Around(axis.origin, axis.kind, level, trips, size * axis.blocked))
                found.append((axis, size, before))
        return found

    def fuse(self, piece: Piece, loop: Handle) -> None:
        """Shrink a producer to what the ops of a loop read of it, and put it inside the loops around these."""
        for reader in loop.pieces:
            pairs = self._read_axes(piece, reader)
            if pairs:
                names = {axis.origin: own for own, axis in pairs}
                shared = [replace(entry, origin=names.get(entry.origin, MADE)) for entry in reader.around[: loop.depth]]
                piece.around[: piece.inherited] = shared
                piece.inherited = len(shared)
            for own, read in pairs:
                for axis in piece.axes:
                    if axis.origin == own:
                        axis.extent = min(axis.extent, -(-read.extent * read.blocked // axis.blocked))

    def _read_axes(self, piece: Piece, reader: Piece) -> list[tuple[int, Axis]]:
        """Pairs of a producer's loop and the reader's axis that runs over the same elements."""
        if reader.position == piece.position:  # packs and unpacks keep the names of the loops they were made from
            return [(axis.origin, axis) for axis in reader.axes if axis.origin != MADE]
        producer = self._workload.ops[piece.position]
        written = next((plain_loops(operand) for operand in producer.operands if operand.is_output), None)
        axes = {axis.origin: axis for axis in reader.axes}
        for operand in self._workload.ops[reader.position].operands:
            if operand.producer == piece.position and written is not None:
                pairs = zip(written, indices(operand), strict=False)
                found = [(own, axes.get(next(iter(index)))) for own, index in pairs if len(index) == 1]
                return [(own, axis) for own, axis in found if axis]
        return []

    def peel(self, loop: Handle) -> None:
        """Split off what a loop's tiles leave over: its ops appear once more, with the rest as their extent."""
        if not loop.tile or not loop.pieces:
            return
        origin, size, before = loop.tile
        rest = before % size
        if rest == 0:
            return
        twins = []
        at = loop.depth - 1
        for piece in loop.pieces:
            twin = piece.copy()
            if 0 <= at < len(piece.around):
                piece.around[at] = replace(piece.around[at], trips=before // size)
                twin.around[at] = replace(twin.around[at], trips=1, size=rest)
            for axis in twin.axes:
                if axis.origin == origin or piece is not loop.pieces[0]:
                    axis.extent = rest if axis.extent == size else axis.extent
            twins.append(twin)
        last = max((self.pieces.index(piece) for piece in loop.pieces if piece in self.pieces), default=-1)
        self.pieces[last + 1 : last + 1] = twins

    def pack(self, piece: Piece, sizes: tuple[int, ...]) -> None:
        """Block loops into outer and inner ones; a pack appears before, an unpack after."""
        result = [replace(axis) for axis in piece.axes if axis.kind == "parallel"]
        inner, panel = [], []
        for axis, size in zip(piece.axes, sizes, strict=False):
            if size > 0:
                inner.append(Axis(MADE, axis.kind, size))
                axis.extent, axis.blocked = -(-axis.extent // size), size
            if size > 0 or axis.kind == "reduction":
                panel.append(replace(axis))
        piece.kind, piece.axes = GENERIC, [*piece.axes, *inner]
        at = self.pieces.index(piece)
        self.pieces.insert(at, Piece(piece.position, "pack", PACK, panel, piece.element_bytes))
        self.pieces.insert(at + 2, Piece(piece.position, "unpack", UNPACK, result, piece.element_bytes))

    @staticmethod
    def interchange(piece: Piece, order: tuple[int, ...]) -> None:
        """Put loops into another order."""
        if sorted(order) == list(range(len(piece.axes))):
            piece.axes = [piece.axes[index] for index in order]

    def drop_units(self) -> None:
        """Drop loops of one iteration."""
        for piece in self.pieces:
            piece.axes = [axis for axis in piece.axes if axis.extent != 1]

    def operand_elements(self, piece: Piece, index: int) -> int:
        """Elements of one operand that an op's tile touches; 0 if that is not known."""
        operands = self._workload.ops[piece.position].operands
        if index >= len(operands):
            return 0
        extents = {axis.origin: axis.extent for axis in piece.axes}
        dims = [
            1 + sum(factor * (extents.get(loop, 1) - 1) for loop, factor in entry.items())
            for entry in indices(operands[index])
        ]
        return prod(dims)
