"""A chart of a few named lines as an SVG file, for the documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np

from tcl_iree.report.svg import Axis, Mark, chart, path, place

_COLOURS = ("#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#555555", "#17becf")
_STYLE = (
    "svg{font:12px sans-serif;background:#fff}.axis{stroke:#333}.grid{stroke:#ddd}.tick,.name{fill:#333}"
    "path{fill:none}.key{font-size:11px}"
)
_TICKS = 5


def write_line_chart(
    file: Path, across: str, up: str, lines: Mapping[str, Sequence[tuple[float, float]]], width: int = 640
) -> None:
    """Write the chart; each line is its points from left to right, and its name stands at the right."""
    xs = sorted({x for points in lines.values() for x, _ in points})
    heights = [y for points in lines.values() for _, y in points]
    low, high = np.floor(20 * min(heights)) / 20, np.ceil(20 * max(heights)) / 20
    ticks = tuple(float(f"{tick:.3g}") for tick in np.linspace(low, high, _TICKS + 1))
    horizontal, vertical = Axis(across, tuple(xs), logarithmic=xs[0] > 0), Axis(up, ticks)
    names = [f"line{number}" for number in range(len(lines))]
    drawn = [(name, path(horizontal, vertical, points)) for name, points in zip(names, lines.values(), strict=True)]
    marks = [
        Mark(x, y, f"dot{number}", f"{label}: {y:.3f}")
        for number, (label, points) in enumerate(lines.items())
        for x, y in points
    ]
    text = chart(horizontal, vertical, marks, f"{up} against {across}", drawn)
    style = _STYLE + "".join(
        f".line{number}{{stroke:{_COLOURS[number % len(_COLOURS)]};stroke-width:1.6}}"
        f".dot{number}{{fill:{_COLOURS[number % len(_COLOURS)]}}}"
        for number in range(len(lines))
    )
    head, rest = text.split("\n", 1)
    box = f'xmlns="http://www.w3.org/2000/svg" width="{width}" viewBox="0 0 600 250"'
    head = head.replace('viewBox="0 0 460 250"', box)
    file.parent.mkdir(parents=True, exist_ok=True)
    body = rest.replace("</svg>", "")
    file.write_text(f"{head}\n<style>{style}</style>\n{body}{_key(lines, horizontal, vertical)}</svg>\n")


def _key(lines: Mapping[str, Sequence[tuple[float, float]]], across: Axis, up: Axis) -> str:
    """Names beside the ends of their lines, moved apart where they would lie on each other."""
    ends = sorted((place(across, up, *points[-1])[1], number) for number, points in enumerate(lines.values()))
    made, before = [], -np.inf
    for height, number in ends:
        before = max(height, before + 13)
        colour, label = _COLOURS[number % len(_COLOURS)], escape(list(lines)[number])
        made.append(f'<text class="key" x="456" y="{before + 4:.1f}" fill="{colour}">{label}</text>')
    return "\n".join(made) + "\n"
