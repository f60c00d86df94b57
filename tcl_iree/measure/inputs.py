"""Inputs for a dispatch, and how close two results must be."""

from __future__ import annotations

from math import prod, sqrt

import numpy as np

from tcl_iree.workload.model import Binding, Workload

_NUMPY = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i64": np.int64, "i32": np.int32,
    "i16": np.int16, "i8": np.int8, "i1": np.int8,
}  # fmt: skip
# Spacing of numbers around 1.
_EPSILON = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}


def make_buffers(workload: Workload, seed: int, positive: bool = False) -> list[np.ndarray]:
    """One array per binding: random and asymmetric where read, NaN (or a pattern) where only written.

    bf16 arrays are held as their bits in uint16.

    Args:
        positive: keep floats positive, for dispatches that take roots or logarithms of their inputs.
    """
    rng = np.random.default_rng(seed)
    return [
        _unwritten(binding) if binding.access == "writeonly" else _random(binding, workload, rng, positive)
        for binding in workload.bindings
    ]


def _random(binding: Binding, workload: Workload, rng: np.random.Generator, positive: bool) -> np.ndarray:
    if binding.dtype in _EPSILON:
        # Neither symmetric nor centred: a transposed, shifted or dropped operand must show.
        values = rng.standard_normal(binding.shape, dtype=np.float32) * np.float32(0.5) + np.float32(0.1)
        return from_float(np.abs(values) + np.float32(0.01) if positive else values, binding.dtype)
    if binding.dtype == "i1":
        return rng.integers(0, 2, binding.shape, dtype=np.int8)
    limit = workload.index_limit if workload.gathers else 8
    low = 0 if workload.gathers else -8
    return rng.integers(low, limit, binding.shape).astype(_NUMPY[binding.dtype])


def _unwritten(binding: Binding) -> np.ndarray:
    if binding.dtype in _EPSILON:
        return from_float(np.full(binding.shape, np.nan, np.float32), binding.dtype)
    return np.full(binding.shape, 0x55, _NUMPY[binding.dtype])


def from_float(values: np.ndarray, dtype: str) -> np.ndarray:
    """Round float32 values to `dtype`."""
    if dtype != "bf16":
        return values.astype(_NUMPY[dtype])
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def to_float(array: np.ndarray, dtype: str) -> np.ndarray:
    """Exact float64 (int64 for integers) values of an array as held for `dtype`."""
    if dtype == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64 if dtype in _EPSILON else np.int64)


def mismatch(workload: Workload, dtype: str, wanted: np.ndarray, got: np.ndarray) -> float:
    """Largest difference of two results in units of the tolerance: up to 1 is equal.

    Infinite where only one is NaN, where integers differ, and where nothing finite was computed at all.

    Args:
        dtype: the type the results were stored in; the arrays hold their values as `to_float` gives them.
    """
    if dtype not in _EPSILON:
        return 0.0 if np.array_equal(wanted, got) else float("inf")
    finite = np.isfinite(wanted)
    alike = np.isfinite(got)
    if not (finite.all() and alike.all()):
        if not np.array_equal(finite, alike) or not np.array_equal(wanted[~finite], got[~finite], equal_nan=True):
            return float("inf")
        if not finite.any():
            return float("inf")
        wanted, got = wanted[finite], got[finite]
    scale = max(1e-30, float(np.sqrt(np.mean(wanted * wanted))))
    return float(np.max(np.abs(wanted - got) / (np.abs(wanted) + scale))) / tolerance_of(workload, dtype)


def tolerance_of(workload: Workload, dtype: str) -> float:
    """Relative tolerance for an output of this type.

    The rounding error of a reordered sum grows with the square root of its length, in units of the type it is
    accumulated in; every other value that is written is rounded once. Never so wide that zeros would pass.
    """
    error = 4.0 * _EPSILON[dtype]
    for op in workload.ops:
        length = prod(loop.size for loop in op.loops if loop.kind == "reduction")
        written = max((_EPSILON.get(operand.dtype, 0.0) for operand in op.operands if operand.is_output), default=0.0)
        error += written * (16.0 * sqrt(length) if length > 1 else 4.0)
    return min(error, 0.1)
