"""Hand-made features of each innermost statement, after TenSet's: the input of the statement-feature baselines.

Groups, in this order; counts and sizes as log2(1 + x):

- arithmetic (10): operations of each kind over the whole op, and all of them;
- levels (12): loops at each level (workgroup, thread, warp, serial): how many, iterations in all, of the last one;
- reductions (2): serial reduction loops, their iterations;
- vectors (10): points left inside, of parallel and of reduction loops, the innermost extent and its kind, vectors it
  fills, vectors in all, and accumulators beside registers;
- waste (2): work beyond the loop's end, in all and at most;
- order (3): depth and iterations of the innermost loop around, whether it reduces;
- balance (2): workgroups beside cores, and the share of time that cores wait;
- intensity (10): operations for each byte at ten depths from the outermost to the innermost;
- buffers (5 x 18): the five largest: read, written or both; bytes and cache lines accessed and distinct; how it is
  reused, over what distance and how often; these by the number of uses; stride of the innermost loop;
- copies (4): operands copied and packed, elements of each;
- scope (3): loops around, their iterations, share of the dispatch's operations;
- strides (16): histogram over pairs of loop and tensor;
- caches (8): bytes inside workgroups and inside all loops beside L1 and L2, operations for each byte there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tcl_iree.features.loop_graph import BUCKETS, INSIDE, LINE_BYTES, LoopGraph
from tcl_iree.features.program import Nest
from tcl_iree.features.steps import Candidate, StepReader, Steps
from tcl_iree.hardware import Hardware
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

# Changes when a feature keeps its name but not its meaning.
VERSION = 1
MOST_STATEMENTS = 6
_KINDS = {
    "add": ("addf", "subf", "negf"),
    "multiply": ("mulf", "fma"),
    "divide": ("divf", "remf"),
    "compare": ("cmpf", "cmpi", "select", "maximumf", "minimumf", "maxnumf", "minnumf", "maxsi", "minsi"),
    "exponential": ("exp", "exp2", "expm1"),
    "root": ("sqrt", "rsqrt"),
    "function": ("tanh", "erf", "log", "log2", "powf", "fpowi", "sin", "cos", "absf", "floor", "ceil"),
    "cast": ("extf", "truncf", "sitofp", "fptosi", "extsi", "extui", "trunci", "index_cast", "uitofp"),
    "integer": ("addi", "subi", "muli", "divsi", "remsi", "andi", "ori", "xori", "shli", "shrsi"),
}
_LEVELS = ("workgroup", "thread", "warp", "serial")
_ORDER = ("root", "consumer", "producer", "pack", "unpack")
_BUFFERS = 5
_DEPTHS = 10
_CALL = re.compile(r"([a-z]\w*)(?:\[\d+\])?\(")


def feature_names() -> tuple[str, ...]:
    """The name of each feature, in order."""
    names = [f"arithmetic {kind}" for kind in (*_KINDS, "all")]
    names += [f"{level} {what}" for level in _LEVELS for what in ("loops", "iterations", "last")]
    names += ["reduction loops", "reduction iterations"]
    names += [f"inside {what}" for what in ("points", "parallel", "reduction", "innermost", "innermost parallel",
              "innermost reduces", "nothing", "vectors innermost", "vectors", "accumulators")]  # fmt: skip
    names += ["waste", "most waste", "innermost loop depth", "innermost loop iterations", "innermost loop reduces"]
    names += ["workgroups", "waiting"]
    names += [f"intensity {number}" for number in range(_DEPTHS)]
    names += [f"buffer {buffer} {what}" for buffer in range(_BUFFERS) for what in (
        "read", "written", "both", "bytes", "distinct bytes", "lines", "distinct lines", "reused around",
        "reused inside", "not reused", "reuse iterations", "reuse bytes", "uses", "bytes a use", "distinct bytes a use",
        "lines a use", "distinct lines a use", "stride")]  # fmt: skip
    names += ["copies", "copied", "packs", "packed", "loops around", "iterations around", "share"]
    names += [f"stride {bucket}" for bucket in range(BUCKETS)]
    names += [f"{where} {what}" for where in ("workgroup", "register") for what in ("L1", "L2", "bytes", "intensity")]
    return tuple(names)


FEATURES = len(feature_names())


class StatementEncoder:
    """Makes statement features of one workload's candidates on one target."""

    def __init__(self, workload: Workload, target: Target) -> None:
        self._workload, self._hardware = workload, target.hardware
        self._reader = StepReader(workload, target)

    def statements(self, candidates: Sequence[Candidate]) -> tuple[np.ndarray, np.ndarray]:
        """Features of candidate x statement x feature, and how many statements each candidate has."""
        made = np.zeros((len(candidates), MOST_STATEMENTS, FEATURES), np.float32)
        counts = np.zeros(len(candidates), np.int64)
        for steps in self._reader.read(candidates):
            graphs = loop_graphs(self._workload, steps)[:MOST_STATEMENTS]
            copies = _copies(steps)
            for number, graph in enumerate(graphs):
                made[steps.positions, number] = self._features(graph, copies if number == 0 else 0.0 * copies)
            counts[steps.positions] = len(graphs)
        return made, counts

    def _features(self, graph: LoopGraph, copies: np.ndarray) -> np.ndarray:
        count = graph.count
        share = graph.flops / max(1, self._workload.flops)
        groups = [
            _arithmetic(graph),
            _levels(graph),
            _vectors(graph, self._hardware),
            _order(graph),
            _balance(graph, max(1, self._hardware.cores)),
            _intensities(graph),
            _buffers(graph),
            copies,
            _columns(_log(np.full(count, graph.depth)), _log(graph.runs), np.full(count, share)),
            graph.stride_histogram(),
            _caches(graph, self._hardware),
        ]
        return np.concatenate(groups, axis=1)


