"""`tcl-iree explain`: what is known of one dispatch."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from tcl_iree.cli.common import (
    MODEL_HELP,
    add_command,
    add_cost_model,
    add_database,
    add_flags,
    add_json,
    add_target,
    parse_target,
    print_json,
)
from tcl_iree.database import Database
from tcl_iree.errors import DatabaseError, OptionError
from tcl_iree.frontend import Extraction, extract, load_model
from tcl_iree.report.explain import explain_tables, workload_table
from tcl_iree.report.progress import progress
from tcl_iree.report.tables import console
from tcl_iree.workflows.explain import explain, measured_workloads, target_key
from tcl_iree.workflows.find_workload import find_workload


def register(commands: Any, summary: str) -> None:
    """Add the sub-command."""
    parser = add_command(
        commands,
        "explain",
        summary,
        "  tcl-iree explain                                       what can be explained\n"
        "  tcl-iree explain 1f3c --target cpu,threads=1\n"
        '  tcl-iree explain "matmul 64x1024x288 f32 +1" --top 20 --json\n'
        "  tcl-iree explain 2 --network zoo:resnet-18 --iree-flag=--iree-global-opt-use-im2col-for-convs\n",
    )
    parser.add_argument(
        "dispatch",
        nargs="?",
        help="first digits of its key, its label or part of that; with --network also its place in what extract lists",
    )
    add_target(parser)
    parser.add_argument("--network", metavar="MODEL", help=f"look among the dispatches of this: {MODEL_HELP}")
    add_flags(parser)
    parser.add_argument(
        "--flags",
        metavar="TEXT",
        help="explain the trials with these compile flags, as `tcl-iree db info` lists them: --flags='--a --b' "
        "(default: those with most trials)",
    )
    parser.add_argument("--top", type=int, default=10, metavar="N", help="list the N fastest (default %(default)s)")
    add_cost_model(parser)
    add_database(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Explain and print."""
    if arguments.top < 1:
        raise OptionError(f"top must be at least 1, not {arguments.top}")
    if arguments.iree_flag and not arguments.network:
        raise OptionError(
            "--iree-flag is for forming the dispatches of --network; --flags says which trials to explain"
        )
    with Database(arguments.db, create=False) as database:
        target = target_key(arguments.target, database)
        if arguments.dispatch is None:
            _list(arguments, database, target)
            return
        record = find_workload(database, arguments.dispatch, _network(arguments))
        found = explain(database, record, target, arguments.top, arguments.flags, arguments.cost_model)
    if arguments.json:
        print_json(asdict(found))
        return
    out = console()
    for made in explain_tables(found):
        out.print(made)
        out.print()
    for note in found.notes:
        out.print(f"note: {note}")


def _network(arguments: argparse.Namespace) -> Extraction | None:
    if not arguments.network:
        return None
    with progress(1, f"forming dispatches of {arguments.network}"):
        return extract(load_model(arguments.network), parse_target(arguments), arguments.iree_flag)


def _list(arguments: argparse.Namespace, database: Database, target: str) -> None:
    rows = measured_workloads(database, target)
    if not rows:
        raise DatabaseError(
            f"nothing in {database.path} was measured on {target}; `tcl-iree db info` lists targets, --target takes "
            "their names and keys"
        )
    if arguments.json:
        print_json([asdict(row) for row in rows])
    else:
        console().print(workload_table(target, rows))
