"""`tcl-iree tune`: make a model faster."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tcl_iree.cli.common import (
    MODEL_HELP,
    add_command,
    add_cost_model,
    add_database,
    add_json,
    add_target,
    parse_target,
    print_json,
)
from tcl_iree.report.live import live_tuning
from tcl_iree.report.tables import console
from tcl_iree.report.tune import tune_tables
from tcl_iree.search import STRATEGIES
from tcl_iree.workflows.layouts import LAYOUTS
from tcl_iree.workflows.tune import tune
from tcl_iree.workflows.tune_options import EFFORTS, SCOPES, TuneOptions
from tcl_iree.workflows.tuned import JOBS, LIBRARY, MODULE, PAGE, REPORT, writable_directory

_DEFAULTS = TuneOptions()


def register(commands: Any, summary: str) -> None:
    """Add the sub-command."""
    parser = add_command(
        commands,
        "tune",
        summary,
        "  tcl-iree tune model.mlir -o out/\n"
        "  tcl-iree tune zoo:resnet-50 --target cpu,threads=1 --trials 64 --strategy random -o out/\n"
        "  tcl-iree tune model.onnx --effort quick -o out/\n"
        "  tcl-iree tune model.mlir --effort none -o out/\n"
        "  tcl-iree tune my_models.py:encoder --base plain --time-limit 600 -o out/ --json\n",
    )
    parser.add_argument("model", help=MODEL_HELP)
    add_target(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help=f"write {LIBRARY}, {REPORT}, {PAGE}, {MODULE} (and the model if it had to be imported) "
        f"there, or {JOBS} in place of {MODULE} where the device is missing",
    )
    listed = ", ".join(f"{name} {trials}" for name, trials in EFFORTS.items() if trials)
    parser.add_argument(
        "--effort",
        choices=tuple(EFFORTS),
        default=_DEFAULTS.effort,
        help="none: the cost model picks, nothing is timed (strategy, limits, scope and seconds have no say), a second "
        f"or two a dispatch; otherwise schedules tried a workload: {listed} (default %(default)s)",
    )
    parser.add_argument("--trials", type=int, metavar="N", help="schedules to try a workload, whatever the effort")
    parser.add_argument(
        "--strategy",
        choices=STRATEGIES,
        default=_DEFAULTS.strategy,
        help="guided by a cost model, AutoTVM's annealing on it, evolutionary by measurement alone, or random "
        "(default %(default)s)",
    )
    add_cost_model(parser)
    parser.add_argument(
        "--seed",
        type=int,
        default=_DEFAULTS.seed,
        help="same seed, same database: same proposals (default %(default)s)",
    )
    parser.add_argument(
        "--time-limit", type=float, metavar="SECONDS", help="end the search after so long, the look at layouts included"
    )
    parser.add_argument(
        "--base",
        default=_DEFAULTS.base,
        metavar="FLAGS",
        help="flags to form the dispatches under: auto (default: the fastest flag set that leaves something to tune), "
        "a flag set's name such as plain or O3+im2col, or flags: --base=--iree-opt-level=O2",
    )
    parser.add_argument(
        "--layouts",
        choices=LAYOUTS,
        default=_DEFAULTS.layouts,
        help="keep the model's own, change them to channels last with weights packed while compiling, whole or in "
        "panels (CPU), or auto: any of these; a short look at each decides (default %(default)s)",
    )
    parser.add_argument(
        "--scope",
        choices=SCOPES,
        default=_DEFAULTS.scope,
        help="IREE's flag sets to compare with, as in bench (default %(default)s)",
    )
    parser.add_argument("--top", type=int, metavar="K", help="tune only the K heaviest workloads")
    parser.add_argument(
        "--min-share",
        type=float,
        default=_DEFAULTS.min_share,
        metavar="S",
        help="leave workloads to IREE whose default takes less than this share of what the tuned model may take "
        "(default %(default)s)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=_DEFAULTS.seconds,
        help="time for a run of whole models; the first ends when flag sets can be told apart (default %(default)s)",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="tune anew what was tuned before with the same options and database; trials of that are used",
    )
    add_database(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Tune, save and print."""
    if arguments.output:
        writable_directory(arguments.output)
    target = parse_target(arguments)
    names = (
        "effort",
        "trials",
        "strategy",
        "seed",
        "time_limit",
        "base",
        "layouts",
        "scope",
        "top",
        "min_share",
        "seconds",
        "again",
    )
    options = {name: getattr(arguments, name) for name in names}
    options["model"] = arguments.cost_model
    with live_tuning("importing the model") as (say, show):
        result = tune(arguments.model, None, target, arguments.db, say, show, **options)
    if arguments.output:
        result.save(arguments.output)
    if arguments.json:
        print_json(asdict(result.report))
        return
    out = console()
    for made in tune_tables(result.report):
        out.print(made)
    for note in result.report.notes:
        out.print(f"note: {note}")
    out.print(f"took {result.report.took}")
    if arguments.output:
        again = f"; to compile it again there:\n  {result.report.command}" if result.report.command else ""
        out.print(f"\nwritten to {arguments.output}{again}", soft_wrap=True)
