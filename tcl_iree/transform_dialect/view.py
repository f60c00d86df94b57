"""A dispatch as schedules see it: the root op's loops, who addresses them, and the ops fused around it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod

from tcl_iree.workload.model import DTYPE_BYTES, Operand, StructuredOp, Workload

# One index expression: coefficient of each loop.
Index = dict[int, int]

_TERM = re.compile(r"d(\d+)(?: \* (\d+))?")


def indices(operand: Operand) -> list[Index]:
    """How loops address each dimension of an operand, `(d0, d1 * 2 + d3)` as `[{0: 1}, {1: 2, 3: 1}]`.

    What is not a sum of loops with positive factors gives an empty index.
    """
    return _indices(operand.map)


@cache
def _indices(of: str) -> list[Index]:
    inside = of.partition("->")[2].strip()[1:-1]
    return [_index(text.strip()) for text in inside.split(",")] if inside else []


def _index(text: str) -> Index:
    found = [_TERM.fullmatch(term) for term in text.split(" + ")]
    return {int(term[1]): int(term[2] or 1) for term in found if term} if all(found) else {}


def plain_loops(operand: Operand) -> list[int] | None:
    """The loops of an operand in order if each dimension is one loop, else None."""
    found = indices(operand)
    if any(len(index) != 1 or next(iter(index.values())) != 1 for index in found):
        return None
    return [next(iter(index)) for index in found]


@dataclass(frozen=True)
class View:
    """The root and its surroundings.

    Attributes:
        root: position of the root among the workload's ops.
        chain: positions of the consumers, each reading the one before it; the last writes the result.
        tail_loop: for each dimension of the root's result, the loop of the last op that runs over it.
    """

    workload: Workload
    root: int
    chain: tuple[int, ...]
    tail_loop: tuple[int, ...]

    @cached_property
    def op(self) -> StructuredOp:
        """The root."""
        return self.workload.ops[self.root]

    @property
    def tail(self) -> int:
        """Position of the op that writes the result."""
        return self.chain[-1] if self.chain else self.root

    @cached_property
    def inputs(self) -> list[Operand]:
        """What the root reads, scalars left out."""
        return [operand for operand in self.op.operands if not operand.is_output and operand.shape]

    @cached_property
    def output(self) -> Operand:
        """What the root writes."""
        return next(operand for operand in self.op.operands if operand.is_output)

    @cached_property
    def output_loops(self) -> list[int]:
        """The root's loop behind each dimension of its result."""
        loops = plain_loops(self.output)
        assert loops is not None
        return loops

    @cached_property
    def reductions(self) -> list[int]:
        """The root's reduction loops."""
        return [index for index, loop in enumerate(self.op.loops) if loop.kind == "reduction"]

    def size(self, loop: int) -> int:
        """Trip count of one of the root's loops."""
        return self.op.loops[loop].size

    def workgroups(self, sizes: dict[int, int]) -> int:
        """Number of workgroups if the root's parallel loops are distributed by these sizes."""
        return prod(-(-self.size(loop) // sizes.get(loop, self.size(loop))) for loop in self.output_loops)

    def tail_sizes(self, by_loop: dict[int, int]) -> list[int]:
        """Tile sizes of the root's parallel loops, written for the loops of the last op."""
        sizes = [0] * len(self.workload.ops[self.tail].loops)
        for dimension, loop in enumerate(self.output_loops):
            sizes[self.tail_loop[dimension]] = by_loop.get(loop, 0)
        return sizes

    def root_sizes(self, by_loop: dict[int, int]) -> list[int]:
        """Tile sizes written for the root's own loops."""
        return [by_loop.get(loop, 0) for loop in range(len(self.op.loops))]


@cache
def view_of(workload: Workload) -> View | str:
    """The view, or the reason there is none: the fused ops do not form a chain over the root's result."""
    ops = workload.ops
    root = next(index for index, op in enumerate(ops) if op.role == "root")
    output = [operand for operand in ops[root].operands if operand.is_output]
    written = plain_loops(output[0]) if len(output) == 1 else None
    if written is None:
        return "the root writes more than one result, or writes it by a pattern"
    if not all(index for operand in ops[root].operands for index in indices(operand)):
        return "the root's operands are addressed by more than sums of loops"
    if any(op.role == "producer" for op in ops):
        return "ops are fused before the root"
    chain: list[int] = []
    position = root
    dims = written  # the loop of the latest op behind each dimension of the root's result
    for index, op in enumerate(ops):
        if op.role != "consumer":
            continue
        readers = [operand for operand in op.operands if operand.producer == position and not operand.is_output]
        others = [operand for operand in op.operands if operand.producer not in (-1, position)]
        if not readers or others or any(loop.kind != "parallel" for loop in op.loops):
            return "the ops after the root are not a chain of elementwise ops"
        loops = plain_loops(readers[0])
        results = [operand for operand in op.operands if operand.is_output]
        before, written = written, plain_loops(results[0]) if len(results) == 1 else None
        if (
            loops is None
            or written is None
            or len(op.loops) != len(set(loops))
            or any(operand.map != readers[0].map for operand in readers)
        ):
            return "an op after the root reads its result by a pattern or writes more than one result"
        dims = [loops[before.index(loop)] for loop in dims]
        chain.append(index)
        position = index
    return View(workload, root, tuple(chain), tuple(dims))


def element_bytes(operand: Operand) -> int:
    """Bytes of one element."""
    return DTYPE_BYTES[operand.dtype]