def statements_of(steps: Steps) -> list[tuple[Nest, np.ndarray]]:
    """What is left of each op of the dispatch but fills, the root first, with candidate x number of the nest."""
    numbers = steps.nest_numbers()
    made, start = [], 0
    for nest in steps.nests:
        end = start + nest.count
        if nest.role != "fill":
            made.append((nest, numbers[:, start:end]))
        start = end
    return sorted(made, key=lambda entry: _ORDER.index(entry[0].role) if entry[0].role in _ORDER else len(_ORDER))


def loop_graphs(workload: Workload, steps: Steps) -> list[LoopGraph]:
    """A graph for each op of the dispatch but fills, the root first."""
    return [LoopGraph(workload.ops[nest.op], nest, numbers) for nest, numbers in statements_of(steps)]


def _log(values: np.ndarray) -> np.ndarray:
    return np.log2(1.0 + values)


def _columns(*arrays: np.ndarray) -> np.ndarray:
    return np.stack(arrays, axis=1)


def _arithmetic(graph: LoopGraph) -> np.ndarray:
    """Over the whole op: the same for all candidates."""
    calls = _CALL.findall(graph.op.body)
    points = 0 if graph.moves else graph.op.points
    totals = [sum(calls.count(name) for name in names) * points for names in _KINDS.values()]
    row = _log(np.array([*totals, graph.flops], np.float64))
    return np.repeat(row[None], graph.count, 0)


def _levels(graph: LoopGraph) -> np.ndarray:
    ones = np.ones(graph.count)
    columns = []
    around = [(loop, graph.trips[depth]) for depth, loop in enumerate(graph.nest.around)]
    for level in _LEVELS:
        mine = [trips for loop, trips in around if loop.level == level]
        columns += [_log(len(mine) * ones), _log(np.prod(mine, axis=0) if mine else 0 * ones)]
        columns += [_log(mine[-1] if mine else 0 * ones)]
    reducing = [trips for loop, trips in around if loop.kind == "reduction"]
    columns += [_log(len(reducing) * ones), _log(np.prod(reducing, axis=0) if reducing else 0 * ones)]
    return _columns(*columns)


