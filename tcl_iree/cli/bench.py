"""`tcl-iree bench`: a model under IREE's own flag sets."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from tcl_iree.cli.common import MODEL_HELP, add_command, add_json, add_target, parse_target, print_json
from tcl_iree.errors import OptionError
from tcl_iree.frontend import load_model, read_payload
from tcl_iree.report.bench import bench_tables
from tcl_iree.report.progress import progress
from tcl_iree.report.tables import console
from tcl_iree.workflows.bench import bench, bench_steps
from tcl_iree.workflows.bench_workload import bench_workload
from tcl_iree.workflows.tune_options import SCOPES


def register(commands: Any, summary: str) -> None:
    """Add the sub-command."""
    parser = add_command(
        commands,
        "bench",
        summary,
        "  tcl-iree bench model.mlir\n"
        "  tcl-iree bench zoo:resnet-50 --target cpu,threads=1 --scope quick\n"
        "  tcl-iree bench my_models.py:encoder --scope all --json\n"
        "  tcl-iree extract model.mlir --save payloads/ && tcl-iree bench payloads/<key>.mlir\n",
    )
    parser.add_argument("model", help=f"{MODEL_HELP}; or one dispatch saved by `extract --save`")
    add_target(parser)
    parser.add_argument(
        "--scope",
        choices=SCOPES,
        default="standard",
        help="quick: each flag alone; standard: opt level x data tiling x im2col; all: every combination "
        "(default %(default)s)",
    )
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="time for a model's interleaved rounds (default %(default)s)"
    )
    parser.add_argument(
        "--top", type=int, default=10, metavar="N", help="dispatches of a model to list (default %(default)s)"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Measure and print."""
    if arguments.top < 1:
        raise OptionError(f"top must be at least 1, not {arguments.top}")
    target = parse_target(arguments)
    target.require_runnable()
    with progress(bench_steps(target, arguments.scope) + 1, "importing the model") as step:
        workload = read_payload(arguments.model)
        if workload:
            report = bench_workload(workload, target, arguments.scope, step)
        else:
            model = load_model(arguments.model)
            step("imported", advance=1)
            report = bench(model, target, arguments.scope, arguments.seconds, step, profiled=True)
    if arguments.json:
        print_json(asdict(report))
        return
    for made in bench_tables(report, arguments.top):
        console().print(made)
