"""How long does RDU take to choose a tenth of a pool, and how much memory?

Pools of made-up embeddings, as wide as the Mamba model's, in clusters of 1,000 programs a workload. Each size runs in a
process of its own; memory is that process's peak, the pool included.

    python -m benchmarks.sampler_cost
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

from benchmarks.common import save
from tcl_iree.learning.sampling import SAMPLERS, Pool, make_sampler
from tcl_iree.report.tables import console, table

_COLUMNS, _PER_WORKLOAD, _SHARE = 64, 1000, 0.1


def main() -> None:
    """Choose from ever larger pools, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=[10**4, 10**5, 10**6])
    parser.add_argument("--samplers", nargs="+", default=["rdu"], choices=list(SAMPLERS))
    parser.add_argument("--alone", nargs=2, metavar=("SAMPLER", "SIZE"), help=argparse.SUPPRESS)
    parser.add_argument("--no-save", action="store_true", help="leave the recorded result as it is")
    arguments = parser.parse_args()
    if arguments.alone:
        print(json.dumps(_choose(arguments.alone[0], int(arguments.alone[1]))))
        return
    found = {name: {str(size): _apart(name, size) for size in arguments.sizes} for name in arguments.samplers}
    if not arguments.no_save:
        save("sampler_cost", {"columns": _COLUMNS, "per_workload": _PER_WORKLOAD, "share": _SHARE, "figures": found})
    rows = [
        [name, f"{int(size):,}", f"{entry['seconds']:.1f} s", f"{entry['peak_mb']:.0f} MB"]
        for name, sizes in found.items()
        for size, entry in sizes.items()
    ]
    console().print(table("a tenth of a pool", ["sampler", "programs", "time", "peak memory"], rows, numeric=(1, 2, 3)))


def _apart(name: str, size: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.sampler_cost", "--alone", name, str(size)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _choose(name: str, size: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    workloads = np.arange(size) // _PER_WORKLOAD
    centres = rng.normal(size=(workloads[-1] + 1, _COLUMNS)).astype(np.float32)
    embeddings = rng.standard_normal((size, _COLUMNS), np.float32)
    for start in range(0, size, _PER_WORKLOAD):
        embeddings[start : start + _PER_WORKLOAD] += 2.0 * centres[start // _PER_WORKLOAD]
    pool = Pool(embeddings, workloads, rng.normal(size=size), rng.random(size))
    started = time.perf_counter()
    chosen = make_sampler(name).choose(pool, round(_SHARE * size))
    seconds = time.perf_counter() - started
    assert len(np.unique(chosen)) == round(_SHARE * size)
    return {"seconds": seconds, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


if __name__ == "__main__":
    main()
