"""The figures of `benchmarks.time_to_quality` as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.quality_figures import Task
from tcl_iree.report.tables import console, seconds, table

Rows = Mapping[str, Mapping[str, Any]]


def show(title: str, rows: Rows, tasks: Mapping[str, Task], yardstick: str, ours: str, early: int) -> None:
    """Print everyone's figures, the headline, and every task where ours is behind the yardstick."""
    lines = [
        [
            name,
            f"{entry['trials']:.1f}",
            seconds(entry["seconds"]),
            f"{100 * entry['reached']:.0f} % of {entry['runs']}",
            *(_gain(entry[f"gain_in_{what}"]) for what in ("trials", "seconds", "early")),
        ]
        for name, entry in rows.items()
    ]
    names = ["search", "trials", "seconds", "reached", "fewer trials", "less time", f"latency at {early}"]
    out = console()
    out.print(table(f"{title}; gains over {yardstick}, 95 % intervals", names, lines, numeric=(1, 2, 3, 4, 5, 6)))
    if ours not in rows or ours == yardstick:
        return
    mine, other = rows[ours], rows[yardstick]
    gain = mine["gain_in_seconds"]
    out.print(f"{ours} against {yardstick}: {_gain(gain)} less time, {_gain(mine['gain_in_trials'])} fewer trials")
    losses = losing(mine["tasks"], other["tasks"])
    lost = [[tasks[key].label, what, f"{ratio:.2f}"] for key, what, ratio in losses]
    out.print(table(f"where {ours} is behind", ["task", "in", "ratio"], lost, numeric=(2,)))


def losing(mine: Rows, other: Rows) -> list[tuple[str, str, float]]:
    """Tasks and figures where mine is worse, with the other's over it."""
    return [
        (key, what, other[key][what] / entry[what])
        for key, entry in mine.items()
        for what in ("trials", "seconds", "early")
        if entry[what] > other[key][what]
    ]


def _gain(gain: Mapping[str, float]) -> str:
    return f"{gain['ratio']:.2f}x ({gain['low']:.2f}-{gain['high']:.2f})"
