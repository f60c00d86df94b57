"""Parse the command line, run one sub-command, turn errors into one clear line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tcl_iree import __version__
from tcl_iree.cli import (
    apply,
    bench,
    collect,
    db,
    eval,
    explain,
    extract,
    jobs,
    library,
    measure,
    models,
    targets,
    train,
    transfer,
    tune,
)
from tcl_iree.errors import TclIreeError

_COMMANDS = (
    targets,
    extract,
    measure,
    bench,
    tune,
    explain,
    apply,
    library,
    jobs,
    collect,
    train,
    transfer,
    eval,
    models,
    db,
)


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="tcl-iree",
        description="Find, build, measure and learn to rank schedules for the dispatches of a model compiled by IREE.",
        epilog="`tcl-iree COMMAND --help` explains one command and shows examples.",
    )
    parser.add_argument("--version", action="version", version=f"tcl-iree {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.register(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code: 0 done, 2 a clear error, 130 interrupted."""
    arguments = build_parser().parse_args(argv)
    try:
        return int(arguments.run(arguments) or 0)
    except TclIreeError as error:
        print(f"tcl-iree: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tcl-iree: interrupted; everything reported so far is kept", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output (head, less) has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
