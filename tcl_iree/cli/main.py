"""Parse the command line, run one sub-command, turn errors into one clear line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from tcl_iree import __version__
from tcl_iree.errors import TclIreeError

# Each is a module beside this one. Some need torch or the compiler, so only the one that is asked for is imported.
COMMANDS = {
    "targets": "List the targets: which compile and which run on this machine.",
    "extract": "List the distinct dispatches of a model, and what cannot be tuned and why.",
    "measure": "Build, verify and time transform scripts on one dispatch, beside IREE's default.",
    "bench": "Time a model under IREE's own flag sets, interleaved, outputs checked, and show where the time goes.",
    "tune": "Find schedules for a model's dispatches, compile it with them, and compare it with IREE's own flags.",
    "explain": "Say of one dispatch what was tried, what failed and why, what the cost model saw, and what mattered.",
    "apply": "Compile a model with a library of schedules and check that each part of it took effect.",
    "library": "Look into and merge libraries of schedules.",
    "jobs": "Build schedules here, measure them on another machine that has the device, and merge the results.",
    "collect": "Measure random schedules of many workloads, to train cost models on. Cut off, it goes on from there.",
    "train": "Train a cost model that ranks schedules without running them.",
    "transfer": "Teach a trained model one more platform from a few measured programs; it keeps what it knew.",
    "eval": "Compare trained cost models on the test workloads, beside guessing and a roofline.",
    "models": "List the kinds of cost model, or describe trained ones.",
    "db": "Look at, export, import and merge databases of trials.",
}


def build_parser(wanted: str | None) -> argparse.ArgumentParser:
    """The command line, with all the arguments of one sub-command."""
    parser = argparse.ArgumentParser(
        prog="tcl-iree",
        description="Find, build, measure and learn to rank schedules for the dispatches of a model compiled by IREE.",
        epilog="`tcl-iree COMMAND --help` explains one command and shows examples.",
    )
    parser.add_argument("--version", action="version", version=f"tcl-iree {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        if name == wanted:
            import_module(f"tcl_iree.cli.{name}").register(commands, summary)
        else:
            commands.add_parser(name, help=summary)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code: 0 done, 2 a clear error, 130 interrupted."""
    given = list(sys.argv[1:] if argv is None else argv)
    wanted = next((word for word in given if not word.startswith("-")), None)
    try:
        arguments = build_parser(wanted).parse_args(given)
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
