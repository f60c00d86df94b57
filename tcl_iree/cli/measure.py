"""`tcl-iree measure`: build, verify and time scripts on one dispatch of a model."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tcl_iree.cli.common import (
    MODEL_HELP,
    add_command,
    add_database,
    add_flags,
    add_json,
    add_target,
    flags_of,
    parse_target,
    print_json,
)
from tcl_iree.database import Database, ScheduleRecord
from tcl_iree.errors import ModelError, OptionError
from tcl_iree.frontend import Extraction, extract, load_model, read_payload
from tcl_iree.measure.builder import Builder
from tcl_iree.measure.runner import Runner
from tcl_iree.report.progress import progress
from tcl_iree.report.tables import console, trial_table
from tcl_iree.transform_dialect.names import ENTRY
from tcl_iree.workflows.trials import TrialSession
from tcl_iree.workload.model import Workload


def register(commands: Any, summary: str) -> None:
    """Add the sub-command."""
    parser = add_command(
        commands,
        "measure",
        summary,
        "  tcl-iree measure model.mlir script.mlir\n"
        "  tcl-iree measure zoo:bert-base a.mlir b.mlir@my_entry --dispatch 1f3c --target cpu,threads=1\n",
    )
    parser.add_argument("model", help=f"{MODEL_HELP}; or one dispatch saved by `extract --save`")
    parser.add_argument(
        "script",
        nargs="*",
        help=f"transform library files, FILE or FILE@ENTRY (default entry @{ENTRY})",
    )
    parser.add_argument(
        "--dispatch", default="", metavar="KEY", help="first digits of the dispatch's key (see extract)"
    )
    add_target(parser)
    add_flags(parser)
    add_database(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Measure and print."""
    target = parse_target(arguments)
    target.require_runnable()
    flags = flags_of(arguments, target)
    schedules = [_read_script(text) for text in arguments.script]
    with progress(len(schedules) + 2, "importing the model") as step:
        workload = read_payload(arguments.model)
        if workload is None:
            extraction = extract(load_model(arguments.model), target, flags)
            workload = _choose(extraction, arguments.dispatch)
        elif arguments.dispatch:
            raise OptionError(f"{arguments.model} is one dispatch already: leave --dispatch out")
        step("measuring IREE's default", advance=1)
        with (
            Database(arguments.db) as database,
            Builder(target, flags) as builder,
            Runner(target) as runner,
        ):
            session = TrialSession(workload, builder, runner, database)
            rows = [("IREE default", session.default)]
            step("building", advance=1)
            for text, trial in zip(arguments.script, session.measure(schedules), strict=True):
                rows.append((text, trial))
                step(f"measured {text}", advance=1)
    if arguments.json:
        trials = [asdict(trial) | {"name": name} for name, trial in rows]
        print_json(
            {
                "workload": workload.key,
                "label": workload.label,
                "reference": asdict(session.check),
                "trials": trials,
            }
        )
        return
    console().print(trial_table(f"{workload.label} on {target} (default {session.check.status} by numpy)", rows))


def _read_script(text: str) -> ScheduleRecord:
    name, _, entry = (text, "", "") if Path(text).is_file() else text.rpartition("@")
    path = Path(name or text)
    if not path.is_file():
        raise ModelError(f"no script at {path}")
    try:
        return ScheduleRecord("script", {}, path.read_text(), entry or ENTRY)
    except UnicodeDecodeError:
        raise ModelError(f"{path} is not a text file") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None


def _choose(extraction: Extraction, prefix: str) -> Workload:
    extraction.require_tunable()
    found = [entry.workload for entry in extraction.dispatches if entry.workload.key.startswith(prefix)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(f"{entry.workload.key[:6]} ({entry.workload.label})" for entry in extraction.dispatches[:8])
    problem = "no dispatch has" if not found else f"{len(found)} dispatches have"
    raise ModelError(f"{problem} a key that starts with {prefix!r}; choose one with --dispatch: {listed}")
