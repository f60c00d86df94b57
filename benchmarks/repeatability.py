"""How well do repeated measurements agree while a neighbour disturbs the machine?

Twenty schedules of one matmul, each measured five times at shuffled moments, while another process keeps
one core busy in bursts (1 s on, 1 s off). Printed with and without the calibration: the rank correlation
between repeats over all schedules and over the ten best, and the spread of one schedule's repeats (IQR / median).

    python -m benchmarks.repeatability                         # two targets: one thread, all cores
    python -m benchmarks.repeatability --target cpu,threads=1
"""

from __future__ import annotations

import argparse
import itertools
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.common import matmul_config, matmul_workload, save
from tcl_iree.hardware import host_cpu
from tcl_iree.learning.metrics import rank_correlation
from tcl_iree.measure.builder import Builder
from tcl_iree.measure.results import Artifact
from tcl_iree.measure.runner import Runner
from tcl_iree.measure.timing import TimingPolicy
from tcl_iree.report.progress import progress
from tcl_iree.report.tables import console, table
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

SHAPE = (512, 384, 256)
# Workgroup tile, register tile, reduction step; eleven meant to lie within 30 % of the best, the rest behind.
VARIANTS = [
    (64, 128, 4, 64, 8), (64, 128, 4, 64, 4), (64, 128, 4, 64, 16), (64, 128, 4, 64, 1), (32, 64, 4, 64, 2),
    (64, 128, 8, 32, 8), (64, 64, 4, 64, 2), (64, 128, 8, 32, 4), (256, 64, 8, 32, 4), (64, 128, 8, 32, 2),
    (64, 128, 8, 32, 1), (64, 128, 8, 32, 16), (64, 128, 2, 128, 8), (64, 128, 2, 128, 2), (64, 128, 2, 64, 8),
    (64, 128, 8, 64, 2), (64, 128, 16, 16, 2), (64, 128, 16, 32, 1), (64, 128, 3, 64, 2), (64, 128, 4, 128, 8),
]  # fmt: skip
NEAR = 10
BURSTS = "import time\nwhile True:\n t = time.time()\n while time.time() - t < 1: pass\n time.sleep(1)"


@contextmanager
def bursts() -> Iterator[None]:
    """One core busy for a second, idle for a second, and so on."""
    process = subprocess.Popen([sys.executable, "-c", BURSTS])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def measure(
    workload: Workload,
    artifacts: list[Artifact],
    reference: Artifact,
    target: Target,
    calibrate: bool,
    repeats: int,
) -> np.ndarray:
    """Scores (higher is faster), one row a schedule, one column a repeat."""
    # Without calibration nothing tells when to stop: a fixed number of rounds, about a second.
    policy = TimingPolicy() if calibrate else TimingPolicy(calibrate=False, min_rounds=30, max_rounds=30)
    order = [(index, repeat) for index in range(len(artifacts)) for repeat in range(repeats)]
    random.Random(0).shuffle(order)
    scores = np.zeros((len(artifacts), repeats))
    name = "calibrated" if calibrate else "not calibrated"
    with bursts(), Runner(target, policy) as runner, progress(len(order), f"{target}, {name}") as step:
        for index, repeat in order:
            result = runner.measure(workload, artifacts[index], reference)
            if not result.timing:
                raise SystemExit(f"schedule {VARIANTS[index]} failed: {result.failure}")
            scores[index, repeat] = result.timing.ratio if calibrate else 1 / result.timing.p50
            step(f"{target}, {name}", advance=1)
    return scores


def figures(scores: np.ndarray) -> dict[str, float]:
    """Rank correlation between repeats and spread of repeats."""
    medians = np.median(scores, axis=1)
    near = np.argsort(-medians)[:NEAR]
    low, high = np.quantile(scores, [0.25, 0.75], axis=1)
    spread = (high - low) / medians
    return {
        "rank_all": _rank_correlation(scores),
        "rank_near": _rank_correlation(scores[near]),
        "near_within": float(medians[near].max() / medians[near].min()),
        "spread_median": float(np.median(spread)),
        "spread_p90": float(np.quantile(spread, 0.9)),
    }


def _rank_correlation(scores: np.ndarray) -> float:
    pairs = itertools.combinations(scores.T, 2)
    return float(np.mean([rank_correlation(one, other) for one, other in pairs]))


def main() -> None:
    """Measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", help="default: cpu,threads=1 and cpu")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    kept = {}
    rows = []
    for text in arguments.target or ["cpu,threads=1", *(["cpu"] if host_cpu().cores > 1 else [])]:
        target = Target.parse(text)
        workload = matmul_workload(*SHAPE, target)
        with Builder(target) as builder:
            reference = builder.build_default(workload).artifact
            built = builder.build_many(workload, [matmul_config(*variant) for variant in VARIANTS])
        artifacts = [result.artifact for result in built if result.artifact]
        if not reference or len(artifacts) != len(VARIANTS):
            raise SystemExit("a schedule did not build")
        for calibrate in (True, False):
            found = figures(measure(workload, artifacts, reference, target, calibrate, arguments.repeats))
            kept[f"{text} {'calibrated' if calibrate else 'plain'}"] = found
            rows.append([
                text, "yes" if calibrate else "no", f"{found['rank_all']:.3f}", f"{found['rank_near']:.3f}",
                f"{100 * (found['near_within'] - 1):.0f} %", f"{100 * found['spread_median']:.1f} %",
                f"{100 * found['spread_p90']:.1f} %",
            ])  # fmt: skip
    names = [
        "target",
        "calibrated",
        "rank corr., all 20",
        f"best {NEAR}",
        f"best {NEAR} lie within",
        "IQR/median",
        "its p90",
    ]
    console().print(table("repeatability under a bursting neighbour", names, rows, numeric=(2, 3, 4, 5, 6)))
    print(save("repeatability", {"shape": SHAPE, "figures": kept}))


if __name__ == "__main__":
    main()
