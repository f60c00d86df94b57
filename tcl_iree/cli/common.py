"""Arguments that several sub-commands share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tcl_iree.database import default_database
from tcl_iree.errors import OptionError
from tcl_iree.report.json_text import json_text
from tcl_iree.target import Target
from tcl_iree.workflows.base_flags import with_stack
from tcl_iree.workflows.flag_sets import FlagSet
from tcl_iree.workflows.guide import BASE

MODEL_HELP = (
    "a .mlir, .mlirbc or .onnx file, module:function or file.py:function returning (torch module, inputs), or zoo:NAME"
)


def add_command(commands: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    """A sub-command with examples below its options."""
    return commands.add_parser(
        name,
        help=summary,
        description=summary,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_target(parser: argparse.ArgumentParser) -> None:
    """`--target`."""
    parser.add_argument(
        "--target",
        default="cpu",
        metavar="T",
        help="cpu (default), cpu:avx512, cpu:avx2, cpu:sse4, cuda:sm_80, vulkan; options after commas: cpu,threads=1",
    )


def add_flags(parser: argparse.ArgumentParser) -> None:
    """`--iree-flag`, repeatable."""
    parser.add_argument(
        "--iree-flag",
        action="append",
        default=[],
        metavar="FLAG",
        help="a further iree-compile flag, e.g. --iree-flag=--iree-opt-level=O2 (repeatable)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def add_database(parser: argparse.ArgumentParser) -> None:
    """`--db`."""
    parser.add_argument(
        "--db",
        type=Path,
        default=default_database(),
        metavar="FILE",
        help="database file (default: %(default)s)",
    )


def add_cost_model(parser: argparse.ArgumentParser) -> None:
    """`--model`."""
    parser.add_argument(
        "--model",
        default=BASE,
        metavar="NAME",
        help=f"the cost model: {BASE} (default), which ships with tcl-iree, or a checkpoint of `tcl-iree train`",
        dest="cost_model",
    )


def add_data(parser: argparse.ArgumentParser) -> None:
    """`--data` and `--platform`."""
    shown = str(default_database()).replace("%", "%%")  # argparse would take it for a placeholder
    parser.add_argument(
        "--data",
        nargs="+",
        type=Path,
        default=[default_database()],
        metavar="FILE",
        help=f"measured programs: databases, Parquet files, or directories of them (default: {shown})",
    )
    parser.add_argument("--platform", metavar="KEY", help="only programs of this target's key, or its beginning")


def read_config(texts: Sequence[str]) -> dict[str, float]:
    """Settings written NAME=NUMBER.

    Raises:
        OptionError: one is written otherwise.
    """
    made: dict[str, float] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            made[name] = int(value) if value.isdigit() else float(value)
        except ValueError:
            raise OptionError(f"a setting is written NAME=NUMBER, not {text!r}") from None
    return made


def parse_target(arguments: argparse.Namespace) -> Target:
    """The target given, or a clear error."""
    return Target.parse(arguments.target)


def flags_of(arguments: argparse.Namespace, target: Target) -> tuple[str, ...]:
    """The flags given, with the stack that `tune` allows: trials can be compared only under the same flags."""
    return with_stack(FlagSet("given", tuple(arguments.iree_flag)), target).flags


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    print(json_text(value))
