"""What a script leaves, as rows behind its steps: loops around the root op, its tensors, what is left inside each op.

Steps say what a script does one after the other; that a tile fits a cache or its sums fit the registers follows from
many of them at once. These rows say it outright, from the loop graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from tcl_iree.features.loop_graph import LoopGraph
from tcl_iree.features.program import Nest
from tcl_iree.features.statements import statements_of
from tcl_iree.features.steps import Steps
from tcl_iree.features.vocabulary import COLUMNS
from tcl_iree.hardware import Hardware
from tcl_iree.workload.model import Workload

# Ops whose inside gets a row.
MOST_OPS = 4
# Tensors of the root op that get a row, the largest ones.
MOST_TENSORS = 4


class NestRows(NamedTuple):
    """Rows of candidates that take the same steps.

    Attributes:
        names: kind and role of each row.
        numbers: candidate x row x column.
    """

    names: list[tuple[str, str]]
    numbers: np.ndarray


def nest_rows(workload: Workload, hardware: Hardware, found: Sequence[Steps]) -> list[NestRows]:
    """The rows of each of `found`; nests of the same form are worked out together, whatever steps led to them."""
    forms: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    held: list[list[tuple[Nest, np.ndarray]]] = []
    for number, steps in enumerate(found):
        held.append(statements_of(steps)[:MOST_OPS])
        for place, (nest, _) in enumerate(held[-1]):
            forms.setdefault((place == 0, *_form(nest)), []).append((number, place))
    made: list[list[NestRows]] = [[NestRows([], np.empty(0))] * len(nests) for nests in held]
    for (first, *_), places in forms.items():
        nest = held[places[0][0]][places[0][1]][0]
        numbers = [held[number][place][1] for number, place in places]
        graph = LoopGraph(workload.ops[nest.op], nest, np.concatenate(numbers))
        names, values = _rows(graph, hardware, workload.flops, bool(first))
        start = 0
        for (number, place), part in zip(places, numbers, strict=True):
            made[number][place] = NestRows(names, values[start : start + len(part)])
            start += len(part)
    return [_joined(parts, len(steps.positions)) for parts, steps in zip(made, found, strict=True)]


def _form(nest: Nest) -> Iterator[object]:
    """What nests that differ only in numbers have in common."""
    yield from (nest.op, nest.role, len(nest.around))
    for loop in nest.around:
        yield from (loop.origin, loop.kind, loop.level)
    yield from (origin for origin, _ in nest.inside)


def _rows(
    graph: LoopGraph, hardware: Hardware, flops: int, with_loops: bool
) -> tuple[list[tuple[str, str]], np.ndarray]:
    names, numbers = [("nest:inside", graph.nest.role)], [_inside(graph, hardware, flops)]
    if with_loops:
        around, tensors = graph.nest.around, _largest(graph)
        names = (
            [(f"nest:{loop.level}", graph.nest.role) for loop in around] + [("nest:tensor", "")] * len(tensors) + names
        )
        numbers = [_around(graph, hardware), *(_tensor(graph, tensor, hardware) for tensor in tensors), *numbers]
    return names, np.concatenate(numbers, 1)


def _joined(parts: Sequence[NestRows], count: int) -> NestRows:
    numbers = [part.numbers for part in parts] or [np.zeros((count, 0, COLUMNS), np.float32)]
    return NestRows([name for part in parts for name in part.names], np.concatenate(numbers, 1))


def _logs(*columns: np.ndarray) -> np.ndarray:
    """Logarithms of columns, which come first."""
    return np.log2(np.maximum(np.stack(columns), 2.0**-16)) / 8.0


def _around(graph: LoopGraph, hardware: Hardware) -> np.ndarray:
    """Of the loops around the op.

    Iterations, points inside in all and of the whole, bytes inside beside both caches, work for each byte, whether it
    reduces, how much more than there is its iterations cover, how often what is inside runs, and how often the op's
    bytes would pass if nothing stayed from one run to the next.
    """
    loops, trips = graph.nest.around, graph.trips
    if not loops:
        return np.zeros((graph.count, 0, COLUMNS), np.float32)
    held, points, outer = graph.bytes[1:], graph.points[1:], graph.entered
    tiles = np.array([loop.origin >= 0 for loop in loops])[:, None]
    waste = np.where(tiles, trips * points / graph.points[:-1], 1.0)
    reduces = np.array([[float(loop.kind == "reduction")] for loop in loops])
    logs = _logs(
        trips, points, points / graph.points[0], held / max(1, hardware.l1_bytes), held / max(1, hardware.l2_bytes),
        graph.intensity[1:], outer, held * outer / np.maximum(graph.bytes[0], 1.0),
    )  # fmt: skip
    return _rows_of(
        logs[0], logs[1] / 2, logs[2] / 2, logs[3], logs[4], logs[5], np.broadcast_to(reduces, trips.shape),
        np.clip(waste - 1.0, 0.0, 1.0), logs[6] / 2, logs[7],
    )  # fmt: skip


def _largest(graph: LoopGraph) -> list[tuple[str, int]]:
    by_size = sorted(graph.tensors, key=lambda tensor: -prod(graph.operand(tensor).shape) * graph.width(tensor))
    return by_size[:MOST_TENSORS]


def _tensor(graph: LoopGraph, tensor: tuple[str, int], hardware: Hardware) -> np.ndarray:
    """Of one tensor.

    Loads for each vector operation, whether it is written, bytes inside all loops beside the first cache, iterations
    until its elements are used again, bytes of all tensors until then beside both caches, how often that is, the stride
    between lanes and whether there is none, and how often its bytes pass if nothing stays.
    """
    width = graph.width(tensor)
    held = graph.footprint(tensor)
    whole, inside = held[0] * width, held[-1] * width
    apart, between, times = graph.reuse(tensor)
    vectors = graph.vectors(_lanes(graph, hardware))
    stride = vectors.strides[tensor]
    logs = _logs(
        vectors.loads[tensor] / vectors.total, inside / max(1, hardware.l1_bytes), np.maximum(apart, 1.0),
        between / max(1, hardware.l1_bytes), between / max(1, hardware.l2_bytes), np.maximum(times, 1.0),
        np.maximum(stride, 1.0), inside * graph.runs / np.maximum(whole, 1.0),
    )  # fmt: skip
    logs[3:5] = np.where(times > 0, logs[3:5], -2.0)
    written = np.full(graph.count, float(graph.operand(tensor).is_output))
    return _rows_of(logs[0], written, *logs[1:7], (stride == 0).astype(np.float64), logs[7])


def _inside(graph: LoopGraph, hardware: Hardware, flops: int) -> np.ndarray:
    """Of what is left of the op, which becomes vectors.

    Parallel and reduction points, vectors along the innermost parallel loop and how much of them is empty, all vectors
    of the result beside the registers, loads for each vector operation, workgroups beside cores, how long cores wait
    for the last ones, how often it runs, and its share of the dispatch's work.
    """
    lanes = _lanes(graph, hardware)
    kinds = [loop.kind for loop in graph.op.loops]
    parallel, reduction = (
        graph.extents[-1, [number for number, given in enumerate(kinds) if given == kind]].prod(axis=0)
        for kind in ("parallel", "reduction")
    )
    vectors = graph.vectors(lanes)
    inputs = (vectors.loads[tensor] for tensor in graph.tensors if not graph.operand(tensor).is_output)
    loads = sum(inputs, np.zeros(graph.count))
    cores, groups = max(1, hardware.cores), graph.workgroups
    registers = parallel / vectors.along * vectors.groups / max(1, hardware.vector_registers)
    logs = _logs(parallel, reduction, vectors.groups, registers, loads / vectors.total, groups / cores, graph.runs)
    return _rows_of(
        *logs[:3], 1.0 - vectors.along / (vectors.groups * lanes), *logs[3:6],
        1.0 - groups / (np.ceil(groups / cores) * cores), logs[6] / 2,
        np.full(graph.count, graph.flops / max(1, flops)),
    )  # fmt: skip


def _lanes(graph: LoopGraph, hardware: Hardware) -> int:
    return max(1, hardware.vector_bytes // graph.widest)


def _rows_of(*columns: np.ndarray) -> np.ndarray:
    """Columns, each of one row or of row x candidate, as candidate x row x column."""
    made = np.stack(columns, -1, dtype=np.float32)
    return made[:, None] if made.ndim == 2 else made.swapaxes(0, 1)
