"""The ops of a model before IREE forms dispatches: what a graph schedule can choose layouts for."""

from __future__ import annotations

from collections import Counter
from math import prod
from pathlib import Path

from iree.compiler import ir

from tcl_iree.frontend.extract import ELIDE
from tcl_iree.frontend.iree_compile import compile_model
from tcl_iree.frontend.load import Model
from tcl_iree.processes import scratch_directory
from tcl_iree.target import Target
from tcl_iree.workload.model_op import BATCH_MATMUL, KINDS, MATMUL, ModelOp
from tcl_iree.workload.payload import walk

_CONSTANTS = ("util.global.load", "arith.constant", "flow.tensor.constant", "tensor.empty")


def model_ops(model: Model, target: Target) -> tuple[ModelOp, ...]:
    """The ops whose layout can be chosen, by kind and type of result.

    Raises:
        ModelError: the model does not compile.
    """
    with scratch_directory("graph") as scratch:
        output = Path(scratch) / "model.mlir"
        compile_model(model.path, [*target.compile_flags, "--compile-to=preprocessing", *ELIDE], output)
        text = output.read_text()
    found: Counter[tuple[str, tuple[int, ...], str]] = Counter()
    moving = set()
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        known: dict[ir.Value, bool] = {}
        for op in walk(module.operation):
            if op.name not in KINDS:
                continue
            result = ir.RankedTensorType(op.results[0].type)
            if not result.has_static_shape:
                continue
            key = (op.name, tuple(result.shape), str(result.element_type))
            if not _plain(op):  # a script could not tell it from a plain one of its kind
                moving.add(key)
                continue
            found[key] += 1
            if not _constant(op.operands[1], known) or _spread(op.operands[1]):
                moving.add(key)
    return tuple(ModelOp(*key, count, key not in moving) for key, count in found.items())


def _plain(op: ir.Operation) -> bool:
    """Whether an op reads its operands in the order its name says."""
    if op.name not in (MATMUL, BATCH_MATMUL) or "indexing_maps" not in op.attributes:
        return True
    maps = [ir.AffineMapAttr(entry).value for entry in ir.ArrayAttr(op.attributes["indexing_maps"])]
    batch = ["d0"] if op.name == BATCH_MATMUL else []
    m, n, k = (f"d{len(batch) + index}" for index in range(3))
    wanted = [[*batch, m, k], [*batch, k, n], [*batch, m, n]]
    return [[str(result) for result in one.results] for one in maps] == wanted


def _constant(value: ir.Value, known: dict[ir.Value, bool]) -> bool:
    """Whether a value follows from constants alone."""
    if value not in known:
        owner = value.owner
        known[value] = False  # an argument of a block
        if isinstance(owner, ir.Operation | ir.OpView):
            op = owner.operation
            known[value] = op.name in _CONSTANTS or (
                len(op.operands) > 0 and all(_constant(operand, known) for operand in op.operands)
            )
    return known[value]


def _spread(value: ir.Value) -> bool:
    """Whether a constant is repeated on the way: IREE leaves that, and whatever follows from it, to the run."""
    owner = value.owner
    if not isinstance(owner, ir.Operation | ir.OpView) or owner.operation.name in _CONSTANTS:
        return False
    given = [operand for operand in owner.operation.operands if _elements(operand) > 1]
    read = [operand for operand in given if not _empty(operand)]
    return _elements(value) > max(map(_elements, read), default=0) or any(map(_spread, read))


def _empty(value: ir.Value) -> bool:
    """Whether a value is a place for a result, not something read."""
    owner = value.owner
    return isinstance(owner, ir.Operation | ir.OpView) and owner.operation.name == "tensor.empty"


def _elements(value: ir.Value) -> int:
    if not isinstance(value.type, ir.RankedTensorType) or not value.type.has_static_shape:
        return 1
    return prod(value.type.shape)
