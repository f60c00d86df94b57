"""`tcl-iree targets`: what can be compiled for and run on here."""

from __future__ import annotations

import argparse
from typing import Any

from tcl_iree.cli.common import add_command, add_json, print_json
from tcl_iree.report.tables import console, table
from tcl_iree.target import Target, known_targets


def register(commands: Any, summary: str) -> None:
    """Add the sub-command."""
    parser = add_command(
        commands,
        "targets",
        summary,
        "  tcl-iree targets\n",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the list."""
    described = [_describe(target) for target in known_targets()]
    if arguments.json:
        print_json(described)
        return
    rows = [
        [
            entry["target"],
            entry["isa"],
            "yes" if entry["compiles"] else "no",
            "yes" if entry["runs"] else "no",
            entry["why_not"],
        ]
        for entry in described
    ]
    console().print(table("targets", ["target", "ISA", "compiles", "runs", "why not"], rows))


def _describe(target: Target) -> dict[str, Any]:
    no_compile, no_run = target.why_not_compile(), target.why_not_run()
    return {
        "target": str(target),
        "isa": target.isa,
        "key": target.key,
        "compiles": no_compile is None,
        "runs": no_run is None,
        "why_not": no_compile or no_run or "",
        "hardware": target.hardware.as_dict(),
    }
