"""`tcl-iree db`: look at, share and combine databases."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tcl_iree.cli.common import add_command, add_database, add_json, print_json
from tcl_iree.database import Database, export_parquet, import_parquet
from tcl_iree.errors import OptionError
from tcl_iree.report.tables import console, table


def register(commands: Any, summary: str) -> None:
    """Add the sub-command and its own."""
    parser = add_command(
        commands,
        "db",
        summary,
        "  tcl-iree db info\n"
        "  tcl-iree db export trials.parquet\n"
        "  tcl-iree db import trials.parquet --db mine.db\n"
        "  tcl-iree db merge other.db --db mine.db\n",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, summary, run, argument in (
        ("info", "Count workloads, schedules and trials.", info, None),
        ("export", "Write all trials to a Parquet file.", export, "file"),
        ("import", "Take over the trials of a Parquet file.", import_, "file"),
        ("merge", "Take over everything another database has and this one lacks.", merge, "other"),
    ):
        action = actions.add_parser(name, help=summary, description=summary)
        if argument:
            action.add_argument(argument, type=Path)
        add_database(action)
        add_json(action)
        action.set_defaults(run=run)


def info(arguments: argparse.Namespace) -> None:
    """Print counts."""
    with Database(arguments.db, create=False) as database:
        found = database.info()
    if arguments.json:
        print_json(found)
        return
    groups: Any = found["groups"]
    rows = [
        [group["spec"], group["target"], group["iree"], group["flags"], group["status"], str(group["trials"]),
         str(group["workloads"]), f"{group['build_seconds'] / 60:.1f}", f"{group['run_seconds'] / 60:.1f}"]
        for group in groups
    ]  # fmt: skip
    title = (
        f"{found['path']}: schema {found['schema']}, {found['workloads']} workloads, "
        f"{found['schedules']} schedules, {found['trials']} trials"
    )
    names = ["target", "key", "IREE", "flags", "status", "trials", "workloads", "build min", "run min"]
    console().print(table(title, names, rows, numeric=(5, 6, 7, 8)))


def export(arguments: argparse.Namespace) -> None:
    """Write Parquet."""
    if arguments.file.resolve() == arguments.db.resolve():
        raise OptionError(f"{arguments.file} is the database itself; name another file to write to")
    with Database(arguments.db, create=False) as database:
        _say(arguments, export_parquet(database, arguments.file), f"trials written to {arguments.file}")


def import_(arguments: argparse.Namespace) -> None:
    """Read Parquet."""
    with Database(arguments.db) as database:
        _say(arguments, import_parquet(database, arguments.file), f"new trials taken from {arguments.file}")


def merge(arguments: argparse.Namespace) -> None:
    """Merge another database into this one."""
    with Database(arguments.other, create=False) as other, Database(arguments.db) as database:
        _say(arguments, database.merge(other), f"new trials taken from {arguments.other}")


def _say(arguments: argparse.Namespace, count: int, text: str) -> None:
    if arguments.json:
        print_json({"trials": count})
    else:
        print(f"{count} {text}")
