"""Read a payload: its structured ops, loops, operands, cost and key."""

from __future__ import annotations

from math import prod

from iree.compiler import ir

from tcl_iree.errors import WorkloadError
from tcl_iree.mlir import shared_context
from tcl_iree.workload.graph import build_graph, structural_key
from tcl_iree.workload.model import DTYPE_BYTES, Binding, Loop, Operand, StructuredOp, Workload
from tcl_iree.workload.payload import SUBSPAN, access_of, walk
from tcl_iree.workload.structure import (
    ATTENTION,
    SOFTMAX,
    body_expression,
    dtype_of,
    indexing_maps,
    is_structured,
    loops_of,
    shape_of,
)

# Ops that move or reorder data without loops of their own that a schedule could shape.
_UNSCHEDULED = {
    "iree_linalg_ext.scatter": "a scatter",
    "iree_linalg_ext.gather": "a gather by slices",
    "iree_linalg_ext.sort": "a sort",
    "iree_linalg_ext.topk": "a top-k selection",
    "iree_linalg_ext.fft": "a Fourier transform",
    "iree_linalg_ext.scan": "a scan",
    "iree_linalg_ext.arg_compare": "a search for the place of a largest or smallest element",
    "iree_codegen.ukernel.generic": "a microkernel call",
    "linalg.pack": "a layout change (linalg.pack)",
    "linalg.unpack": "a layout change (linalg.unpack)",
    "iree_encoding.set_encoding": "a layout change (data tiling)",
    "iree_encoding.unset_encoding": "a layout change (data tiling)",
}


def parse_payload(payload: str) -> ir.Module:
    """Parse a payload."""
    with shared_context():
        try:
            return ir.Module.parse(payload)
        except ir.MLIRError as error:
            raise WorkloadError(f"the payload is not valid MLIR: {error.message}") from None


def dispatch_ops(module: ir.Module) -> list[ir.Operation]:
    """The ops of the dispatch function, in order."""
    function = next(op for op in walk(module.operation) if op.name == "func.func")
    return [op.operation for op in function.regions[0].blocks[0].operations]


def analyse(payload: str) -> Workload:
    """Describe an isolated dispatch.

    Raises:
        WorkloadError: why it cannot be tuned.
    """
    module = parse_payload(payload)
    with module.context:
        ops = dispatch_ops(module)
        for op in ops:
            if op.name in _UNSCHEDULED:
                raise WorkloadError(f"it is {_UNSCHEDULED[op.name]}")
        structured = [op for op in ops if is_structured(op)]
        described = [_describe(op, structured) for op in structured]
        if not any(op.kind != "linalg.fill" for op in described):
            unknown = next((op.name for op in ops if op.name.startswith("iree_linalg_ext.")), None)
            raise WorkloadError(f"no schedule is known for {unknown}" if unknown else "it only copies or fills memory")
        described = _with_roles(described)
        bindings = _bindings(ops)
        extracts = _extracts(structured)
        limits = [size for op in extracts for size in _addressed(op)]
        return Workload(
            key=structural_key(build_graph(ops)),
            payload=payload,
            bindings=bindings,
            ops=tuple(described),
            flops=sum(op.flops for op in described),
            bytes=_least_traffic(bindings, described if extracts else []),
            gathers=bool(limits),
            index_limit=min(limits, default=0),
        )


def _describe(op: ir.Operation, all_ops: list[ir.Operation]) -> StructuredOp:
    loops, maps = loops_of(op), indexing_maps(op)
    first_output = len(op.operands) - len(op.results)
    operands = tuple(
        Operand(
            shape_of(value.type),
            dtype_of(value.type),
            str(maps[index]),
            _source(value),
            index >= first_output,
            _producer(value, all_ops),
        )
        for index, value in enumerate(op.operands)
    )
    return StructuredOp(op.name, "", loops, operands, body_expression(op), _flops(op, loops))


