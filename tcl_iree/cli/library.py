"""`tcl-iree library`: look into and combine libraries of schedules."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tcl_iree.cli.common import add_command, add_json, print_json
from tcl_iree.errors import LibraryError
from tcl_iree.report.tables import console, table
from tcl_iree.transform_dialect.library import Library, LibraryEntry, merge
from tcl_iree.transform_dialect.library_text import compile_command, path_warning


def register(commands: Any, summary: str) -> None:
    """Add the sub-command and its own."""
    parser = add_command(
        commands,
        "library",
        summary,
        "  tcl-iree library show library.mlir\n  tcl-iree library merge resnet.mlir bert.mlir -o both.mlir\n",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    summary = "List the workloads, schedules and speed-ups of a library."
    shown = actions.add_parser("show", help=summary, description=summary)
    shown.add_argument("file", type=Path)
    add_json(shown)
    shown.set_defaults(run=show)
    summary = "Write one library with the workloads of several; the faster measured schedule wins."
    merged = actions.add_parser("merge", help=summary, description=summary)
    merged.add_argument("files", type=Path, nargs="+", metavar="FILE")
    merged.add_argument("-o", "--output", type=Path, required=True, metavar="OUT")
    add_json(merged)
    merged.set_defaults(run=merge_files)


def show(arguments: argparse.Namespace) -> None:
    """Print one library's contents."""
    library = Library.read(arguments.file)
    command = compile_command(library, "MODEL.mlir", str(arguments.file), "MODEL.vmfb")
    warning = path_warning(arguments.file)
    if arguments.json:
        entries = [_as_json(entry) for entry in library.entries]
        print_json({"header": asdict(library.header), "command": command, "warning": warning, "entries": entries})
        return
    header = library.header
    title = f"{arguments.file}: IREE {header.iree}, target {header.target_text} ({header.target_key})"
    rows = [[entry.key, entry.label, _speed(entry), str(entry.schedule)] for entry in library.entries]
    console().print(table(title, ["key", "workload", "speed-up", "schedule"], rows, numeric=(2,)))
    print(f"compile with:\n  {command}")
    _warn(warning)


def merge_files(arguments: argparse.Namespace) -> None:
    """Merge, write, report conflicts."""
    library, conflicts = merge([Library.read(file) for file in arguments.files])
    try:
        arguments.output.write_text(library.text(), encoding="utf-8")
    except OSError as error:
        raise LibraryError(f"cannot write {arguments.output}: {error.strerror}") from None
    if arguments.json:
        pairs = [{"kept": _as_json(one.kept), "dropped": _as_json(one.dropped)} for one in conflicts]
        warning = path_warning(arguments.output)
        written = {"output": str(arguments.output), "warning": warning}
        print_json({**written, "entries": len(library.entries), "conflicts": pairs})
        return
    for one in conflicts:
        kept, dropped = (f"{entry.schedule} ({_speed(entry)})" for entry in (one.kept, one.dropped))
        print(f"conflict on {one.kept.label} ({one.kept.key}): kept {kept}, dropped {dropped}", file=sys.stderr)
    print(f"{len(library.entries)} workloads written to {arguments.output}, {len(conflicts)} conflicts")
    _warn(path_warning(arguments.output))


def _warn(text: str | None) -> None:
    if text:
        print(f"warning: {text}", file=sys.stderr)


def _speed(entry: LibraryEntry) -> str:
    if entry.speedup is None:
        return "-"
    return f"{entry.speedup:.2f}x" + ("" if entry.measured else " unmeasured")


def _as_json(entry: LibraryEntry) -> dict[str, Any]:
    return {
        "key": entry.key,
        "label": entry.label,
        "family": entry.schedule.family,
        "decisions": entry.schedule.plain,
        "speedup": entry.speedup,
        "measured": entry.measured,
    }
