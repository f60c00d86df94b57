"""`tcl-iree apply`: compile a model with a library of schedules."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tcl_iree.cli.common import MODEL_HELP, add_command, add_json, print_json
from tcl_iree.frontend import load_model
from tcl_iree.report.progress import progress
from tcl_iree.report.tables import console, table
from tcl_iree.target import Target
from tcl_iree.transform_dialect.library import Library
from tcl_iree.workflows.apply import AppliedReport, apply_library


def register(commands: Any, summary: str) -> None:
    """Add the sub-command."""
    parser = add_command(
        commands,
        "apply",
        summary,
        "  tcl-iree apply model.mlir out/library.mlir -o model.vmfb\n"
        "  tcl-iree apply zoo:resnet-50 library.mlir -o resnet.vmfb --json\n",
    )
    parser.add_argument("model", help=MODEL_HELP)
    parser.add_argument("library", type=Path, help="a library that `tcl-iree tune` or `library merge` wrote")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the compiled module")
    parser.add_argument("--target", metavar="T", help="refuse a library for another target (default: the library's)")
    parser.add_argument(
        "--iree-flag",
        action="append",
        metavar="FLAG",
        help="refuse a library made under other base flags (repeatable; default: the library's)",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Compile, print what was applied, fail if a part was not."""
    Library.read(arguments.library)  # before a model is imported for nothing
    target = Target.parse(arguments.target) if arguments.target else None
    with progress(2, "importing the model") as step:
        model = load_model(arguments.model)
        step("compiling with the library", advance=1)
        report = apply_library(model, target, arguments.library, arguments.output, arguments.iree_flag)
    if arguments.json:
        print_json(_as_json(report))
    else:
        _print(report, arguments)
    for warning in report.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    report.require_applied()


def _print(report: AppliedReport, arguments: argparse.Namespace) -> None:
    rows = [
        [
            part.entry.key,
            part.entry.label,
            f"{part.entry.speedup:.2f}x" if part.entry.speedup else "-",
            f"{len(part.matched)} of {len(part.dispatches)}",
            part.status,
        ]
        for part in report.parts
        if part.dispatches or part.matched
    ]
    title = f"{arguments.library} on {arguments.model}, target {report.header.target_text}"
    names = ["key", "workload", "speed-up", "dispatches matched", "outcome"]
    console().print(table(title, names, rows, numeric=(2, 3)))
    other = len(report.parts) - len(rows)
    print(f"left to IREE: {len(report.left)} dispatches; in the library for other models: {other} workloads")
    print(f"the same without tcl-iree:\n  {report.command}")


def _as_json(report: AppliedReport) -> dict[str, Any]:
    parts = [
        {
            "key": part.entry.key,
            "label": part.entry.label,
            "schedule": str(part.entry.schedule),
            "speedup": part.entry.speedup,
            "measured": part.entry.measured,
            "dispatches": part.dispatches,
            "matched": part.matched,
            "applied": part.applied,
            "shared": part.shared,
            "outcome": part.status,
        }
        for part in report.parts
    ]
    said = {"left": report.left, "command": report.command, "warnings": report.warnings}
    return {"header": asdict(report.header), "parts": parts, **said}