def _flops(op: ir.Operation, loops: tuple[Loop, ...]) -> int:
    sizes = [loop.size for loop in loops]
    if op.name == ATTENTION:
        # Scores (all loops but n), their softmax at about five operations each, and the weighted sum (all but k1).
        # IREE's order of loops ends with n, k1, k2.
        points, n, k1 = prod(sizes), sizes[-3], sizes[-2]
        return 2 * points // n + 5 * points // (n * k1) + 2 * points // k1
    if op.name == "linalg.fill":
        return 0
    if op.name == SOFTMAX:
        return 5 * prod(sizes)  # maximum, difference, exponential, sum, quotient
    arithmetic = [
        inner
        for inner in walk(op)
        if inner.name.partition(".")[0] in ("arith", "math")
        and inner.name not in ("arith.constant", "arith.extf", "arith.truncf", "arith.index_cast")
    ]
    return prod(sizes) * len(arithmetic)


def _with_roles(ops: list[StructuredOp]) -> list[StructuredOp]:
    """Mark the root: the op with most arithmetic, reductions before elementwise, the later of equals."""

    def weight(index: int) -> tuple[bool, int, int]:
        op = ops[index]
        reduces = op.kind == ATTENTION or any(loop.kind == "reduction" for loop in op.loops)
        return reduces, op.flops, index

    root = max((index for index, op in enumerate(ops) if op.kind != "linalg.fill"), key=weight)
    roles = ["fill" if op.kind == "linalg.fill" else "producer" if i < root else "consumer" for i, op in enumerate(ops)]
    roles[root] = "root"
    return [
        StructuredOp(op.kind, role, op.loops, op.operands, op.body, op.flops)
        for op, role in zip(ops, roles, strict=True)
    ]


def _bindings(ops: list[ir.Operation]) -> tuple[Binding, ...]:
    found: dict[int, Binding] = {}
    for op in ops:
        if op.name != SUBSPAN:
            continue
        index = int(ir.IntegerAttr(op.attributes["binding"]).value)
        text = str(op.results[0].type)
        tensor = ir.RankedTensorType(ir.Type.parse(text[text.index(":") + 1 : text.rindex(">")]))
        access = access_of(op.results[0].type)
        if index in found and found[index].access != access:
            access = "readwrite"
        found[index] = Binding(shape_of(tensor), dtype_of(tensor), access)
    return tuple(found[index] for index in sorted(found))


def _least_traffic(bindings: tuple[Binding, ...], gathering: list[StructuredOp]) -> int:
    """Every buffer once (twice if read and written); a gather touches of a table no more than its own points."""
    total = 0
    for binding in bindings:
        touched = binding.size_bytes
        if gathering:
            touched = min(touched, max(op.points for op in gathering) * DTYPE_BYTES[binding.dtype])
        total += touched * (2 if binding.access == "readwrite" else 1)
    return total


def _extracts(structured: list[ir.Operation]) -> list[ir.Operation]:
    return [inner for op in structured for inner in walk(op) if inner.name == "tensor.extract"]


def _addressed(extract: ir.Operation) -> list[int]:
    """Sizes of the dimensions that data, and not loops or constants, choose the element of."""
    source, *at = extract.operands
    shape = ir.RankedTensorType(source.type).shape
    return [
        size
        for size, index in zip(shape, at, strict=True)
        if isinstance(index.owner, ir.Block) or index.owner.operation.name not in ("linalg.index", "arith.constant")
    ]


def _source(value: ir.Value) -> str:
    if isinstance(value.owner, ir.Block):
        return "input"
    owner = value.owner.operation
    if owner.name == "arith.constant":
        return "constant"
    if owner.name == "tensor.empty":
        return "empty"
    return "op" if is_structured(owner) else "input"


def _producer(value: ir.Value, ops: list[ir.Operation]) -> int:
    if isinstance(value.owner, ir.Block):
        return -1
    return next((index for index, op in enumerate(ops) if op == value.owner.operation), -1)
