"""What can be told of code that was built but not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from tcl_iree.report.tables import table

_NAMES = ("registers", "spill_stores", "spill_loads", "stack", "shared")


def static_table(title: str, rows: Sequence[tuple[str, str, Mapping[str, Any] | None]]) -> Table:
    """Registers, spills and memory of candidates.

    Args:
        rows: workload, schedule and the figures, which may be missing.
    """
    lines = []
    for workload, schedule, static in rows:
        lines.append([workload, schedule, *(str((static or {}).get(name, "-")) for name in _NAMES)])
    columns = ["workload", "schedule", "registers", "spill stores B", "spill loads B", "stack B", "shared B"]
    return table(title, columns, lines, numeric=(2, 3, 4, 5, 6))
