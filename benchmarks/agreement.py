"""Does measuring a program again give what was recorded?

Some recorded programs of this machine, chosen by chance, are measured once more into a new database, as
`tcl-iree collect --programs` does. Their order within each workload is compared with the record's.

    python -m benchmarks.agreement --data benchmarks/data/avx512-1-thread-operators.parquet --target cpu,threads=1
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.common import measured_here, platform_of, recorded, save
from benchmarks.platforms import speeds_of
from tcl_iree.database import Database
from tcl_iree.learning.metrics import rank_correlation
from tcl_iree.report.progress import progress
from tcl_iree.report.tables import console, table
from tcl_iree.target import Target
from tcl_iree.workflows.collect import CollectOptions, collect_recorded
from tcl_iree.workflows.data import Programs

# Programs of a workload that it takes to speak of an order.
_LEAST = 3


def main() -> None:
    """Measure again, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", type=Path, required=True, help="measured programs of this machine")
    parser.add_argument("--target", required=True, help="as it was measured, such as cpu,threads=1")
    parser.add_argument("--per-workload", type=int, default=16, metavar="N", help="(default %(default)s)")
    parser.add_argument("--workloads", type=int, default=18, metavar="N", help="(default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-save", action="store_true", help="leave the recorded result as it is")
    arguments = parser.parse_args()
    target = Target.parse(arguments.target)
    options = CollectOptions(per_workload=arguments.per_workload, workloads=arguments.workloads, seed=arguments.seed)
    with Programs(arguments.data) as programs:
        before = speeds_of(programs.database).get(platform_of(target.key))
    if before is None:
        raise SystemExit(f"the data has nothing of {target.key}; give programs that were measured on this machine")
    with tempfile.TemporaryDirectory() as scratch, Database(Path(scratch) / "again.db") as database:
        with progress(1, "measuring again") as step:
            collect_recorded(arguments.data, target, database, options, say=step)
        again = speeds_of(database).get(platform_of(target.key), {})
    rows, correlations, apart, changed = [], [], [], 0
    for workload, found in again.items():
        names = sorted(set(found) & set(before.get(workload, {})))
        pairs = np.array([(before[workload][name], found[name]) for name in names]).reshape(-1, 2)
        changed += int((np.isfinite(pairs[:, 0]) != np.isfinite(pairs[:, 1])).sum())
        then, now = pairs[np.isfinite(pairs).all(1)].T
        if len(then) < _LEAST or np.ptp(then) == 0 or np.ptp(now) == 0:
            continue
        correlations.append(rank_correlation(then, now))
        apart += np.abs(np.log(now / then)).tolist()
        rows.append([workload[0], str(len(then)), f"{correlations[-1]:.3f}", f"{np.ptp(np.log(then)):.2f}"])
    if not correlations:
        raise SystemExit(f"no workload has {_LEAST} programs that worked both times; give other data or more of it")
    figures = {
        "programs": len(apart),
        "workloads": len(correlations),
        "rank_correlation": float(np.mean(correlations)),
        "rank_correlation_median": float(np.median(correlations)),
        "rank_correlation_least": float(np.min(correlations)),
        "median_difference": float(np.median(apart)),
        "p90_difference": float(np.quantile(apart, 0.9)),
        "outcome_changed": changed,
    }
    if not arguments.no_save:
        held = recorded("agreement").get("targets", {})
        save("agreement", {"targets": held | {str(target): figures | measured_here()}})
    console().print(table(f"measured again on {target}", ["workload", "programs", "rank correlation", "spread (log)"], rows, numeric=(1, 2, 3)))  # fmt: skip
    console().print(
        f"rank correlation {figures['rank_correlation']:.3f} (least {figures['rank_correlation_least']:.3f}); half of the "
        f"ratios differ by less than {figures['median_difference']:.1%}; {changed} outcomes changed"
    )


if __name__ == "__main__":
    main()
