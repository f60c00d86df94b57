"""How alike are platforms, seen from the programs that all of them have measured?

For every two platforms: the rank correlation of the speeds of their common programs within a workload, mean over
workloads; and what the first one's best program is worth on the second, beside the second's own best and beside
IREE's default there. `tcl-iree collect --programs` measures one platform's programs on another.

    python -m benchmarks.platforms --data benchmarks/data/
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.common import platform_of, save
from tcl_iree.database import Database
from tcl_iree.learning.groups import ratio_of, trials_by_group, trials_by_schedule
from tcl_iree.learning.metrics import rank_correlation
from tcl_iree.report.tables import console, table
from tcl_iree.workflows.data import Programs

# Fewer common programs of a workload say nothing about their order.
_LEAST_COMMON = 8
# Platform -> (workload, flags) -> program -> IREE's default time over its own; NaN where it failed.
Speeds = dict[str, dict[tuple[str, str], dict[str, float]]]


def main() -> None:
    """Compare, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", type=Path, required=True, help="measured programs of several platforms")
    parser.add_argument("--least", type=int, default=_LEAST_COMMON, metavar="N", help="common programs a workload must have (default %(default)s)")  # fmt: skip
    parser.add_argument("--no-save", action="store_true", help="leave the recorded result as it is")
    arguments = parser.parse_args()
    with Programs(arguments.data) as programs:
        speeds = speeds_of(programs.database)
    pairs = {
        f"{first} > {second}": found
        for first in speeds
        for second in speeds
        if first != second and (found := compare(speeds[first], speeds[second], arguments.least))
    }
    if not pairs:
        raise SystemExit("no two platforms have programs in common; measure some with `tcl-iree collect --programs`")
    if not arguments.no_save:
        counts = {name: sum(len(held) for held in found.values()) for name, found in speeds.items()}
        save("platforms", {"programs": counts, "least_common": arguments.least, "pairs": pairs})
    _print(pairs)


def speeds_of(database: Database) -> Speeds:
    """How fast every program is on every platform, beside IREE's default there.

    Trials beside different defaults are not mixed: of a workload under the same flags, those with the most programs count.
    """
    schedules = database.schedules()
    made: Speeds = {}
    for (workload, target, flags, _), trials in sorted(trials_by_group(database).items()):
        by_schedule = trials_by_schedule(trials, schedules)
        held = made.setdefault(platform_of(target), {})
        if len(by_schedule) > len(held.get((workload, flags), {})):
            held[workload, flags] = {schedule: ratio_of(found) for schedule, found in by_schedule.items()}
    return made


def compare(
    first: Mapping[tuple[str, str], Mapping[str, float]],
    second: Mapping[tuple[str, str], Mapping[str, float]],
    least: int,
) -> dict[str, float] | None:
    """What the common programs of two platforms say; None if there are too few of every workload.

    Programs that failed on either are left out.
    """
    correlations, kept, gained, count = [], [], [], 0
    for workload in sorted(set(first) & set(second)):
        names = sorted(set(first[workload]) & set(second[workload]))
        speeds = np.array([(first[workload][name], second[workload][name]) for name in names]).reshape(-1, 2)
        here, there = speeds[np.isfinite(speeds).all(1)].T
        if len(here) < least or np.ptp(here) == 0 or np.ptp(there) == 0:
            continue
        count += len(here)
        correlations.append(rank_correlation(here, there))
        carried = there[int(np.argmax(here))]
        kept.append(carried / there.max())
        gained.append(carried)
    if not correlations:
        return None
    return {
        "workloads": len(correlations),
        "programs": count,
        "rank_correlation": float(np.mean(correlations)),
        "of_the_best": _geometric(kept),
        "of_the_best_at_worst": float(min(kept)),
        "of_the_default": _geometric(gained),
    }


def _geometric(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def _print(pairs: Mapping[str, Mapping[str, float]]) -> None:
    rows = [
        [name, f"{found['workloads']:.0f}", f"{found['programs']:.0f}", f"{found['rank_correlation']:.3f}",
         f"{found['of_the_best']:.3f}", f"{found['of_the_best_at_worst']:.3f}", f"{found['of_the_default']:.2f}"]
        for name, found in pairs.items()
    ]  # fmt: skip
    names = ["best of > run on", "workloads", "programs", "rank correlation", "of the best there", "at worst", "of the default there"]  # fmt: skip
    console().print(table("the same programs on two platforms", names, rows, numeric=range(1, 7)))


if __name__ == "__main__":
    main()
