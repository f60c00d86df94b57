"""Tables and curves of cost models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table

from tcl_iree.learning.cost_model import Epoch
from tcl_iree.report.tables import table

_BARS = "▁▂▃▄▅▆▇█"
_WIDEST = 60


def evaluation_table(part: str, found: Mapping[str, Mapping[str, float]]) -> Table:
    """One line a model: what the best of its first picks costs, beside the best there is."""
    columns = {
        "top-1": "top_1", "top-5": "top_5", "top-1 (sums)": "top_1_sums", "top-5 (sums)": "top_5_sums",
        "pairs in order": "accuracy", "regret": "regret",
    }  # fmt: skip
    rows = [[name, *(f"{entry[column]:.3f}" for column in columns.values())] for name, entry in found.items()]
    sizes = next(iter(found.values()))
    title = f"{part}: {sizes['workloads']:.0f} workloads, {sizes['candidates']:.0f} candidates"
    return table(title, ["model", *columns], rows, numeric=range(1, 7))


def curve(history: Sequence[Epoch]) -> str:
    """Loss and validation score over the epochs, as two lines of bars."""
    if not history:
        return "nothing was trained"
    lines = {"loss": [epoch.loss for epoch in history], "top-1": [epoch.top_1 for epoch in history]}
    return "\n".join(
        f"{name:>6} {_bars(values)} {values[0]:.3f} → {values[-1]:.3f} in {len(values)} epochs"
        for name, values in lines.items()
    )


def _bars(values: Sequence[float]) -> str:
    step = max(1, -(-len(values) // _WIDEST))
    shown = [values[index] for index in range(0, len(values), step)]
    low, high = min(shown), max(shown)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((value - low) * scale)] for value in shown)
