"""Read one structured op: its indexing maps, loops, shapes, element types and scalar body."""

from __future__ import annotations

import hashlib

from iree.compiler import ir
from iree.compiler.dialects import linalg

from tcl_iree.errors import WorkloadError
from tcl_iree.workload.model import DTYPE_BYTES, Loop

ATTENTION = "iree_linalg_ext.attention"
SOFTMAX = "linalg.softmax"
# Characters of a body; those that occur in networks have a tenth of that.
_LONGEST = 1 << 14


def is_structured(op: ir.Operation) -> bool:
    """Whether the op has loops described by indexing maps."""
    return op.name in (ATTENTION, SOFTMAX) or (op.name.startswith("linalg.") and bool(op.regions))


def indexing_maps(op: ir.Operation) -> list[ir.AffineMap]:
    """One map per operand of a structured op."""
    if op.name == SOFTMAX:
        rank = ir.RankedTensorType(op.results[0].type).rank
        return [ir.AffineMap.get_identity(rank)] * 2
    if "indexing_maps" in op.attributes:
        attribute = op.attributes["indexing_maps"]
    else:
        attribute = linalg.get_indexing_maps(op)
        if attribute is None:
            raise WorkloadError(f"{op.name} has no indexing maps")
    return [entry.value for entry in attribute]


def loops_of(op: ir.Operation) -> tuple[Loop, ...]:
    """Trip count and kind of every loop of a structured op."""
    maps = indexing_maps(op)
    sizes: dict[int, int] = {}
    for value, affine_map in zip(op.operands, maps, strict=True):
        for expression, size in zip(affine_map.results, shape_of(value.type), strict=True):
            if isinstance(expression, ir.AffineDimExpr):
                sizes.setdefault(ir.AffineDimExpr(expression).position, size)
    rank = maps[0].n_dims
    missing = [dim for dim in range(rank) if dim not in sizes]
    if missing:
        raise WorkloadError(f"the size of loop d{missing[0]} of {op.name} is not given by any operand")
    kinds = _iterator_kinds(op, maps, rank)
    return tuple(Loop(sizes[dim], kinds[dim]) for dim in range(rank))


def _iterator_kinds(op: ir.Operation, maps: list[ir.AffineMap], rank: int) -> list[str]:
    if op.name == SOFTMAX:
        reduced = int(ir.IntegerAttr(op.attributes["dimension"]).value)
        return ["reduction" if dim == reduced else "parallel" for dim in range(rank)]
    if "iterator_types" in op.attributes:
        return [str(kind).split("<")[1].rstrip(">") for kind in ir.ArrayAttr(op.attributes["iterator_types"])]
    outputs = maps[-len(op.results) :]
    written = {
        ir.AffineDimExpr(expression).position
        for affine_map in outputs
        for expression in affine_map.results
        if isinstance(expression, ir.AffineDimExpr)
    }
    return ["parallel" if dim in written else "reduction" for dim in range(rank)]


def body_expression(op: ir.Operation) -> str:
    """The scalar computation of a structured op, e.g. `addf(out0, mulf(in0, in1))`."""
    if not op.regions or not list(op.regions[0]):
        return ""
    block = op.regions[0].blocks[0]
    inputs = len(op.operands) - len(op.results)

    known: dict[ir.Value, str] = {}

    def text(value: ir.Value) -> str:
        if value not in known:
            known[value] = _short(written(value))
        return known[value]

    def written(value: ir.Value) -> str:
        owner = value.owner
        if isinstance(owner, ir.Block):
            index = ir.BlockArgument(value).arg_number
            return f"in{index}" if index < inputs else f"out{index - inputs}"
        inner = owner.operation
        name = inner.name.rpartition(".")[2]
        if inner.name == "arith.constant":
            return "const"
        predicate = (
            f"[{ir.IntegerAttr(inner.attributes['predicate']).value}]" if "predicate" in inner.attributes else ""
        )
        return f"{name}{predicate}({', '.join(text(operand) for operand in inner.operands)})"

    terminator = list(block.operations)[-1].operation
    return "; ".join(text(value) for value in terminator.operands)


def _short(text: str) -> str:
    """Text of a value used again and again doubles each time: beyond some length a digest stands for it."""
    if len(text) <= _LONGEST:
        return text
    return f"{text.partition('(')[0]}#{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def shape_of(value_type: ir.Type) -> tuple[int, ...]:
    """Shape of a tensor type; empty for a scalar."""
    if not isinstance(value_type, ir.RankedTensorType):
        return ()
    tensor = ir.RankedTensorType(value_type)
    if not tensor.has_static_shape:
        raise WorkloadError("its shapes are dynamic")
    return tuple(tensor.shape)


def dtype_of(value_type: ir.Type) -> str:
    """Element type name; raises for types this project cannot make inputs of."""
    if isinstance(value_type, ir.RankedTensorType):
        value_type = ir.RankedTensorType(value_type).element_type
    name = str(value_type)
    if name not in DTYPE_BYTES:
        raise WorkloadError(f"its element type {name} is not supported")
    return name
