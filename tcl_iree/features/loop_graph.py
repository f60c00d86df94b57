"""The loops and tensors of one op as a script leaves it: a networkx graph, and what follows from it.

Nodes are the loops around the op, outermost first, the loops left inside them, and the op's tensors. An edge from a
loop to a tensor says how far apart in memory two iterations of the loop are; a tensor without an edge from a loop is
used again in each of its iterations. All numbers are arrays, one entry a candidate: one graph stands for all
candidates that take the same steps.
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import NamedTuple

import networkx as nx
import numpy as np

from tcl_iree.features.program import Nest
from tcl_iree.transform_dialect.view import indices
from tcl_iree.workload.model import DTYPE_BYTES, Operand, StructuredOp

LINE_BYTES = 64
INSIDE = "inside"
BUCKETS = 16


class Vectors(NamedTuple):
    """What is left inside all loops, as vectors.

    Attributes:
        along: extent of the loop that vectors run along; 1 where there is none.
        groups: vectors along it.
        total: vector operations for one statement of the op.
        strides: elements between two lanes, by tensor; 0 where all lanes see the same.
        loads: instructions that read a tensor once for each vector operation that needs it anew.
    """

    along: np.ndarray
    groups: np.ndarray
    total: np.ndarray
    strides: dict[tuple[str, int], np.ndarray]
    loads: dict[tuple[str, int], np.ndarray]


class LoopGraph:
    """One op of a dispatch with its loops, for many candidates.

    Args:
        op: the op as the workload has it.
        nest: what the script made of it.
        numbers: candidate x number of the nest.
    """

    def __init__(self, op: StructuredOp, nest: Nest, numbers: np.ndarray) -> None:
        self.op, self.nest = op, nest
        # What packs and unpacks data computes nothing, though it has the loops of the op it is for.
        self.moves = nest.role in ("pack", "unpack")
        self.flops = 0 if self.moves else op.flops
        values = numbers.T.astype(np.float64)
        self.count, self.depth = len(numbers), len(nest.around)
        # Iterations of each of the loops around: depth x candidate.
        self.trips = np.maximum(values[0 : 2 * self.depth : 2], 1.0)
        self._sizes = values[1 : 2 * self.depth : 2]
        # Extent of each of the op's loops inside the first so many loops around it: depth x loop x candidate.
        self.extents = np.full((self.depth + 1, len(op.loops), self.count), np.inf)
        self.extents[0] = np.array([loop.size for loop in op.loops], np.float64)[:, None]
        for depth, around in enumerate(nest.around):
            if around.origin >= 0:
                self.extents[depth + 1, around.origin] = np.maximum(self._sizes[depth], 1.0)
        np.minimum.accumulate(self.extents, axis=0, out=self.extents)
        left = self.extents[-1]
        for column, (origin, _) in enumerate(nest.inside, 2 * self.depth):
            left[origin] = np.clip(values[column], 1.0, left[origin])
        self._vectors: dict[int, Vectors] = {}
        self.tensors = [("tensor", number) for number, operand in enumerate(op.operands) if operand.shape]
        self._apart = {tensor: _strides(self.operand(tensor)) for tensor in self.tensors}
        self._footprints: dict[tuple[str, int], np.ndarray] = {}

    @cached_property
    def graph(self) -> nx.DiGraph:
        """Loops and tensors as nodes, strides on the edges."""
        graph = nx.DiGraph()
        for depth, around in enumerate(self.nest.around):
            graph.add_node(("loop", depth), trips=self.trips[depth], size=self._sizes[depth], kind=around.kind,
                           level=around.level, origin=around.origin)  # fmt: skip
        for number, extent in enumerate(self.extents[-1]):
            graph.add_node((INSIDE, number), trips=extent, size=np.ones(self.count), kind=self.op.loops[number].kind,
                           level=INSIDE, origin=number)  # fmt: skip
        loops = list(graph.nodes(data=True))
        for tensor in self.tensors:
            graph.add_node(tensor, operand=self.operand(tensor), width=self.width(tensor))
            apart = self._apart[tensor]
            for node, data in loops:
                if data["origin"] in apart:
                    graph.add_edge(node, tensor, stride=apart[data["origin"]] * data["size"])
        return graph

    def operand(self, tensor: tuple[str, int]) -> Operand:
        """The op's operand that a tensor node is."""
        return self.op.operands[tensor[1]]

    def width(self, tensor: tuple[str, int]) -> int:
        """Bytes of one of its elements."""
        return DTYPE_BYTES.get(self.operand(tensor).dtype, 4)

    @property
    def widest(self) -> int:
        """Bytes of the widest element."""
        return max(map(self.width, self.tensors), default=4)

    @cached_property
    def entered(self) -> np.ndarray:
        """How often what is inside each of the loops around runs: depth x candidate."""
        return np.multiply.accumulate(self.trips, axis=0)

    @property
    def runs(self) -> np.ndarray:
        """How often what is left inside all loops runs."""
        return self.entered[-1] if self.depth else np.ones(self.count)

    @cached_property
    def workgroups(self) -> np.ndarray:
        """How many workgroups the op is shared out to."""
        groups = np.ones(self.count)
        for depth, around in enumerate(self.nest.around):
            groups = groups * self.trips[depth] if around.level == "workgroup" else groups
        return groups

    @cached_property
    def points(self) -> np.ndarray:
        """Points of the op's iteration space inside the first so many loops: depth x candidate."""
        return self.extents.prod(axis=1)

    def footprint(self, tensor: tuple[str, int]) -> np.ndarray:
        """Elements of a tensor touched inside the first so many loops: depth x candidate."""
        if tensor not in self._footprints:
            self._footprints[tensor] = self._footprint(self.operand(tensor))
        return self._footprints[tensor]

    def _footprint(self, operand: Operand) -> np.ndarray:
        total = np.ones((self.depth + 1, self.count))
        for index, size in zip(indices(operand), operand.shape, strict=False):
            if not index:
                total *= float(size)
                continue
            span: np.ndarray | float = 1.0 - sum(index.values())
            for loop, factor in index.items():
                span = span + (factor * self.extents[:, loop] if factor > 1 else self.extents[:, loop])
            total *= np.minimum(span, float(size))
        return total

    @cached_property
    def bytes(self) -> np.ndarray:
        """Bytes of all tensors touched inside the first so many loops: depth x candidate."""
        parts = (self.footprint(tensor) * self.width(tensor) for tensor in self.tensors)
        return sum(parts, np.zeros((self.depth + 1, self.count)))

    @cached_property
    def intensity(self) -> np.ndarray:
        """Arithmetic operations for each byte touched inside the first so many loops: depth x candidate."""
        each = self.flops / max(1, self.op.points)
        return each * self.points / np.maximum(self.bytes, 1.0)

    def reuse(self, tensor: tuple[str, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the innermost loop that uses a tensor's elements again.

        Returns:
            Iterations between two uses, bytes of all tensors touched in between, and how often it uses them; zeros
            where no loop does.
        """
        apart, touched, times = (np.zeros(self.count) for _ in range(3))
        inner = np.ones(self.count)
        for depth in range(self.depth - 1, -1, -1):
            trips = self.trips[depth]
            if self.nest.around[depth].origin not in self._apart[tensor]:
                first = (times == 0) & (trips > 1)
                apart = np.where(first, inner, apart)
                touched = np.where(first, self.bytes[depth + 1], touched)
                times = np.where(first, trips, times)
            inner = inner * trips
        return apart, touched, times

    def vectors(self, lanes: int) -> Vectors:
        """What is left inside as vectors, along the innermost parallel loop of more than one iteration."""
        if lanes not in self._vectors:
            self._vectors[lanes] = self._as_vectors(lanes)
        return self._vectors[lanes]

    def _as_vectors(self, lanes: int) -> Vectors:
        extents, apart = self.extents[-1], self._apart
        along = np.ones(self.count)
        strides = {tensor: np.zeros(self.count) for tensor in self.tensors}
        for number, loop in enumerate(self.op.loops):
            if loop.kind == "parallel":
                inner = extents[number] > 1
                along = np.where(inner, extents[number], along)
                for tensor in self.tensors:
                    strides[tensor] = np.where(inner, apart[tensor].get(number, 0.0), strides[tensor])
        groups = np.ceil(along / lanes)
        loads = {}
        for tensor in self.tensors:
            read = extents[list(apart[tensor])].prod(axis=0)
            # Neighbours fill vectors; what does not move is spread over one; anything else comes element by element.
            loads[tensor] = np.where(strides[tensor] == 1, read / along * groups, read)
        return Vectors(along, groups, self.points[-1] / along * groups, strides, loads)

    def stride_histogram(self) -> np.ndarray:
        """How many pairs of loop and tensor have a stride of 0, 1, up to 2, 4, 8, ...: candidate x bucket.

        Loops of one iteration have no stride.
        """
        counts = np.zeros((self.count, BUCKETS))
        rows = np.arange(self.count)
        for node, data in self.graph.nodes(data=True):
            if node[0] == "tensor":
                continue
            runs = data["trips"] > 1
            for tensor in self.tensors:
                edge = self.graph.get_edge_data(node, tensor)
                stride = edge["stride"] if edge else np.zeros(self.count)
                bucket = np.where(stride > 0, 1 + np.ceil(np.log2(np.maximum(stride, 1.0))), 0)
                np.add.at(counts, (rows, np.minimum(bucket, BUCKETS - 1).astype(int)), runs)
        return counts


def _strides(operand: Operand) -> dict[int, float]:
    """Elements between two iterations of each of the op's loops."""
    found: dict[int, float] = {}
    for dim, index in enumerate(indices(operand)):
        inner = prod(operand.shape[dim + 1 :])
        for loop, factor in index.items():
            found[loop] = found.get(loop, 0.0) + factor * inner
    return found
