"""Verify and time one artifact inside a worker's child. Imports the runtime and numpy, nothing heavier."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import iree.runtime as runtime
import numpy as np

from tcl_iree.measure.copies import copies, with_copies
from tcl_iree.measure.device import Buffers, Kernel, open_device
from tcl_iree.measure.expectation import Draw, expectation, one_run, written
from tcl_iree.measure.inputs import make_buffers, mismatch, to_float
from tcl_iree.measure.timing import TimingPolicy, time_kernel, time_together
from tcl_iree.workload.model import Workload

# Copies of buffers are taken in turn; the number of a turn is an i32.
_TURNS = 1 << 30


def outputs_of(
    workload: Workload, vmfb: bytes, device: str, flags: list[str], seed: int
) -> dict[str, dict[int, np.ndarray]]:
    """Run an artifact once on the inputs of `seed`; the written buffers by binding."""
    kernel = Kernel(opened := open_device(device, flags), vmfb)
    buffers = one_run(opened, workload, make_buffers(workload, seed))
    kernel(buffers)
    return {"outputs": {index: buffers.read(index) for index in written(workload)}}


def check(
    workload: Workload, vmfb: bytes, reference_vmfb: bytes, expected: Path, device: str, flags: list[str]
) -> dict[str, Any]:
    """Check an artifact against the reference; nothing is timed. Returns `{"error"}`, with `"wrong"` if it is."""
    opened = open_device(device, flags)
    draws = expectation(expected, workload, Kernel(opened, reference_vmfb), opened)
    return _verify(workload, draws, Kernel(opened, vmfb), opened)


def measure(
    workload: Workload,
    vmfb: bytes,
    reference_vmfb: bytes,
    expected: Path,
    device: str,
    flags: list[str],
    policy: TimingPolicy,
    floor: float | None,
    best_ratio: float,
) -> dict[str, Any]:
    """Check an artifact against the reference on two draws of inputs, then time it beside the reference.

    Args:
        expected: where the draws are, or are to be left.

    Returns:
        `{"timing", "floor", "error"}`, or `{"wrong", "error"}`.
    """
    opened = open_device(device, flags)
    reference, candidate = Kernel(opened, reference_vmfb), Kernel(opened, vmfb)
    draws = expectation(expected, workload, reference, opened)
    verdict = _verify(workload, draws, candidate, opened)
    if "wrong" in verdict:
        return verdict
    buffers = _timed_buffers(opened, workload, draws[0])
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
    expected: Path,
    device: str,
    flags: list[str],
    policy: TimingPolicy,
    floor: float | None,
) -> dict[str, Any]:
    """Check several artifacts against the reference, then time those that are right in the same rounds.

    Args:
        expected: where the draws are, or are to be left.

    Returns:
        `{"results", "floor"}`, where each result is `{"timing", "error"}` or `{"wrong", "error"}`.
    """
    opened = open_device(device, flags)
    reference, kernels = Kernel(opened, reference_vmfb), [Kernel(opened, vmfb) for vmfb in vmfbs]
    draws = expectation(expected, workload, reference, opened)
    results = [_verify(workload, draws, kernel, opened) for kernel in kernels]
    right = [index for index, verdict in enumerate(results) if "wrong" not in verdict]
    if not right:
        return {"results": results, "floor": None}
    buffers = _timed_buffers(opened, workload, draws[0])
    timings, seen = time_together(
        partial(reference, buffers),
        [partial(kernels[index], buffers) for index in right],
        policy,
        floor,
    )
    for index, timing in zip(right, timings, strict=True):
        results[index]["timing"] = timing
    return {"results": results, "floor": seen}


def _verify(workload: Workload, draws: list[Draw], candidate: Kernel, device: runtime.HalDevice) -> dict[str, Any]:
    """`{"error"}` if the candidate computes what is expected on every draw, else with `"wrong"`."""
    error = 0.0
    for draw in draws:
        buffers = one_run(device, workload, draw.buffers)
        candidate(buffers)
        for index, wanted in draw.wanted.items():
            dtype = workload.bindings[index].dtype
            found = mismatch(workload, dtype, to_float(wanted, dtype), to_float(buffers.read(index), dtype))
            error = max(error, found)
            if not found <= 1.0:
                return {
                    "wrong": f"output {index} differs by {found:.3g} tolerances on draw {draw.seed}",
                    "error": found,
                }
    return {"error": error}


def _timed_buffers(device: runtime.HalDevice, workload: Workload, draw: Draw) -> Buffers:
    """To time kernels with: what is not in the nearest cache inside the model is not here either."""
    return Buffers(device, with_copies(workload, draw.buffers), _TURNS if copies(workload) else None)


def job(task: str, **arguments: Any) -> Any:
    """Entry point of the run worker."""
    tasks: dict[str, Callable[..., Any]] = {
        "outputs": outputs_of,
        "check": check,
        "measure": measure,
        "compare": compare,
    }
    return tasks[task](**arguments)
