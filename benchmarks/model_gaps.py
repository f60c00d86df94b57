"""Where a tuned model's remaining time is: its dispatches by what they still take, and what no dispatch accounts for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.table import Table

from tcl_iree.report.tables import seconds, table
from tcl_iree.report.tune import TuneReport, WorkloadRow


@dataclass(frozen=True)
class Remaining:
    """One distinct dispatch and the seconds it still takes of one inference."""

    row: WorkloadRow
    seconds: float


def remaining(report: TuneReport) -> list[Remaining]:
    """The dispatches that were timed, by the time they still take: that of the default where no schedule is used."""
    found = []
    for row in report.workloads:
        if row.default_seconds:
            used = row.speedup if row.status == "tuned" and row.speedup else 1.0
            found.append(Remaining(row, row.occurrences * row.default_seconds / used))
    return sorted(found, key=lambda entry: -entry.seconds)


def gap_figures(report: TuneReport, whole: float) -> dict[str, Any]:
    """The same for JSON; `whole` is the time of the whole model, and `rest` what no timed dispatch accounts for."""
    found = remaining(report)
    total = sum(entry.seconds for entry in found)
    return {
        "sum": total,
        "whole": whole,
        "rest": whole - total,
        "by_time": [
            {"workload": entry.row.label, "times": entry.row.occurrences, "seconds": entry.seconds,
             "default_share": entry.row.share, "speedup": entry.row.speedup, "right": entry.row.right,
             "tried": entry.row.tried, "schedule": entry.row.schedule or entry.row.status}
            for entry in found
        ],
    }  # fmt: skip


def gap_table(report: TuneReport, whole: float, title: str, top: int) -> Table:
    """The dispatches that still take most, the others together, and what is left of the whole model's time."""
    found = remaining(report)
    total = sum(entry.seconds for entry in found)
    rows = [
        [
            entry.row.label,
            str(entry.row.occurrences),
            seconds(entry.seconds),
            f"{100 * entry.seconds / whole:.1f} %",
            f"{100 * entry.row.share:.1f} %",
            f"{entry.row.speedup:.2f}x" if entry.row.speedup else "-",
            entry.row.schedule or entry.row.status,
        ]
        for entry in found[:top]
    ]
    rest = sum(entry.seconds for entry in found[top:])
    rows.append([f"{len(found[top:])} more", "", seconds(rest), f"{100 * rest / whole:.1f} %", "", "", ""])
    between = f"{100 * (whole - total) / whole:+.1f} %"
    rows.append(["whole model less all dispatches", "", _signed(whole - total), between, "", "", ""])
    names = ["workload", "times", "still takes", "of the whole", "of the default", "speed-up", "schedule"]
    return table(title, names, rows, numeric=(1, 2, 3, 4, 5))


def _signed(value: float) -> str:
    return f"-{seconds(-value)}" if value < 0 else seconds(value)
