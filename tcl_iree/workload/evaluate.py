"""Evaluate a payload with numpy, independently of IREE's code generator.

This is the second opinion on IREE's default code, which is what every candidate is compared with.
Floats are computed in float64 and integers in int64, so the result is a better one than any kernel's.
Reductions are walked point by point with the parallel loops vectorised; contractions go through einsum.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from math import erf, prod
from typing import Any

import numpy as np
from iree.compiler import ir

from tcl_iree.workload.analysis import dispatch_ops, parse_payload
from tcl_iree.workload.model import Workload
from tcl_iree.workload.payload import SUBSPAN
from tcl_iree.workload.structure import ATTENTION, SOFTMAX, body_expression, indexing_maps, is_structured, loops_of

MAX_WORK = 6e9
"""Elementary operations beyond which `evaluate` refuses: numpy would take minutes."""


_MULTIPLY_ADD = {
    f"{add}({first}, {second})"
    for add, multiply in (("addf", "mulf"), ("addi", "muli"))
    for product in (f"{multiply}(in0, in1)", f"{multiply}(in1, in0)")
    for first, second in (("out0", product), (product, "out0"))
}


class CannotEvaluate(Exception):
    """This payload has an op numpy has no counterpart for here, or is too large."""


def evaluate(workload: Workload, buffers: list[np.ndarray]) -> dict[int, np.ndarray]:
    """Run the payload on float64 / int64 buffers, one per binding; returns the written ones by binding.

    Raises:
        CannotEvaluate: with the reason.
    """
    if workload.flops > MAX_WORK:
        raise CannotEvaluate("it is too large for numpy here")
    module = parse_payload(workload.payload)
    try:
        with module.context, np.errstate(all="ignore"):
            return _Interpreter([np.array(buffer) for buffer in buffers]).run(dispatch_ops(module))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise CannotEvaluate(f"numpy stumbles: {type(error).__name__}: {error}") from error


class _Interpreter:
    def __init__(self, buffers: list[np.ndarray]) -> None:
        self._buffers = buffers
        self._written: set[int] = set()
        self._values: dict[ir.Value, Any] = {}

    def run(self, ops: list[ir.Operation]) -> dict[int, np.ndarray]:
        for op in ops:
            self._step(op)
        return {index: self._buffers[index] for index in sorted(self._written)}

    def _step(self, op: ir.Operation) -> None:
        name = op.name
        if name == "func.return":
            return
        if name.endswith("dispatch.tensor.store"):
            self._store(op)
            return
        results: list[Any]
        if name == SUBSPAN:
            results = [int(ir.IntegerAttr(op.attributes["binding"]).value)]
        elif name.endswith("dispatch.tensor.load"):
            part = self._buffers[self._values[op.operands[0]]][_slices(op)]
            results = [np.array(part).reshape(_shape(op.results[0]))]
        elif name == "arith.constant":
            results = [_constant(op)]
        elif name == "tensor.empty":
            results = [np.full(_shape(op.results[0]), np.nan if _is_float(op.results[0].type) else 0)]
        elif name == "linalg.fill":
            results = [np.full(_shape(op.results[0]), self._values[op.operands[0]])]
        elif name in ("tensor.expand_shape", "tensor.collapse_shape"):
            results = [self._values[op.operands[0]].reshape(_shape(op.results[0]))]
        elif name == "tensor.extract_slice":
            results = [self._values[op.operands[0]][_slices(op)].reshape(_shape(op.results[0]))]
        elif name == "tensor.insert_slice":
            target = np.array(self._values[op.operands[1]])
            window = target[_slices(op)]
            window[...] = self._values[op.operands[0]].reshape(window.shape)
            results = [target]
        elif name == ATTENTION:
            results = [self._attention(op)]
        elif name == SOFTMAX:
            axis = int(ir.IntegerAttr(op.attributes["dimension"]).value)
            results = [_softmax(self._values[op.operands[0]], (axis,))]
        elif is_structured(op):
            results = self._structured(op)
        elif name in _SCALAR:
            results = [_SCALAR[name](*[self._values[operand] for operand in op.operands])]
        else:
            raise CannotEvaluate(f"{name} has no numpy counterpart here")
        for value, result in zip(op.results, results, strict=True):
            self._values[value] = result

    def _store(self, op: ir.Operation) -> None:
        binding = self._values[op.operands[1]]
        window = self._buffers[binding][_slices(op)]
        window[...] = np.asarray(self._values[op.operands[0]]).reshape(window.shape)
        self._written.add(binding)

    def _attention(self, op: ir.Operation) -> np.ndarray:
        if next(iter(op.regions[0].blocks[0].operations)).operation.name != "iree_linalg_ext.yield":
            raise CannotEvaluate("this attention changes its scores in a region of its own")
        maps = [_letters(affine_map) for affine_map in indexing_maps(op)]
        values = [self._values[operand] for operand in op.operands]
        query, key, value, scale = values[:4]
        q, k, v, out = maps[0], maps[1], maps[2], maps[-1]
        contracted = set(q) & set(k) - set(out)
        scores_dims = "".join(letter for letter in dict.fromkeys(q + k) if letter not in contracted)
        scores = np.einsum(f"{q},{k}->{scores_dims}", query, key, optimize=True) * scale
        if len(values) == 6:  # an additive or boolean mask
            mask = np.einsum(f"{maps[4]}->{''.join(d for d in scores_dims if d in maps[4])}", values[4])
            expand = tuple(slice(None) if d in maps[4] else None for d in scores_dims)
            is_boolean = str(ir.RankedTensorType(op.operands[4].type).element_type) == "i1"
            scores = np.where(mask[expand] != 0, scores, -np.inf) if is_boolean else scores + mask[expand]
        axis = tuple(index for index, letter in enumerate(scores_dims) if letter not in out)
        return np.einsum(f"{scores_dims},{v}->{out}", _softmax(scores, axis), value, optimize=True)

    def _structured(self, op: ir.Operation) -> list[np.ndarray]:
        values = [self._values[operand] for operand in op.operands]
        inputs = len(op.operands) - len(op.results)
        if contraction := _einsum(op):
            return [values[-1] + np.einsum(contraction, *values[:inputs], optimize=True)]
        loops = loops_of(op)
        reductions = [dim for dim, loop in enumerate(loops) if loop.kind == "reduction"]
        parallel = [dim for dim, loop in enumerate(loops) if loop.kind != "reduction"]
        if prod(loop.size for loop in loops) > MAX_WORK / 10 or prod(loops[d].size for d in reductions) > 200_000:
            raise CannotEvaluate(f"{op.name} is too large for numpy here")
        ranges = tuple(slice(loops[dim].size) for dim in parallel)
        grids = dict(zip(parallel, np.ogrid[ranges], strict=True)) if parallel else {}
        space = tuple(loops[dim].size for dim in parallel)
        maps = indexing_maps(op)
        # Outputs live in the space of the parallel loops while the reduction runs.
        outs = [
            np.array(np.broadcast_to(_gather(values[inputs + i], maps[inputs + i], grids), space))
            for i in range(len(op.results))
        ]
        for point in itertools.product(*(range(loops[dim].size) for dim in reductions)):
            at = grids | dict(zip(reductions, point, strict=True))
            arguments = [_gather(value, maps[i], at) for i, value in enumerate(values[:inputs])]
            outs = [np.broadcast_to(out, space) for out in self._body(op, [*arguments, *outs], at)]
        results = []
        for i, out in enumerate(outs):
            result = np.array(values[inputs + i])
            # A loop that does not address this output writes the same place again: the last write stays.
            index = tuple(np.broadcast_to(_affine(e, grids), space) for e in maps[inputs + i].results)
            result[index] = out if index else out.flat[-1]
            results.append(result)
        return results

    def _body(self, op: ir.Operation, arguments: list[Any], at: dict[int, Any]) -> list[Any]:
        block = op.regions[0].blocks[0]
        local: dict[ir.Value, Any] = dict(zip(block.arguments, arguments, strict=True))

        def value(operand: ir.Value) -> Any:
            return local[operand] if operand in local else self._values[operand]

        for inner in block.operations:
            inner = inner.operation
            if inner.name == "linalg.yield":
                return [value(operand) for operand in inner.operands]
            if inner.name == "linalg.index":
                result = at[int(ir.IntegerAttr(inner.attributes["dim"]).value)]
            elif inner.name == "arith.constant":
                result = _constant(inner)
            elif inner.name == "tensor.extract":
                source, *indices = [value(operand) for operand in inner.operands]
                result = source[tuple(np.asarray(index).astype(np.int64) for index in indices)]
            elif inner.name in ("arith.cmpf", "arith.cmpi"):
                predicate = int(ir.IntegerAttr(inner.attributes["predicate"]).value)
                table = _COMPARE_FLOAT if inner.name == "arith.cmpf" else _COMPARE_INT
                if predicate not in table:
                    raise CannotEvaluate(f"comparison {predicate} of {inner.name}")
                result = table[predicate](*[value(operand) for operand in inner.operands])
            elif inner.name in _SCALAR:
                result = _SCALAR[inner.name](*[value(operand) for operand in inner.operands])
            else:
                raise CannotEvaluate(f"{inner.name} has no numpy counterpart here")
            local[inner.results[0]] = result
        raise CannotEvaluate("a body without a yield")


def _softmax(scores: np.ndarray, axis: tuple[int, ...]) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return weights / weights.sum(axis=axis, keepdims=True)


def _einsum(op: ir.Operation) -> str | None:
    """The einsum of a plain contraction, `ac,cb->ab`; None for anything else."""
    maps = indexing_maps(op)
    loops = loops_of(op)
    if len(op.results) != 1 or len(op.operands) != 3 or not any(loop.kind == "reduction" for loop in loops):
        return None
    expressions = [expression for affine_map in maps for expression in affine_map.results]
    if not all(isinstance(expression, ir.AffineDimExpr) for expression in expressions):
        return None
    body = re.sub(r"(?:extf|extsi|sitofp)\((in\d)\)", r"\1", body_expression(op))
    if body not in _MULTIPLY_ADD:
        return None
    left, right, out = (_letters(affine_map) for affine_map in maps)
    return f"{left},{right}->{out}"


def _letters(affine_map: ir.AffineMap) -> str:
    return "".join(chr(ord("a") + ir.AffineDimExpr(expression).position) for expression in affine_map.results)


def _gather(value: Any, affine_map: ir.AffineMap, at: dict[int, Any]) -> Any:
    if not isinstance(value, np.ndarray) or value.ndim == 0:
        return value
    return value[tuple(_affine(expression, at) for expression in affine_map.results)]


def _affine(expression: ir.AffineExpr, at: dict[int, Any]) -> Any:
    if isinstance(expression, ir.AffineDimExpr):
        return at.get(expression.position, 0)
    if isinstance(expression, ir.AffineConstantExpr):
        return expression.value
    if isinstance(expression, ir.AffineAddExpr):
        return _affine(expression.lhs, at) + _affine(expression.rhs, at)
    if isinstance(expression, ir.AffineMulExpr):
        return _affine(expression.lhs, at) * _affine(expression.rhs, at)
    if isinstance(expression, ir.AffineFloorDivExpr):
        return _affine(expression.lhs, at) // _affine(expression.rhs, at)
    if isinstance(expression, ir.AffineModExpr):
        return _affine(expression.lhs, at) % _affine(expression.rhs, at)
    raise CannotEvaluate(f"map expression {expression}")


def _slices(op: ir.Operation) -> tuple[Any, ...]:
    """The part an op reads or writes, as an index that gives a view even of a single number."""
    offsets, sizes, strides = (
        list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
    )
    if any(offset < 0 for offset in offsets):
        raise CannotEvaluate("an offset known only at run time")
    parts = zip(offsets, sizes, strides, strict=True)
    return (..., *(slice(offset, offset + (size - 1) * stride + 1, stride) for offset, size, stride in parts))


def _shape(value: ir.Value) -> tuple[int, ...]:
    return tuple(ir.RankedTensorType(value.type).shape)


def _is_float(value_type: ir.Type) -> bool:
    element = (
        ir.RankedTensorType(value_type).element_type if isinstance(value_type, ir.RankedTensorType) else value_type
    )
    return "f" in str(element)


def _constant(op: ir.Operation) -> Any:
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.FloatAttr):
        return float(attribute.value)
    if isinstance(attribute, ir.IntegerAttr):
        return int(attribute.value)
    if isinstance(attribute, ir.BoolAttr):
        return bool(attribute.value)
    if isinstance(attribute, ir.DenseElementsAttr):
        dtype = np.float64 if _is_float(op.results[0].type) else np.int64
        return np.array(attribute).astype(dtype).reshape(_shape(op.results[0]))
    raise CannotEvaluate(f"constant {op.results[0].type}")


def _erf(x: Any) -> Any:
    return np.vectorize(erf, otypes=[np.float64])(x)


def _sign_extend(a: Any) -> Any:
    return -np.asarray(a).astype(np.int64) if np.asarray(a).dtype == np.bool_ else a


def _zero_extend(a: Any) -> Any:
    """Only truth values: of anything else the width, and so the value of a negative number, is not known here."""
    if np.asarray(a).dtype != np.bool_:
        raise CannotEvaluate("an unsigned extension")
    return np.asarray(a).astype(np.int64)


def _truncate_to_bool(a: Any) -> Any:
    if not np.isin(a, (0, 1)).all():
        raise CannotEvaluate("a truncation")
    return np.asarray(a).astype(np.bool_)


def _unsigned(compare: Callable[..., Any]) -> Callable[..., Any]:
    """An unsigned comparison, where no number is negative and so the width does not matter."""

    def compared(a: Any, b: Any) -> Any:
        if np.min(a) < 0 or np.min(b) < 0:
            raise CannotEvaluate("an unsigned comparison of negative numbers")
        return compare(a, b)

    return compared


def _divide(a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.divide(a, b)


def _integer_divide(a: Any, b: Any) -> Any:
    return np.trunc(np.divide(a, b)).astype(np.int64)


_SCALAR: dict[str, Callable[..., Any]] = {
    "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply, "arith.divf": _divide,
    "arith.negf": np.negative, "arith.maximumf": np.maximum, "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax, "arith.minnumf": np.fmin,
    "arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply, "arith.divsi": _integer_divide,
    "arith.floordivsi": np.floor_divide,
    "arith.remsi": np.fmod, "arith.maxsi": np.maximum, "arith.minsi": np.minimum,
    "arith.andi": lambda a, b: np.asarray(a).astype(np.int64) & np.asarray(b).astype(np.int64),
    "arith.ori": lambda a, b: np.asarray(a).astype(np.int64) | np.asarray(b).astype(np.int64),
    "arith.xori": lambda a, b: np.asarray(a).astype(np.int64) ^ np.asarray(b).astype(np.int64),
    "arith.select": lambda c, a, b: np.where(c, a, b),
    "arith.extf": lambda a: a, "arith.truncf": lambda a: a, "arith.extsi": _sign_extend, "arith.extui": _zero_extend,
    "arith.uitofp": lambda a: np.asarray(_zero_extend(a), np.float64), "arith.trunci": _truncate_to_bool,
    "arith.index_cast": lambda a: a, "arith.index_castui": lambda a: a,
    "arith.sitofp": lambda a: np.asarray(a, np.float64), 
    "arith.fptosi": lambda a: np.trunc(a).astype(np.int64),
    "math.exp": np.exp, "math.exp2": np.exp2, "math.log": np.log, "math.sqrt": np.sqrt, "math.tanh": np.tanh,
    "math.rsqrt": lambda a: 1.0 / np.sqrt(a), "math.erf": _erf, "math.absf": np.abs, "math.powf": np.power,
    "math.fpowi": lambda a, b: np.power(a, b), "math.sin": np.sin, "math.cos": np.cos,
    "math.fma": lambda a, b, c: a * b + c,
    "math.ceil": np.ceil, "math.floor": np.floor,
}  # fmt: skip
_COMPARE_INT: dict[int, Callable[..., Any]] = {
    0: np.equal, 1: np.not_equal, 2: np.less, 3: np.less_equal, 4: np.greater, 5: np.greater_equal,
    6: _unsigned(np.less), 7: _unsigned(np.less_equal), 8: _unsigned(np.greater), 9: _unsigned(np.greater_equal),
}  # fmt: skip
# Ordered comparisons are false on NaN, unordered ones true.
_COMPARE_FLOAT: dict[int, Callable[..., Any]] = {
    1: np.equal, 2: np.greater, 3: np.greater_equal, 4: np.less, 5: np.less_equal,
    6: lambda a, b: np.less(a, b) | np.greater(a, b), 8: lambda a, b: ~(np.less(a, b) | np.greater(a, b)),
    9: lambda a, b: ~np.less_equal(a, b), 10: lambda a, b: ~np.less(a, b),
    11: lambda a, b: ~np.greater_equal(a, b), 12: lambda a, b: ~np.greater(a, b), 13: np.not_equal,
}  # fmt: skip