def _vectors(graph: LoopGraph, hardware: Hardware) -> np.ndarray:
    extents, loops = graph.extents[-1], graph.op.loops
    ones = np.ones(graph.count)
    width = graph.widest
    lanes = max(1, hardware.vector_bytes // width)
    parallel, reduction, innermost, is_parallel = ones, ones, ones, ones
    for extent, loop in zip(extents, loops, strict=True):
        parallel = parallel * extent if loop.kind == "parallel" else parallel
        reduction = reduction * extent if loop.kind == "reduction" else reduction
        inner = extent > 1
        innermost = np.where(inner, extent, innermost)
        is_parallel = np.where(inner, float(loop.kind == "parallel"), is_parallel)
    nothing = (parallel * reduction == 1).astype(float)
    vectors = parallel * reduction / lanes
    accumulators = parallel / lanes / max(1, hardware.vector_registers)
    return _columns(
        _log(parallel * reduction), _log(parallel), _log(reduction), _log(innermost), is_parallel * (1 - nothing),
        (1 - is_parallel) * (1 - nothing), nothing, _log(innermost / lanes), _log(vectors), _log(accumulators),
    )  # fmt: skip


def _order(graph: LoopGraph) -> np.ndarray:
    """Waste, then the innermost loop around that has more than one iteration."""
    ones = np.ones(graph.count)
    total, most = ones, ones
    depth_of, trips_of, reduces = 0 * ones, 0 * ones, 0 * ones
    for depth, loop in enumerate(graph.nest.around):
        trips = graph.trips[depth]
        if loop.origin >= 0:
            before = np.maximum(graph.extents[depth][loop.origin], 1.0)
            over = np.maximum(trips * graph.extents[depth + 1][loop.origin] / before, 1.0)
            total, most = total * over, np.maximum(most, over)
        runs = trips > 1
        depth_of = np.where(runs, depth + 1.0, depth_of)
        trips_of = np.where(runs, trips, trips_of)
        reduces = np.where(runs, float(loop.kind == "reduction"), reduces)
    return _columns(np.log2(total), np.log2(most), _log(depth_of), _log(trips_of), reduces)


def _balance(graph: LoopGraph, cores: int) -> np.ndarray:
    groups = graph.workgroups
    rounds = np.ceil(groups / cores)
    return _columns(_log(groups / cores), 1.0 - groups / (rounds * cores))


def _intensities(graph: LoopGraph) -> np.ndarray:
    """At ten depths, evenly from the outermost to the innermost."""
    depths = np.linspace(0, graph.depth, _DEPTHS).round().astype(int)
    return _columns(*(_log(graph.intensity[depth]) for depth in depths))


def _buffers(graph: LoopGraph) -> np.ndarray:
    """The largest tensors; zeros where there are fewer."""
    by_size = sorted(graph.tensors, key=lambda tensor: -np.prod(graph.operand(tensor).shape))
    parts = [_buffer(graph, tensor) for tensor in by_size[:_BUFFERS]]
    parts += [np.zeros((graph.count, 18))] * (_BUFFERS - len(parts))
    return np.concatenate(parts, axis=1)


def _buffer(graph: LoopGraph, tensor: tuple[str, int]) -> np.ndarray:
    operand, width = graph.operand(tensor), graph.width(tensor)
    ones = np.ones(graph.count)
    reduces = any(loop.kind == "reduction" for loop in graph.op.loops)
    both = operand.is_output and reduces
    stride = _innermost_stride(graph, tensor)
    accesses = graph.points[0]
    touched, distinct = accesses * width, graph.footprint(tensor)[0] * width
    spread = np.clip(stride * width / LINE_BYTES, width / LINE_BYTES, 1.0)
    lines, distinct_lines = np.maximum(accesses * spread, 1.0), np.maximum(distinct / LINE_BYTES, 1.0)
    apart, between, times = graph.reuse(tensor)
    inside = (graph.points[-1] > graph.footprint(tensor)[-1]) & (times == 0)
    uses = np.maximum(times, 1.0)
    return _columns(
        (not operand.is_output) * ones, (operand.is_output and not both) * ones, both * ones, _log(touched),
        _log(distinct), _log(lines), _log(distinct_lines), (times > 0).astype(float), inside.astype(float),
        ((times == 0) & ~inside).astype(float), _log(apart), _log(between), _log(times), _log(touched / uses),
        _log(distinct / uses), _log(lines / uses), _log(distinct_lines / uses), _log(stride),
    )  # fmt: skip


def _innermost_stride(graph: LoopGraph, tensor: tuple[str, int]) -> np.ndarray:
    """Of the innermost loop left inside that has more than one iteration."""
    stride = np.zeros(graph.count)
    for node, data in graph.graph.nodes(data=True):
        if node[0] == INSIDE:
            edge = graph.graph.get_edge_data(node, tensor)
            stride = np.where(data["trips"] > 1, edge["stride"] if edge else 0.0, stride)
    return stride


def _copies(steps: Steps) -> np.ndarray:
    """Operands copied and packed, and their elements."""
    numbers = steps.row_numbers()
    count = len(steps.positions)
    copied = [index for index, row in enumerate(steps.rows) if row.kind == "iree.copy_tensor_operand"]
    packed = [index for index, row in enumerate(steps.rows) if row.kind == "structured.pack"]
    ones = np.ones(count)
    return _columns(
        len(copied) * ones,
        _log(numbers[:, copied, 0].sum(1) if copied else 0 * ones),
        len(packed) * ones,
        _log(numbers[:, packed, 0].prod(1).astype(np.float64) if packed else 0 * ones),
    )


def _caches(graph: LoopGraph, hardware: Hardware) -> np.ndarray:
    inside = [depth + 1 for depth, loop in enumerate(graph.nest.around) if loop.level == "workgroup"]
    columns = []
    for depth in (inside[-1] if inside else 0, graph.depth):
        held = graph.bytes[depth]
        columns += [held > hardware.l1_bytes, held > hardware.l2_bytes, _log(held), _log(graph.intensity[depth])]
    return _columns(*(column.astype(np.float64) for column in columns))
