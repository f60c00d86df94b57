"""`tcl-iree train`: teach a cost model from measured programs."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tcl_iree.cli.common import add_command, add_data, add_json, print_json, read_config
from tcl_iree.learning.checkpoint_files import checkpoint_file
from tcl_iree.learning.cost_model import Epoch
from tcl_iree.learning.models import MODELS, make_model
from tcl_iree.learning.split import load_split
from tcl_iree.report.learning import curve, evaluation_table
from tcl_iree.report.progress import progress
from tcl_iree.report.tables import console
from tcl_iree.workflows.data import Programs
from tcl_iree.workflows.train import train
from tcl_iree.workflows.tuned import writable_directory


def register(commands: Any, summary: str) -> None:
    """Add the sub-command."""
    parser = add_command(
        commands,
        "train",
        summary,
        "  tcl-iree train --data data/ -o models/mamba\n"
        "  tcl-iree train --model tlp --data mine.db other.parquet --seed 1 --epochs 40 -o models/tlp\n"
        "  tcl-iree train --data mine.db --all --config width=32 -o models/mine\n",
    )
    add_data(parser)
    parser.add_argument("--model", default="mamba", choices=tuple(MODELS), help="(default %(default)s)")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="NAME",
        help="write NAME.safetensors and NAME.json, "
        "for mamba also NAME.transfer.safetensors, which learning another platform needs",
    )
    parser.add_argument("--seed", type=int, default=0, help="of first weights and order (default %(default)s)")
    parser.add_argument("--epochs", type=int, default=60, help="at most (default %(default)s)")
    parser.add_argument(
        "--all", action="store_true", help="learn from test workloads too; such a model cannot be benchmarked"
    )
    parser.add_argument(
        "--config", nargs="*", default=[], metavar="NAME=NUMBER", help="the model's own settings, e.g. width=32"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Train, save and print. Cut off, it goes on where it stopped when it is run again."""
    config = read_config(arguments.config)
    output = checkpoint_file(arguments.output)
    writable_directory(output.parent)
    unfinished = output.with_name(f"{output.name}.unfinished")
    passes = arguments.epochs * make_model(arguments.model, config).trainings
    with Programs(arguments.data) as programs, progress(passes, "reading programs") as step:
        groups = programs.groups(arguments.platform)

        def say(epoch: Epoch) -> None:
            figures = f"top-1 {epoch.top_1:.3f}, top-5 {epoch.top_5:.3f}, pairs {epoch.pairs:.3f}"
            step(f"loss {epoch.loss:.4f}, validation {figures}", 1)

        split = None if arguments.all else load_split()
        made = train(arguments.model, groups, split, arguments.seed, arguments.epochs, config, unfinished, say)
    made.save(output)
    for file in output.parent.glob(f"{unfinished.name}*"):
        file.unlink()
    if arguments.json:
        print_json({
            "model": made.model.name,
            "parameters": made.model.parameters,
            "metrics": made.metrics,
            "history": [asdict(epoch) for epoch in made.history],
            "checkpoint": str(output),
        })  # fmt: skip
        return
    console().print(evaluation_table("validation", {made.model.name: made.metrics}))
    console().print(curve(made.history))
    console().print(f"written to {output}.safetensors and .json ({made.model.parameters} parameters)", soft_wrap=True)
