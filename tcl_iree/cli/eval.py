"""`tcl-iree eval`: how well trained cost models rank programs they have not seen."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tcl_iree.cli.common import add_command, add_data, add_json, print_json
from tcl_iree.errors import LearningError
from tcl_iree.learning.checkpoint import load_checkpoint
from tcl_iree.learning.cost_model import CostModel
from tcl_iree.learning.models import make_model
from tcl_iree.learning.split import TEST, load_split
from tcl_iree.report.learning import evaluation_table
from tcl_iree.report.tables import console
from tcl_iree.workflows.data import Programs
from tcl_iree.workflows.train import judge


def register(commands: Any, summary: str) -> None:
    """Add the sub-command."""
    parser = add_command(
        commands,
        "eval",
        summary,
        "  tcl-iree eval models/mamba models/tlp --data data/\n"
        "  tcl-iree eval models/mamba --data mine.db --part validation --json\n",
    )
    parser.add_argument("checkpoints", nargs="+", type=Path, metavar="NAME", help="as `tcl-iree train -o` wrote them")
    add_data(parser)
    parser.add_argument("--part", default=TEST, choices=("test", "validation", "train"), help="(default %(default)s)")
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Evaluate and print."""
    split = load_split()
    models: dict[str, CostModel] = {name: make_model(name) for name in ("random", "roofline")}
    checkpoints = {path: load_checkpoint(path) for path in arguments.checkpoints}
    with Programs(arguments.data) as programs:
        groups = split.divide(programs.groups(arguments.platform))[arguments.part]
    if not groups:
        raise LearningError(f"the data has no workloads of the {arguments.part} part; choose another with --part")
    for path, made in checkpoints.items():
        if arguments.part == TEST:
            split.refuse_overlap(made.training_keys, groups)
        models[f"{made.model.name} ({path})"] = made.model
    found = judge(models, groups, split if arguments.part == TEST else None)
    if arguments.json:
        print_json({name: asdict(entry) for name, entry in found.items()})
        return
    console().print(evaluation_table(arguments.part, {name: asdict(entry) for name, entry in found.items()}))
