"""What does it cost a model that its caller waits where its workers compute?

A network, with schedules as the cost model picks them, is called again and again from a thread that is scheduled as
threads usually are, from one of lower priority, and from one that pushes no other off its core when it wakes, which is
how this project calls it. Each way has processes of its own, in turn.

    python -m benchmarks.waiting
    python -m benchmarks.waiting --network resnet-50 --rounds 3
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks.common import measured_here, recorded, save
from benchmarks.iree_module import IreeModule
from tcl_iree.frontend import load_model
from tcl_iree.frontend.zoo import NETWORKS
from tcl_iree.measure.device import SharedDevice, open_device
from tcl_iree.measure.exclusive import exclusive
from tcl_iree.report.progress import progress
from tcl_iree.report.tables import console, table
from tcl_iree.target import Target
from tcl_iree.workflows.tune import tune

_USUAL, _LOWER, _GIVING_WAY = "as usual", "lower priority", "giving way"
_WAYS = (_USUAL, _LOWER, _GIVING_WAY)
_NICE = 10
_UNTIMED = 20


def main() -> None:
    """Tune, call, print and keep the figures."""
    if sys.argv[1:] == ["--call"]:
        print(json.dumps(_called(**json.load(sys.stdin))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="mobilenet-v2", choices=list(NETWORKS), metavar="NAME")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each way (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=3.0, help="calls in each process (default %(default)s)")
    arguments = parser.parse_args()
    taken: dict[str, list[float]] = {way: [] for way in _WAYS}
    target = Target.parse("cpu")
    with progress(1, f"tuning {arguments.network}") as say:
        model = load_model(f"zoo:{arguments.network}")
        result = tune(model, target=target, say=say, effort="none")
        assert result.module
        job: dict[str, Any] = {
            "path": str(result.module),
            "device": target.device,
            "flags": list(target.runtime_flags),
            "inputs": [[list(array.shape), array.dtype.name] for array in model.inputs or ()],
            "seconds": arguments.seconds,
        }
        say("calling", total=arguments.rounds * len(_WAYS))
        for _ in range(arguments.rounds):
            for way in _WAYS:
                with exclusive():
                    taken[way] += _in_process(job | {"way": way})
                say("calling", 1)
    found = {way: _figures(np.array(calls)) for way, calls in taken.items()}
    entries = recorded("waiting").get("networks", {})
    entries[arguments.network] = {"ways": found, **measured_here()}
    save("waiting", {"networks": entries})
    rows = [[way, *(f"{1e3 * value:.2f} ms" for value in figures.values())] for way, figures in found.items()]
    console().print(table(f"calls of {arguments.network}", ["called", *found[_USUAL]], rows, numeric=range(1, 6)))


def _figures(calls: np.ndarray) -> dict[str, float]:
    shares = {"10 %": 0.1, "median": 0.5, "90 %": 0.9, "99 %": 0.99}
    return {"mean": float(calls.mean())} | {name: float(np.quantile(calls, share)) for name, share in shares.items()}


def _in_process(job: dict[str, Any]) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.waiting", "--call"]
    done = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout))


def _called(path: str, device: str, flags: list[str], inputs: list[list[Any]], seconds: float, way: str) -> list[float]:
    """Seconds of each call, in this process."""
    opened = open_device(device, flags) if way == _GIVING_WAY else SharedDevice(device, flags).device
    if way == _LOWER:
        os.nice(_NICE)  # of this thread alone: the workers are there already
    rng = np.random.default_rng(0)
    call = IreeModule(opened, path).bind([rng.random(shape).astype(kind) for shape, kind in inputs])
    for _ in range(_UNTIMED):
        call()
    taken: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return taken


if __name__ == "__main__":
    main()
