"""`tcl-iree collect`: measure programs to learn from."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tcl_iree.cli.common import MODEL_HELP, add_command, add_database, add_json, add_target, parse_target, print_json
from tcl_iree.database import Database
from tcl_iree.errors import OptionError
from tcl_iree.report.progress import progress
from tcl_iree.report.tables import console, table
from tcl_iree.workflows.collect import CollectOptions, collect, collect_recorded
from tcl_iree.workflows.layouts import CHANGE, KEEP
from tcl_iree.workflows.tuned import writable_directory

_DEFAULTS = CollectOptions()


def register(commands: Any, summary: str) -> None:
    """Add the sub-command."""
    parser = add_command(
        commands,
        "collect",
        summary,
        "  tcl-iree collect --networks zoo:resnet-18 zoo:bert-mini --target cpu,threads=1 --budget 2000 -o data/\n"
        "  tcl-iree collect --networks mine.py:encoder --per-workload 64 --db mine.db\n"
        "  tcl-iree collect --programs data/ --target cpu:sse4,threads=1 --per-workload 16 -o data/\n"
        "  tcl-iree collect --programs data/ --fresh --only 9fe5 --target cpu,threads=1 --per-workload 1000 -o data/\n",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--networks", nargs="+", metavar="MODEL", help=MODEL_HELP)
    what.add_argument(
        "--programs",
        nargs="+",
        type=Path,
        metavar="DATA",
        help="databases or Parquet files of other targets: the same programs are measured here, under the flags they "
        "had there, so that platforms can be compared (--base, --layouts and --evolved have no say)",
    )
    add_target(parser)
    parser.add_argument(
        "--budget",
        type=int,
        metavar="N",
        help="stop after so many programs, those of earlier runs with this seed included",
    )
    parser.add_argument(
        "--per-workload",
        type=int,
        default=_DEFAULTS.per_workload,
        metavar="N",
        help="programs of each workload (default %(default)s)",
    )
    parser.add_argument(
        "--evolved",
        type=float,
        default=_DEFAULTS.evolved,
        metavar="SHARE",
        help="share of programs that breeding from the fastest proposes (default %(default)s)",
    )
    parser.add_argument(
        "--base", default=_DEFAULTS.base, metavar="FLAGS", help="as in tune, but not auto (default %(default)s)"
    )
    parser.add_argument(
        "--layouts",
        choices=(KEEP, CHANGE),
        default=_DEFAULTS.layouts,
        help="the networks' own, or channels last with packed weights (default %(default)s)",
    )
    parser.add_argument(
        "--longest",
        type=float,
        default=_DEFAULTS.longest,
        metavar="SECONDS",
        help="leave out workloads whose default takes longer (default %(default)s)",
    )
    parser.add_argument(
        "--workloads",
        type=int,
        metavar="N",
        help="with --programs: only of so many workloads, those with the most programs (default: all)",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="KEY",
        help="with --programs: only of workloads whose keys begin like this",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="with --programs: not the programs themselves, but --per-workload others of their workloads",
    )
    parser.add_argument("--seed", type=int, default=_DEFAULTS.seed, help="of the sampling (default %(default)s)")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="write Parquet shards there as they fill")
    add_database(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Collect and print."""
    options = CollectOptions(
        arguments.budget,
        arguments.per_workload,
        arguments.evolved,
        arguments.base,
        arguments.layouts,
        arguments.longest,
        arguments.workloads,
        tuple(arguments.only),
        arguments.fresh,
        arguments.seed,
    )
    given = [
        name
        for name, value in (("workloads", options.workloads), ("only", options.only), ("fresh", options.fresh))
        if value
    ]
    if arguments.networks and given:
        raise OptionError(f"--{given[0]} is about recorded programs: give it with --programs, not with --networks")
    target = parse_target(arguments)
    if arguments.output:
        writable_directory(arguments.output)
    with Database(arguments.db) as database, progress(1, "forming dispatches") as step:
        if arguments.programs:
            found = collect_recorded(arguments.programs, target, database, options, arguments.output, step)
        else:
            found = collect(arguments.networks, target, database, options, arguments.output, step)
    if arguments.json:
        print_json(asdict(found) | {"shards": [str(path) for path in found.shards]})
    else:
        rate = found.programs / max(1e-9, found.seconds)
        console().print(
            f"{found.programs} programs of {found.workloads} workloads measured in {found.seconds / 60:.1f} min "
            f"({rate:.2f} a second), {found.failed} of them failed; {found.known} were known"
        )
        if found.left:
            console().print(table("left out", ["what", "why"], [list(entry) for entry in found.left.items()]))
        for path in found.shards:
            console().print(f"written: {path}", soft_wrap=True)
    return 130 if found.interrupted else 0
