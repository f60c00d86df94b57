"""Attention: a block of query rows at a time, scores and weights in a private buffer that never leaves the cache.

Vectors run along the query rows, so the block is held transposed and neither keys nor values need another layout:

    Qt(k1, m) = scale * transpose(Q block)
    S(k2, m)  = K(k2, k1) Qt + transpose(mask block)      rows of S in registers
    P(k2, m)  = exp(S - max over k2),  sum over k2        no reduction goes across lanes
    Ot(n, m)  = V(n, k2) P / sum                          rows of Ot in registers
    O block   = transpose(Ot)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tcl_iree.target import Target
from tcl_iree.transform_dialect.backend import lower_to_vectors_and_buffers
from tcl_iree.transform_dialect.cpu_limits import CpuLimits, cpu_limits
from tcl_iree.transform_dialect.family import Decision, Family
from tcl_iree.transform_dialect.names import FILL, GENERIC, ONLINE_ATTENTION
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import Script
from tcl_iree.transform_dialect.sizes import divisors, largest_divisor
from tcl_iree.transform_dialect.view import plain_loops
from tcl_iree.workload.model import Operand, StructuredOp, Workload
from tcl_iree.workload.structure import ATTENTION

_TRANSPOSE = "linalg.transpose"
_PARALLEL, _REDUCTION = "parallel", "reduction"
_LARGEST_BLOCK = 64
_TRANSPOSED = 16  # a square of this size is transposed in registers


@dataclass(frozen=True)
class Dims:
    """Sizes of an attention's loops.

    Attributes:
        batch: the loops shared by all operands, such as heads.
        m: query rows. n: columns of values and result. k1: columns of queries and keys. k2: rows of keys.
    """

    batch: tuple[int, ...]
    m: int
    n: int
    k1: int
    k2: int
    masked: bool


@cache
def attention_dims(workload: Workload) -> Dims | str:
    """The sizes of an attention this family can schedule, or why it cannot."""
    root = workload.root
    if root.kind != ATTENTION:
        return "the root is no attention"
    if any(operand.dtype != "f32" for operand in root.operands):
        return "an operand is not f32"
    inputs = [operand for operand in root.operands if not operand.is_output and operand.shape]
    if len(inputs) not in (3, 4):
        return "it has operands besides query, key, value and mask"
    rank = len(root.loops)
    if rank < 4:
        return "it has too few loops"
    batch, (m, n, k1, k2) = range(rank - 4), range(rank - 4, rank)
    wanted = [{*batch, m, k1}, {*batch, k2, k1}, {*batch, k2, n}]
    maps = [_loops(operand) for operand in inputs[:3]]
    if len(batch) not in (1, 2) or maps != wanted:
        return "its loops are not heads, rows, columns, and the two reductions, once each"
    if len(inputs) == 4 and not {m, k2} <= _loops(inputs[3]) <= {*batch, m, k2}:
        return "its mask is not one number for each score"
    if root.body != "in0":
        return "scores are changed before the softmax"
    if any(root.loops[loop].size < 2 for loop in (m, n, k1, k2)):
        return "one of its loops has a single iteration"
    if any(op.role == "consumer" and op.body != "in0" for op in workload.ops):
        return "ops other than transposes are fused to it"
    made = [op for op in workload.ops if op.role == "producer"]
    if any(not _repeats(op, len(batch)) for op in made) or any(operand.producer >= 0 for operand in inputs[:3]):
        return "an operand is computed, not only repeated for each head"
    sizes = [loop.size for loop in root.loops]
    if not _blocks(sizes[m]):
        return f"no number of rows up to {_LARGEST_BLOCK} divides {sizes[m]}"
    return Dims(tuple(sizes[: rank - 4]), sizes[m], sizes[n], sizes[k1], sizes[k2], len(inputs) == 4)


class Attention(Family):
    """Blocks of query rows, scores and output rows in registers."""

    name = "attention"

    def why_not(self, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        if target.kind != "cpu":
            return "it is for CPUs"
        found = attention_dims(workload)
        return found if isinstance(found, str) else None

    def decisions(self, workload: Workload, target: Target) -> tuple[Decision, ...]:
        """See `Family`."""
        dims = _found(workload)
        return (
            Decision("block", _blocks(dims.m)),
            Decision("score_rows", _up_to(dims.k2, 16)),
            Decision("output_rows", _up_to(dims.n, 16)),
            Decision("score_step", tuple(step for step in (1, 2, 4) if dims.k1 % step == 0)),
            Decision("output_step", tuple(step for step in (1, 2, 4) if dims.k2 % step == 0)),
            Decision("softmax_rows", _up_to(dims.k2, 8)),
            Decision("base_two", (False, True)),
        )

    def why_illegal(self, schedule: Schedule, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        dims, limits = _found(workload), _limits(target)
        block = schedule["block"]
        buffers = 4 * block * (dims.k1 + dims.k2 + dims.n)
        transposed = 4 * 2 * block * _TRANSPOSED
        return (
            limits.why_not_accumulators(schedule["score_rows"], block)
            or limits.why_not_accumulators(schedule["output_rows"], block)
            or limits.why_not_accumulators(schedule["softmax_rows"], block)
            or limits.why_not_stack(buffers + transposed)
        )

    def emit(self, script: Script, schedule: Schedule, workload: Workload, target: Target) -> None:
        """See `Family`."""
        dims = _found(workload)
        script.phase("Distribute heads and blocks of rows to workgroups; take attention apart.")
        (attention,) = script.match([ONLINE_ATTENTION], "attention")
        tiles = [*(1 for _ in dims.batch), schedule["block"], 0, 0, 0]
        script.annotate(attention, "lowering_config", f"#iree_cpu.lowering_config<distribution = {tiles}>")
        script.run_pass("iree-codegen-tile-and-distribute-to-workgroups-using-forall-op")
        script.canonicalize()
        script.run_pass("iree-linalg-ext-decompose-attention", use_exp2=schedule["base_two"])
        script.canonicalize(fold_units=True)
        script.slice_fills()
        script.phase("Rows innermost: vectors run along them.")
        (scores,) = script.match([GENERIC], "scores", iterators=(_PARALLEL, _REDUCTION, _PARALLEL))
        script.pack(scores, [schedule["block"], 0, 0], "scores")
        (outputs,) = script.match([GENERIC], "outputs", iterators=(_PARALLEL, _PARALLEL, _REDUCTION))
        script.pack(outputs, [schedule["block"], 0, 0], "outputs")
        script.propagate_packs()
        script.run_pass("iree-codegen-decompose-pack-unpack-ops")
        script.canonicalize(fold_units=True)
        script.slice_fills()
        _tile(script, schedule, dims)
        script.canonicalize()
        lower_to_vectors_and_buffers(script, distributed_by_iree=True)


def _tile(script: Script, schedule: Schedule, dims: Dims) -> None:
    """Tile every op of the decomposed form and fuse those that belong into one pass over the data."""
    transposes = script.match([_TRANSPOSE], "transpose", 2 + dims.masked)
    elementwise = script.match([GENERIC], "elementwise", 4 + dims.masked, (_PARALLEL, _PARALLEL))
    scale, *mask, weights, start, normalize = elementwise
    script.phase("Scaled queries.")
    script.tile(
        transposes[0],
        [largest_divisor(dims.k1, _TRANSPOSED), largest_divisor(schedule["block"], _TRANSPOSED)],
        "queries",
    )
    script.tile(scale, [largest_divisor(dims.k1, schedule["softmax_rows"]), 0], "scaled")
    script.phase("Scores: a few rows of keys in registers.")
    fills = script.match([FILL], "fill", 3 + (dims.n != dims.k2))
    (scores,) = script.match([GENERIC], "scores", iterators=(_REDUCTION, _PARALLEL, _PARALLEL))
    scores = script.interchange(scores, [2, 1, 0], "scores")
    scores, _ = script.tile(scores, [0, schedule["score_rows"], 0], "scores")
    script.tile(scores, [0, 0, schedule["score_step"]], "scores")
    if dims.masked:
        _, (loop,) = script.tile(mask[0], [largest_divisor(dims.k2, _TRANSPOSED), 0], "masked")
        script.fuse(transposes[1], loop, "mask")
    script.phase("Softmax without its division.")
    script.tile(script.match_all([GENERIC], "maximum_and_sum", (_REDUCTION, _PARALLEL)), [1, 0], "maximum_and_sum")
    script.tile(weights, [schedule["softmax_rows"], 0], "weights")
    script.phase("Output: a few columns of values in registers, divided before they are stored.")
    (outputs,) = script.match([GENERIC], "outputs", iterators=(_PARALLEL, _REDUCTION, _PARALLEL))
    outputs = script.interchange(outputs, [2, 0, 1], "outputs")
    _, (loop,) = script.tile(normalize, [schedule["output_rows"], 0], "normalized")
    outputs, loop = script.fuse(outputs, loop, "outputs")
    _, loop = script.fuse(start, loop, "start")
    script.fuse(fills[-1] if dims.n != dims.k2 else fills[0], loop, "zeros")
    script.tile(outputs, [0, 0, schedule["output_step"]], "outputs")
    script.phase("The result, with rows outermost again.")
    script.tile(
        transposes[-1],
        [largest_divisor(schedule["block"], _TRANSPOSED), largest_divisor(dims.n, _TRANSPOSED)],
        "result",
    )


def _found(workload: Workload) -> Dims:
    found = attention_dims(workload)
    assert not isinstance(found, str)
    return found


def _limits(target: Target) -> CpuLimits:
    return cpu_limits(target, "f32")


def _loops(operand: Operand) -> set[int]:
    return set(plain_loops(operand) or ())


def _repeats(op: StructuredOp, heads: int) -> bool:
    """Whether an op only repeats its input for each head: a block of one head is then the input itself."""
    rank = len(op.loops)
    read = [plain_loops(operand) for operand in op.operands if not operand.is_output]
    written = [plain_loops(operand) for operand in op.operands if operand.is_output]
    whole = tuple(range(rank))
    return (
        op.body == "in0"
        and [tuple(loops or ()) for loops in written] == [whole]
        and [tuple(loops or ()) for loops in read] in ([whole[repeated:]] for repeated in range(1, heads + 1))
    )


def _blocks(rows: int) -> tuple[int, ...]:
    return tuple(size for size in divisors(rows) if 2 <= size <= _LARGEST_BLOCK)


def _up_to(size: int, limit: int) -> tuple[int, ...]:
    return tuple(divisor for divisor in divisors(size) if divisor <= limit)
