"""How much faster does tuning make whole models, beside plain IREE and IREE's best flags?

python -m benchmarks.models                                   # four networks of the zoo, 64 random trials
python -m benchmarks.models --models mobilenet-v2 --trials 4 --no-save
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS, measured_here, recorded, save
from tcl_iree.database import default_database
from tcl_iree.errors import TclIreeError
from tcl_iree.frontend.zoo import NETWORKS
from tcl_iree.report.progress import progress
from tcl_iree.report.tables import console, seconds, table
from tcl_iree.report.tune import TuneReport, tune_tables
from tcl_iree.workflows.tune import tune

_DEFAULT = ("bert-base", "gpt2-small", "resnet-50", "mobilenet-v2")


def main() -> None:
    """Tune, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(_DEFAULT), choices=list(NETWORKS))
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--strategy", default="random")
    parser.add_argument("--scope", default="standard", choices=("quick", "standard", "all"))
    parser.add_argument("--base", default="auto")
    parser.add_argument("--seconds", type=float, default=30.0, help="interleaved timing of whole models")
    parser.add_argument("--db", type=Path, default=default_database())
    parser.add_argument("--output", type=Path, help="write each model's library and module below this directory")
    parser.add_argument("--no-save", action="store_true", help="leave the recorded result as it is")
    arguments = parser.parse_args()
    results: dict[str, dict[str, Any]] = {} if arguments.no_save else recorded("models").get("models", {})
    for name in arguments.models:
        about = measured_here() | {"target": arguments.target, "trials": arguments.trials}
        try:
            results[name] = about | _tune(name, arguments)
        except TclIreeError as error:
            results[name] = about | {"error": str(error)}
            console().print(f"{name}: {error}")
        if not arguments.no_save:
            save("models", {"models": results})
    rows = [
        [name, *(seconds(entry[key]) for key in ("plain", "best", "tuned")), entry["best_flags"],
         f"{entry['vs_best']:.2f}x", f"{entry['vs_plain']:.2f}x", entry["outputs"]]
        for name, entry in results.items() if "error" not in entry
    ]  # fmt: skip
    names = ["model", "plain", "best flags", "tuned", "which flags", "vs best", "vs plain", "outputs"]
    console().print(table(f"whole models on {arguments.target}", names, rows, numeric=(1, 2, 3, 5, 6)))
    if not arguments.no_save:
        print(RESULTS / "models.json")


def _tune(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    with progress(1, name) as step:
        result = tune(
            f"zoo:{name}",
            target=arguments.target,
            database=arguments.db,
            say=step,
            trials=arguments.trials,
            strategy=arguments.strategy,
            scope=arguments.scope,
            base=arguments.base,
            seconds=arguments.seconds,
        )
    if arguments.output:
        result.save(arguments.output / name)
    for made in tune_tables(result.report):
        console().print(made)
    return _figures(result.report)


def _figures(report: TuneReport) -> dict[str, Any]:
    rows = {row.name: row for row in report.rows}
    return {
        "plain": rows["plain"].median,
        "best": rows[report.best_flags or "plain"].median,
        "best_flags": report.best_flags,
        "tuned": rows[report.shipped or "plain"].median,
        "spread": {name: [row.p10, row.p90] for name, row in rows.items()},
        "shipped": report.shipped,
        "vs_best": report.speedup,
        "vs_plain": report.vs_plain,
        "outputs": report.outputs if report.depends_on_input else "unproven: the output does not depend on the input",
        "difference": rows[report.shipped or "plain"].error,
        "base": f"{report.base} ({report.base_reason})",
        "notes": report.notes,
        "seconds": report.seconds,
        "dispatches": [
            {"workload": row.label, "times": row.occurrences, "share": row.share, "speedup": row.speedup,
             "right": row.right, "tried": row.tried, "schedule": row.schedule or row.status}
            for row in report.workloads
        ],
    }  # fmt: skip


if __name__ == "__main__":
    main()
