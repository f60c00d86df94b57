"""Time one op in this process: compiled modules, torch and numpy in turn, never two at once.

A process of its own for each op and thread count, since thread pools are set up once: `python -m benchmarks.op_timing`
reads what to time as JSON from standard input and writes seconds per call, one list for each contender.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from benchmarks.iree_module import IreeModule
from benchmarks.op_list import build
from tcl_iree.measure.device import SharedDevice

# Seconds of a call, measured over so many.
Slice = Callable[[int], float]

_SLICE_SECONDS = 0.01
# Thread pools spin for a while after their work, OpenBLAS's longest: the next contender must not pay for that.
_PAUSE_SECONDS = 0.004
_POOL_PAUSE_SECONDS = 0.03


def main() -> None:
    """Time and print."""
    job = json.load(sys.stdin)
    torch.set_num_threads(job["threads"])
    op = build(job["op"])
    contenders: dict[str, Slice] = {}
    shared = SharedDevice(job["device"], job["flags"])
    for name, path in job["modules"].items():
        call = IreeModule(shared.device, path).bind([tensor.numpy() for tensor in op.inputs])
        contenders[name] = _giving_way(shared, call)
    with torch.inference_mode():
        op.module(*op.inputs)
        contenders["torch"] = partial(_slice, lambda: op.module(*op.inputs))
        if op.numpy:
            contenders["numpy"] = partial(_slice, partial(op.numpy, *(tensor.numpy() for tensor in op.inputs)))
        pause = _PAUSE_SECONDS if job["threads"] == 1 else _POOL_PAUSE_SECONDS
        json.dump(_interleave(contenders, job["seconds"], pause), sys.stdout)


def _interleave(contenders: dict[str, Slice], seconds: float, pause: float) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    repeats = {name: max(1, min(1000, round(_SLICE_SECONDS / _once(timed)))) for name, timed in contenders.items()}
    deadline = time.monotonic() + seconds
    rounds = 0
    while rounds < 10 or time.monotonic() < deadline:
        rounds += 1
        for name, timed in contenders.items():
            time.sleep(pause)
            taken[name].append(timed(repeats[name]))
    return taken


def _once(timed: Slice) -> float:
    return max(1e-6, min(timed(1) for _ in range(3)))


def _giving_way(shared: SharedDevice, call: Callable[[], Any]) -> Slice:
    return lambda repeats: shared.run(_slice, call, repeats)


def _slice(call: Callable[[], Any], repeats: int) -> float:
    """Seconds of a call, after one that is not counted."""
    call()
    started = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - started) / repeats


if __name__ == "__main__":
    main()
