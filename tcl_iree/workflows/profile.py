"""Where a compiled model's time goes, dispatch by dispatch, from IREE's own profiler."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from iree import _runtime_libs

from tcl_iree.errors import MeasureError
from tcl_iree.hardware import machine_memory
from tcl_iree.processes import run_limited, scratch_directory
from tcl_iree.report.bench import DispatchTime
from tcl_iree.target import Target
from tcl_iree.workflows.model_runs import ModelRuns

_SECONDS = 300.0
# How long a model is run to see where its time goes, and how often at least and at most.
_PROFILED_SECONDS, _LEAST_CALLS, _MOST_CALLS = 2.0, 3, 200


def profile(vmfb: Path, function: str, inputs: Sequence[np.ndarray], target: Target, calls: int) -> list[DispatchTime]:
    """Run a model `calls` times under IREE's profiler; dispatches by share, largest first.

    Raises:
        MeasureError: the profiler gives nothing for this device.
    """
    tools = Path(_runtime_libs.__path__[0])
    with scratch_directory("profile") as scratch:
        output = Path(scratch) / "run.ireeprof"
        arguments = [str(tools / "iree-benchmark-module"), f"--module={vmfb}", f"--function={function}"]
        for index, array in enumerate(inputs):
            path = Path(scratch) / f"input{index}.npy"
            np.save(path, array)
            arguments.append(f"--input=@{path}")
        arguments += [f"--device={target.device}", *target.runtime_flags, f"--benchmark_min_time={calls}x"]
        arguments += [
            "--device_profiling_mode=host-execution,executable-metadata",
            f"--device_profiling_output={output}",
        ]
        _tool(arguments)
        lines = _tool([str(tools / "iree-profile"), "dispatch", "--format=jsonl", str(output)]).splitlines()
    groups = [json.loads(line) for line in lines]
    groups = [group for group in groups if group["type"].endswith("dispatch_group")]
    total = sum(group["total_ns"] for group in groups)
    if not total:
        raise MeasureError(f"IREE's profiler reports no dispatch times on {target}")
    found = [
        DispatchTime(group["key"], group["count"] / calls, group["avg_ns"] * 1e-9, group["total_ns"] / total)
        for group in groups
    ]
    return sorted(found, key=lambda entry: -entry.share)


def dispatch_seconds(runs: ModelRuns, vmfb: Path, inputs: list[np.ndarray], target: Target) -> dict[str, float]:
    """Seconds of one inference in every dispatch of a compiled model, by name; empty where there is no profiler."""
    function, _ = runs.entry(vmfb)
    (once,) = runs.interleave({"once": vmfb}, inputs, 0.0).values()
    calls = max(_LEAST_CALLS, min(_MOST_CALLS, round(_PROFILED_SECONDS / statistics.median(once))))
    try:
        found = profile(vmfb, function, inputs, target, calls)
    except MeasureError:
        return {}
    return {entry.name: entry.seconds * entry.times for entry in found}


def _tool(command: list[str]) -> str:
    name = Path(command[0]).name
    try:
        done = run_limited(command, _SECONDS, machine_memory())
    except subprocess.TimeoutExpired:
        raise MeasureError(f"{name} did not finish in {_SECONDS:g} s") from None
    if done.returncode:
        raise MeasureError(f"{name} failed: {(done.stderr.strip().splitlines() or ['no message'])[0][:300]}")
    return done.stdout
