"""`tcl-iree extract`: the dispatches of a model."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tcl_iree.cli.common import (
    MODEL_HELP,
    add_command,
    add_flags,
    add_json,
    add_target,
    parse_target,
    print_json,
)
from tcl_iree.errors import ModelError
from tcl_iree.frontend import Extraction, extract, load_model
from tcl_iree.report.progress import progress
from tcl_iree.report.tables import console, extraction_table


def register(commands: Any, summary: str) -> None:
    """Add the sub-command."""
    parser = add_command(
        commands,
        "extract",
        summary,
        "  tcl-iree extract model.mlir\n"
        "  tcl-iree extract zoo:resnet-50 --target cpu:avx2\n"
        "  tcl-iree extract my_models.py:encoder --save payloads/ --json\n",
    )
    parser.add_argument("model", help=MODEL_HELP)
    add_target(parser)
    add_flags(parser)
    parser.add_argument("--save", type=Path, metavar="DIR", help="write each payload to DIR/<key>.mlir")
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Extract and print."""
    target = parse_target(arguments)
    with progress(2, "importing the model") as step:
        model = load_model(arguments.model)
        step("forming dispatches", advance=1)
        extraction = extract(model, target, arguments.iree_flag)
    if arguments.save:
        _save(extraction, arguments.save)
    if arguments.json:
        print_json(_as_json(extraction))
    else:
        for made in extraction_table(extraction):
            console().print(made)
    extraction.require_tunable()


def _save(extraction: Extraction, directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for entry in extraction.dispatches:
            (directory / f"{entry.workload.key}.mlir").write_text(entry.workload.payload + "\n")
    except OSError as error:
        raise ModelError(f"cannot write payloads to {directory}: {error.strerror}") from None


def _as_json(extraction: Extraction) -> dict[str, Any]:
    dispatches = []
    for entry in extraction.dispatches:
        load = asdict(entry.workload)
        del load["payload"]
        dispatches.append(
            load | {"label": entry.workload.label, "occurrences": entry.occurrences, "names": entry.names}
        )
    return {
        "model": extraction.model,
        "flags": extraction.flags,
        "dispatches": dispatches,
        "untunable": [asdict(entry) for entry in extraction.untunable],
    }
