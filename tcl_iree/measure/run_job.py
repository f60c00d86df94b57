"""Verify and time one artifact inside a worker's child. Imports the runtime and numpy, nothing heavier."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import iree.runtime as runtime
import numpy as np

from tcl_iree.measure.copies import copies, with_copies
from tcl_iree.measure.device import Buffers, Kernel, open_device
from tcl_iree.measure.inputs import make_buffers, mismatch, to_float
from tcl_iree.measure.timing import TimingPolicy, time_kernel, time_together
from tcl_iree.workload.model import Workload

DRAWS = (1, 2)
# Copies of buffers are taken in turn; the number of a turn is an i32.
_TURNS = 1 << 30


def outputs_of(
    workload: Workload, vmfb: bytes, device: str, flags: list[str], seed: int
) -> dict[str, dict[int, np.ndarray]]:
    """Run an artifact once on the inputs of `seed`; the written buffers by binding."""
    kernel = Kernel(opened := open_device(device, flags), vmfb)
    buffers = _buffers(opened, workload, seed)
    kernel(buffers)
    return {"outputs": {index: buffers.read(index) for index in _written(workload)}}


def check(workload: Workload, vmfb: bytes, reference_vmfb: bytes, device: str, flags: list[str]) -> dict[str, Any]:
    """Check an artifact against the reference; nothing is timed. Returns `{"error"}`, with `"wrong"` if it is."""
    opened = open_device(device, flags)
    reference, candidate = Kernel(opened, reference_vmfb), Kernel(opened, vmfb)
    return _verify(workload, reference, candidate, opened, not _finite(workload, reference, opened))


def measure(
    workload: Workload,
    vmfb: bytes,
    reference_vmfb: bytes,
    device: str,
    flags: list[str],
    policy: TimingPolicy,
    floor: float | None,
    best_ratio: float,
) -> dict[str, Any]:
    """Check an artifact against the reference on two draws of inputs, then time it beside the reference.

    Returns:
        `{"timing", "floor", "error"}`, or `{"wrong", "error"}`.
    """
    opened = open_device(device, flags)
    reference, candidate = Kernel(opened, reference_vmfb), Kernel(opened, vmfb)
    positive = not _finite(workload, reference, opened)
    verdict = _verify(workload, reference, candidate, opened, positive)
    if "wrong" in verdict:
        return verdict
    buffers = _timed_buffers(opened, workload, positive)
    timing, seen = time_kernel(
        partial(reference, buffers),
        partial(candidate, buffers),
        policy,
        floor,
        best_ratio,
    )
    return {"timing": timing, "floor": seen, **verdict}


def compare(
    workload: Workload,
    vmfbs: list[bytes],
    reference_vmfb: bytes,
    device: str,
    flags: list[str],
    policy: TimingPolicy,
    floor: float | None,
) -> dict[str, Any]:
    """Check several artifacts against the reference, then time those that are right in the same rounds.

    Returns:
        `{"results", "floor"}`, where each result is `{"timing", "error"}` or `{"wrong", "error"}`.
    """
    opened = open_device(device, flags)
    reference, kernels = Kernel(opened, reference_vmfb), [Kernel(opened, vmfb) for vmfb in vmfbs]
    positive = not _finite(workload, reference, opened)
    results = [_verify(workload, reference, kernel, opened, positive) for kernel in kernels]
    right = [index for index, verdict in enumerate(results) if "wrong" not in verdict]
    if not right:
        return {"results": results, "floor": None}
    buffers = _timed_buffers(opened, workload, positive)
    timings, seen = time_together(
        partial(reference, buffers),
        [partial(kernels[index], buffers) for index in right],
        policy,
        floor,
    )
    for index, timing in zip(right, timings, strict=True):
        results[index]["timing"] = timing
    return {"results": results, "floor": seen}


def _verify(
    workload: Workload, reference: Kernel, candidate: Kernel, device: runtime.HalDevice, positive: bool
) -> dict[str, Any]:
    """`{"error"}` if the candidate computes what the reference does on every draw, else with `"wrong"`."""
    error = 0.0
    for seed in DRAWS:
        expected, actual = (_buffers(device, workload, seed, positive) for _ in range(2))
        reference(expected)
        candidate(actual)
        for index in _written(workload):
            dtype = workload.bindings[index].dtype
            wanted, got = (to_float(buffers.read(index), dtype) for buffers in (expected, actual))
            found = mismatch(workload, dtype, wanted, got)
            error = max(error, found)
            if not found <= 1.0:
                return {
                    "wrong": f"output {index} differs by {found:.3g} tolerances on draw {seed}",
                    "error": found,
                }
    return {"error": error}


def _finite(workload: Workload, reference: Kernel, device: runtime.HalDevice) -> bool:
    """Whether the reference computes only finite values from inputs of either sign."""
    buffers = _buffers(device, workload, DRAWS[0])
    reference(buffers)
    return all(np.isfinite(to_float(buffers.read(i), workload.bindings[i].dtype)).all() for i in _written(workload))


def _buffers(device: runtime.HalDevice, workload: Workload, seed: int, positive: bool = False) -> Buffers:
    """To run a kernel once or twice and look at what it gives."""
    return Buffers(device, make_buffers(workload, seed, positive), 1 if copies(workload) else None)


def _timed_buffers(device: runtime.HalDevice, workload: Workload, positive: bool) -> Buffers:
    """To time kernels with: what is not in the nearest cache inside the model is not here either."""
    arrays = with_copies(workload, make_buffers(workload, DRAWS[0], positive))
    return Buffers(device, arrays, _TURNS if copies(workload) else None)


def _written(workload: Workload) -> list[int]:
    return [index for index, binding in enumerate(workload.bindings) if binding.access != "readonly"]


def job(task: str, **arguments: Any) -> Any:
    """Entry point of the run worker."""
    tasks: dict[str, Callable[..., Any]] = {
        "outputs": outputs_of,
        "check": check,
        "measure": measure,
        "compare": compare,
    }
    return tasks[task](**arguments)
