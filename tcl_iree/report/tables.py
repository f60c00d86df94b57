"""Tables on a terminal, plain text elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tcl_iree.database import Trial
from tcl_iree.frontend import Extraction

_WIDE = 200


def console() -> Console:
    """Standard output; as wide as it takes when it is not a terminal, so that nothing is cut off.

    What is printed is text as it stands: brackets in paths and messages are no markup.
    """
    width = None if sys.stdout.isatty() else _WIDE
    return Console(highlight=False, markup=False, emoji=False, width=width)


def error_console() -> Console:
    """Standard error, where what moves is shown only on a terminal, whatever FORCE_COLOR asks for elsewhere."""
    return Console(stderr=True, markup=False, emoji=False, force_terminal=None if sys.stderr.isatty() else False)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[int] = ()) -> Table:
    """A table; columns listed in `numeric` are right-aligned."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for index, name in enumerate(columns):
        made.add_column(name, justify="right" if index in numeric else "left", overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def seconds(value: float | None) -> str:
    """A duration with three digits and a unit people use."""
    if value is None:
        return "-"
    for limit, scale, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (float("inf"), 1.0, "s")):
        if value < limit:
            return f"{value * scale:.3g} {unit}" if value * scale < 1000 else f"{value * scale:.0f} {unit}"
    raise AssertionError


def extraction_table(extraction: Extraction) -> list[Table]:
    """The dispatches of a model, most arithmetic first, then what is left to IREE."""
    total = sum(entry.workload.flops * entry.occurrences for entry in extraction.dispatches) or 1
    rows = [
        [
            entry.workload.key,
            entry.workload.label,
            str(entry.occurrences),
            f"{entry.workload.flops / 1e6:.2f}",
            f"{entry.workload.bytes / 1e6:.2f}",
            f"{100 * entry.workload.flops * entry.occurrences / total:.1f} %",
        ]
        for entry in extraction.dispatches
    ]
    count = sum(entry.occurrences for entry in extraction.dispatches)
    title = f"{extraction.model}: {len(rows)} distinct tunable dispatches, {count} per inference"
    tables = [
        table(title, ["key", "workload", "times", "MFLOP", "MB", "share of FLOPs"], rows, numeric=(2, 3, 4, 5)),
    ]
    if extraction.untunable:
        left = [[entry.name, str(entry.occurrences), entry.reason] for entry in extraction.untunable]
        tables.append(table("left to IREE", ["dispatch", "times", "why"], left, numeric=(1,)))
    return tables


def trial_table(title: str, rows: Sequence[tuple[str, Trial]]) -> Table:
    """Trials by name: outcome, time, ratio to IREE's default."""
    lines = [
        [
            name,
            trial.status if trial.status == "ok" else f"{trial.status}: {_first_line(trial.detail)}",
            seconds(trial.p50),
            f"{trial.ratio:.2f}x" if trial.ratio else "-",
            f"{100 * trial.ratio_error:.1f} %" if trial.ratio_error is not None else "-",
            seconds(trial.build_seconds),
            seconds(trial.run_seconds),
        ]
        for name, trial in rows
    ]
    names = ["schedule", "outcome", "median", "vs default", "± s.e.", "build", "run"]
    return table(title, names, lines, numeric=(2, 3, 4, 5, 6))


def _first_line(text: str) -> str:
    return (text.splitlines() or [""])[0][:100]
