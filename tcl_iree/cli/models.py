"""`tcl-iree models`: the kinds of cost model there are, and what checkpoints say of themselves."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tcl_iree.cli.common import add_command, add_json, print_json
from tcl_iree.learning.checkpoint import read_about
from tcl_iree.learning.models import MODELS
from tcl_iree.report.tables import console, table
from tcl_iree.report.transfer import lineage_table


def register(commands: Any, summary: str) -> None:
    """Add the sub-command."""
    parser = add_command(
        commands,
        "models",
        summary,
        "  tcl-iree models\n  tcl-iree models models/mamba models/tlp --json\n",
    )
    parser.add_argument("checkpoints", nargs="*", type=Path, metavar="NAME", help="as `tcl-iree train -o` wrote them")
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print."""
    if not arguments.checkpoints:
        kinds = {name: text for name, (_, text) in MODELS.items()}
        if arguments.json:
            print_json(kinds)
        else:
            console().print(table("cost models", ["name", "what it is"], [list(entry) for entry in kinds.items()]))
        return
    found = {str(path): read_about(path) for path in arguments.checkpoints}
    if arguments.json:
        print_json(found)
        return
    rows = [
        [name, about["model"], str(about["parameters"]), f"{about['bytes'] / 1e6:.2f}", about["iree"],
         ", ".join(about["platforms"]), str(len(about["training_keys"])), f"{about['metrics'].get('top_1', 0.0):.3f}",
         f"{about['metrics'].get('top_5', 0.0):.3f}"]
        for name, about in found.items()
    ]  # fmt: skip
    names = ["checkpoint", "model", "parameters", "MB", "IREE", "platforms", "workloads", "top-1", "top-5"]
    console().print(table("checkpoints; top-k on validation", names, rows, numeric=(2, 3, 6, 7, 8)))
    for name, about in found.items():
        if about.get("lineage"):
            console().print(lineage_table(name, about["lineage"]))
