"""A dispatch as rows that do not depend on each other: which loop of each op runs over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod

from tcl_iree.transform_dialect.names import FILL, GENERIC
from tcl_iree.transform_dialect.view import plain_loops
from tcl_iree.workload.model import Loop, Operand, StructuredOp, Workload
from tcl_iree.workload.structure import SOFTMAX

_PARALLEL, _REDUCTION = "parallel", "reduction"


@dataclass(frozen=True)
class RowOp:
    """One op of a row-wise dispatch.

    Attributes:
        rows: its loop behind each row loop of the last op.
        contiguous: the loop along which its largest operand (its result, if it reduces nothing) lies in memory.
    """

    op: StructuredOp
    rows: tuple[int, ...]
    contiguous: int

    @property
    def iterators(self) -> tuple[str, ...]:
        """Kinds of its loops."""
        return tuple(loop.kind for loop in self.op.loops)

    @property
    def reduces(self) -> bool:
        """Whether it reduces over any loop."""
        return _REDUCTION in self.iterators

    @property
    def start(self) -> int:
        """Position of the op that makes what its first result starts from; -1 if none does."""
        return next(operand.producer for operand in self.op.operands if operand.is_output)

    @property
    def others(self) -> list[int]:
        """Loops that run over no rows."""
        return [loop for loop in range(len(self.op.loops)) if loop not in self.rows]


@dataclass(frozen=True)
class Rows:
    """The ops in program order, the last of which writes the result.

    Attributes:
        sizes: extent of each row loop, by loop of the last op; 0 for loops that run over no rows.
        row_lanes: whether rows lie next to each other in memory.
    """

    ops: tuple[RowOp, ...]
    sizes: tuple[int, ...]
    row_lanes: bool

    @property
    def tiled(self) -> int:
        """The row loop of the last op that tiles run along: the contiguous one, or else the innermost."""
        if self.row_lanes:
            reduction = next(op for op in self.ops if op.reduces)
            return self.last.rows[reduction.rows.index(reduction.contiguous)]
        return self.last.rows[-1]

    def readers(self, position: int) -> int:
        """How many operands are made by the op at a position; what each reads must become one before it is fused."""
        return sum(operand.producer == position for other in self.ops for operand in other.op.operands)

    @property
    def last(self) -> RowOp:
        """The op that writes the result."""
        return self.ops[-1]


@cache
def rows_of(workload: Workload) -> Rows | str:
    """The rows of a workload, or why it has none."""
    ops = _decomposed(workload)
    last = len(ops) - 1
    if any(op.kind not in (FILL, GENERIC) for op in ops) or ops[last].kind == FILL:
        return "it has ops other than fills and generics"
    if not any(loop.kind == _REDUCTION for op in ops for loop in op.loops):
        return "it reduces nothing"
    if sum(binding.access != "readonly" for binding in workload.bindings) > 1:
        return "it gives more than one result"
    if any(index.is_output and plain_loops(index) is None for op in ops for index in op.operands):
        return "a result is addressed by a pattern"
    alive = {loop: {last: loop} for loop, kind in enumerate(ops[last].loops) if kind.kind == _PARALLEL}
    for consumer in range(last, -1, -1):
        for operand in ops[consumer].operands:
            if operand.producer >= 0:
                for row, loops in list(alive.items()):
                    found = _producer_loop(ops[operand.producer], operand, loops.get(consumer))
                    if found is None or loops.setdefault(operand.producer, found) != found:
                        del alive[row]
    alive = {row: loops for row, loops in alive.items() if len(loops) == len(ops)}
    if not alive:
        return "no loop runs over rows that do not depend on each other"
    if reason := _why_unfit(ops):
        return reason
    described = [RowOp(op, tuple(loops[i] for loops in alive.values()), _contiguous(op)) for i, op in enumerate(ops)]
    sizes = tuple(loop.size if at in alive else 0 for at, loop in enumerate(ops[last].loops))
    reduction = next(op for op in described if op.reduces)
    if any(op.reduces and any(op.op.loops[loop].kind == _PARALLEL for loop in op.others) for op in described):
        return "a reduction gives more than one number a row"
    by_kind: dict[tuple[str, ...], tuple[tuple[int, ...], int, list[int]]] = {}
    for op in described:
        shape = (op.rows, op.contiguous, [op.op.loops[loop].size for loop in op.others])
        if op.op.kind == GENERIC and by_kind.setdefault(op.iterators, shape) != shape:
            return "ops of equal signature run over rows by different loops"
    return Rows(tuple(described), sizes, reduction.contiguous in reduction.rows)


def _why_unfit(ops: tuple[StructuredOp, ...]) -> str | None:
    for op in ops:
        if not any(loop.kind == _REDUCTION for loop in op.loops):
            continue
        if prod(loop.size for loop in op.loops if loop.kind == _REDUCTION) == 1:
            return "a reduction runs over one element, and may be gone when a script runs"
        if any(plain_loops(operand) is None for operand in op.operands):
            return "a reduction runs over windows"
        if sum(operand.is_output for operand in op.operands) > 1:
            return "a reduction gives more than one result"
        read = [set(plain_loops(operand) or ()) for operand in op.operands if not operand.is_output and operand.shape]
        if any(one - other and other - one for one in read for other in read):
            return "it is a contraction"
    return None


def _producer_loop(producer: StructuredOp, operand: Operand, loop: int | None) -> int | None:
    """The producer's parallel loop that makes what the consumer's `loop` reads."""
    read = plain_loops(operand)
    written = plain_loops(next(made for made in producer.operands if made.is_output))
    if read is None or written is None or loop not in read:
        return None
    return written[read.index(loop)]


def _contiguous(op: StructuredOp) -> int:
    reduces = any(loop.kind == _REDUCTION for loop in op.loops)
    operands = [operand for operand in op.operands if operand.is_output != reduces and operand.shape]
    largest = max(operands or op.operands, key=lambda operand: prod(operand.shape))
    loops = plain_loops(largest)
    return loops[-1] if loops else len(op.loops) - 1


def _decomposed(workload: Workload) -> tuple[StructuredOp, ...]:
    """The ops as a script meets them: IREE has turned a softmax into fill, maximum, fill, sum and quotient by then."""
    if workload.root.kind != SOFTMAX or len(workload.ops) != 1:
        return workload.ops
    loops = workload.root.loops
    source, result = workload.root.operands
    kept = [index for index, loop in enumerate(loops) if loop.kind == _PARALLEL]
    names = ", ".join(f"d{index}" for index in range(len(loops)))
    row_map = f"({names}) -> ({', '.join(f'd{index}' for index in kept)})"
    row_shape = tuple(loops[index].size for index in kept)
    row = Operand(row_shape, result.dtype, row_map, "op", False)
    whole = tuple(Loop(loop.size, _PARALLEL) for loop in loops)
    fill_map = f"({', '.join(f'd{i}' for i in range(len(kept)))}) -> ({', '.join(f'd{i}' for i in range(len(kept)))})"
    fill = StructuredOp(
        FILL,
        "fill",
        tuple(loops[index] for index in kept),
        (Operand(row_shape, result.dtype, fill_map, "empty", True),),
        "",
        0,
    )

    def read(producer: int, is_output: bool = False) -> Operand:
        return Operand(row.shape, row.dtype, row.map, row.source, is_output, producer)

    return (
        fill,
        StructuredOp(GENERIC, "producer", loops, (source, read(0, True)), "", 0),
        fill,
        StructuredOp(GENERIC, "root", loops, (source, read(1), read(2, True)), "", 0),
        StructuredOp(GENERIC, "consumer", whole, (source, read(1), read(3), result), "", 0),
    )
