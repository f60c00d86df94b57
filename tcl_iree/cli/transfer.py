"""`tcl-iree transfer`: carry a cost model to another platform."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tcl_iree.cli.common import MODEL_HELP, add_command, add_database, add_json, print_json, read_config
from tcl_iree.learning.checkpoint_files import checkpoint_file
from tcl_iree.learning.distillation.options import Distillation
from tcl_iree.learning.sampling import SAMPLERS
from tcl_iree.report.progress import progress
from tcl_iree.report.tables import console, table
from tcl_iree.report.transfer import transfer_table
from tcl_iree.workflows.guide import checkpoint_path
from tcl_iree.workflows.transfer_options import TransferOptions
from tcl_iree.workflows.tuned import writable_directory

_DEFAULTS = TransferOptions()


def register(commands: Any, summary: str) -> None:
    """Add the sub-command."""
    parser = add_command(
        commands,
        "transfer",
        summary,
        "  tcl-iree transfer --from base --target cpu:avx2 --networks zoo:bert-mini --labels 512 -o models/two\n"
        "  tcl-iree transfer --from models/two --target cpu-avx512-t2 --data data/ --labels 256 -o models/three\n",
    )
    parser.add_argument(
        "--from",
        dest="origins",
        nargs="+",
        required=True,
        metavar="NAME",
        help="`base` for the one that comes along, or one that `tcl-iree train` or `transfer` wrote",
    )
    parser.add_argument(
        "--target",
        required=True,
        metavar="T",
        help="the new platform: a target as elsewhere, or a platform's key (or its beginning) that the data has",
    )
    parser.add_argument(
        "--labels", type=int, default=_DEFAULTS.labels, metavar="N", help="programs to learn from (default %(default)s)"
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="NAME",
        help="write NAME.safetensors, NAME.json, NAME.transfer.safetensors and NAME.report.json",
    )  # fmt: skip
    parser.add_argument("--replace", action="store_true", help="-o may name the model to go on from")
    parser.add_argument(
        "--data", nargs="+", type=Path, default=[], metavar="FILE",
        help="measured programs: those of the new platform are its labels, and all show what is gained and lost",
    )  # fmt: skip
    parser.add_argument(
        "--networks", nargs="+", default=[], metavar="MODEL", help=f"measure programs of these: {MODEL_HELP}"
    )
    parser.add_argument("--sampler", default=_DEFAULTS.sampler, choices=tuple(SAMPLERS), help="(default %(default)s)")
    parser.add_argument(
        "--per-workload", type=int, default=_DEFAULTS.per_workload, metavar="N",
        help="random programs of each workload to choose from (default %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--base", default=_DEFAULTS.base_flags, metavar="FLAGS", help="as in collect (default %(default)s)"
    )
    parser.add_argument(
        "--longest", type=float, default=_DEFAULTS.longest, metavar="SECONDS",
        help="leave out workloads whose default takes longer (default %(default)s)",
    )  # fmt: skip
    parser.add_argument("--epochs", type=int, default=_DEFAULTS.epochs, help="at most (default %(default)s)")
    parser.add_argument(
        "--seed", type=int, default=_DEFAULTS.seed, help="of sampling and learning (default %(default)s)"
    )
    parser.add_argument("--all", action="store_true", help="learn from test workloads too, as in train")
    parser.add_argument(
        "--config", nargs="*", default=[], metavar="NAME=NUMBER", help="settings of the distillation, e.g. ewc=50"
    )
    add_database(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Transfer and print. Cut off, it goes on where it stopped when it is run again; the old model is only read."""
    from tcl_iree.workflows.transfer import refuse_in_place, transfer  # torch takes seconds to import

    options = TransferOptions(
        arguments.labels,
        arguments.sampler,
        arguments.per_workload,
        arguments.base,
        arguments.longest,
        arguments.epochs,
        arguments.seed,
        arguments.all,
        Distillation.of(read_config(arguments.config)),
    )
    origins = [checkpoint_path(name) for name in arguments.origins]
    output = checkpoint_file(arguments.output)
    refuse_in_place(origins, output, arguments.replace)
    writable_directory(output.parent)
    with progress(1, "reading programs") as step:
        report = transfer(
            origins, arguments.target, output, options, arguments.data, arguments.networks, arguments.db, step
        )
    if arguments.json:
        print_json(asdict(report))
        return
    console().print(transfer_table(report))
    for note in report.notes:
        console().print(f"note: {note}", soft_wrap=True)
    if report.left:
        console().print(table("left out", ["what", "why"], [list(entry) for entry in report.left.items()]))
    console().print(
        f"{report.measured} programs measured, {report.known} known; written to {output}.safetensors, .json, "
        ".transfer.safetensors and .report.json",
        soft_wrap=True,
    )
