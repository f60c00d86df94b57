"""Charts as inline SVG. Colours are classes of the page's style, so they follow its light and dark mode."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

_WIDTH, _HEIGHT = 460, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 12, 40
_BARS_WIDTH, _BAR_ROW, _BAR = 900, 30, 18
_CHARACTER = 8.0
# Bars leave this much room for what is written behind them.
_BEHIND = 190.0


@dataclass(frozen=True)
class Bar:
    """One bar.

    Attributes:
        value: its length; `low` and `high` are drawn as a whisker.
        text: written behind it.
        kind: a class of the page's style.
    """

    label: str
    value: float
    low: float
    high: float
    text: str
    kind: str


@dataclass(frozen=True)
class Mark:
    """One point of a chart.

    Attributes:
        y: None for a failure, which is a cross at the bottom.
        kind: a class of the page's style.
        title: told when it is pointed at.
    """

    x: float
    y: float | None
    kind: str
    title: str


@dataclass(frozen=True)
class Axis:
    """A scale with its ticks; the first and last are its ends."""

    label: str
    ticks: tuple[float, ...]
    logarithmic: bool = False

    @staticmethod
    def linear(label: str, highest: float, whole: bool = False) -> Axis:
        """From 0 to a round number above `highest`, in about five steps."""
        size = 10.0 ** math.floor(math.log10(max(highest, 1e-12) / 5))
        step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor * 5 >= highest)
        step = max(1.0, math.ceil(step)) if whole else step
        return Axis(label, tuple(step * index for index in range(math.ceil(highest / step - 1e-9) + 1)))

    @staticmethod
    def powers(label: str, values: Iterable[float]) -> Axis:
        """Powers of two around positive values."""
        logs = [math.log2(value) for value in values]
        low, high = math.floor(min(logs) - 1e-9), math.ceil(max(logs) + 1e-9)
        apart = max(1, math.ceil((high - low) / 8))
        return Axis(label, tuple(2.0**power for power in range(low, high + apart, apart)), True)

    def share(self, value: float) -> float:
        """Where a value stands between the ends, from 0 to 1."""
        first, last, at = self.ticks[0], self.ticks[-1], value
        if self.logarithmic:
            first, last, at = math.log2(first), math.log2(last), math.log2(at)
        return (at - first) / (last - first)


def bars(rows: Sequence[Bar], title: str) -> str:
    """Horizontal bars, one below the other."""
    left = _CHARACTER * max(len(row.label) for row in rows) + 14
    scale = (_BARS_WIDTH - left - _BEHIND) / max(row.high for row in rows)
    made = []
    for index, row in enumerate(rows):
        top = index * _BAR_ROW + (_BAR_ROW - _BAR) / 2
        middle, end = top + _BAR / 2, left + scale * row.value
        behind = left + scale * max(row.high, row.value) + 8
        made += [
            f'<text class="label" x="{left - 8:.1f}" y="{middle:.1f}" text-anchor="end">{escape(row.label)}</text>',
            f'<rect class="{row.kind}" x="{left:.1f}" y="{top:.1f}" width="{end - left:.1f}" height="{_BAR}" rx="3"/>',
            f'<line class="whisker" x1="{left + scale * row.low:.1f}" y1="{middle:.1f}" '
            f'x2="{left + scale * row.high:.1f}" y2="{middle:.1f}"/>',
            f'<text class="value" x="{behind:.1f}" y="{middle:.1f}">{escape(row.text)}</text>',
        ]
    return _svg(_BARS_WIDTH, _BAR_ROW * len(rows), title, made, "bars")


def chart(across: Axis, up: Axis, marks: Sequence[Mark], title: str, lines: Sequence[tuple[str, str]] = ()) -> str:
    """Points over two axes.

    Args:
        lines: class and path of lines below the points, see `path`.
    """
    made = [_across(across), _up(up)]
    made += [f'<path class="{kind}" d="{line}"/>' for kind, line in lines]
    made += [_mark(mark, *place(across, up, mark.x, mark.y)) for mark in marks]
    return _svg(_WIDTH, _HEIGHT, title, made, "chart")


def place(across: Axis, up: Axis, x: float, y: float | None) -> tuple[float, float]:
    """Where a point is drawn; one without a height lies on the axis."""
    height = 0.0 if y is None else up.share(y)
    return (
        _LEFT + across.share(x) * (_WIDTH - _LEFT - _RIGHT),
        _HEIGHT - _BOTTOM - height * (_HEIGHT - _TOP - _BOTTOM),
    )


def path(across: Axis, up: Axis, points: Sequence[tuple[float, float]], steps: bool = False) -> str:
    """A line through points; in steps, each height is held until the next point."""
    places = [place(across, up, x, y) for x, y in points]
    if steps:
        corners = [(x, before) for (_, before), (x, _) in pairwise(places)]
        places = [*places[:1], *(point for pair in zip(corners, places[1:], strict=True) for point in pair)]
    return "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def _mark(mark: Mark, x: float, y: float) -> str:
    told = f"<title>{escape(mark.title)}</title>"
    if mark.y is None:
        arms = f"M{x - 3.5:.1f} {y - 3.5:.1f} l7 7 m0 -7 l-7 7"
        return f'<path class="{mark.kind}" d="{arms}">{told}</path>'
    return f'<circle class="{mark.kind}" cx="{x:.1f}" cy="{y:.1f}" r="3.5">{told}</circle>'


def _across(axis: Axis) -> str:
    bottom = _HEIGHT - _BOTTOM
    made = [f'<path class="axis" d="M{_LEFT} {bottom} H{_WIDTH - _RIGHT}"/>']
    for tick in axis.ticks:
        at = _LEFT + axis.share(tick) * (_WIDTH - _LEFT - _RIGHT)
        made.append(f'<text class="tick" x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    return "".join([*made, _name(axis.label, f'x="{middle}" y="{_HEIGHT - 6}"')])


def _up(axis: Axis) -> str:
    made = []
    for tick in axis.ticks:
        at = _HEIGHT - _BOTTOM - axis.share(tick) * (_HEIGHT - _TOP - _BOTTOM)
        made.append(f'<path class="grid" d="M{_LEFT} {at:.1f} H{_WIDTH - _RIGHT}"/>')
        made.append(f'<text class="tick" x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{tick:g}</text>')
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    return "".join([*made, _name(axis.label, f'transform="translate(12 {middle}) rotate(-90)"')])


def _name(label: str, where: str) -> str:
    return f'<text class="name" {where} text-anchor="middle">{escape(label)}</text>'


def _svg(width: int, height: int, title: str, parts: Sequence[str], kind: str) -> str:
    told = escape(title, quote=True)
    head = f'<svg class="{kind}" viewBox="0 0 {width} {height}" role="img" aria-label="{told}">'
    return "\n".join([head, *parts, "</svg>"])
