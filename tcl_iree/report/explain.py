"""What is known of one dispatch, as tables."""

from __future__ import annotations

from rich.table import Table

from tcl_iree.report.explanation import DecisionEffect, Explanation, MeasuredWorkload, ModelView
from tcl_iree.report.tables import seconds, table

# Values of a decision that are listed, best first.
_VALUES = 6


def workload_table(target: str, rows: list[MeasuredWorkload]) -> Table:
    """What can be explained."""
    lines = [[row.key, row.label, str(row.tried), _ratio(row.best)] for row in rows]
    return table(f"measured on {target}", ["key", "workload", "tried", "best"], lines, numeric=(2, 3))


def explain_tables(found: Explanation) -> list[Table]:
    """What was tried, what failed, what the model saw, what mattered."""
    title = (
        f"{found.label} ({found.key}) on {found.target}, IREE {found.iree}, flags {found.flags or 'none'}\n"
        f"default {seconds(found.default_seconds)}; {found.right} of {found.tried} schedules were right; the fastest:"
    )
    top = [
        [str(entry.rank), _ratio(entry.ratio), f"{100 * entry.error:.1f} %" if entry.error is not None else "-",
         str(entry.predicted or "-"), entry.schedule]
        for entry in found.top
    ]  # fmt: skip
    families = [
        [entry.family, str(entry.tried), _ratio(entry.best),
         ", ".join(f"{count} {status}" for status, count in entry.outcomes.items())]
        for entry in found.families
    ]  # fmt: skip
    made = [
        table(title, ["rank", "vs default", "± s.e.", "by model", "schedule"], top, numeric=(0, 1, 2, 3)),
        table("what was tried, by family", ["family", "tried", "best", "outcomes"], families, numeric=(1, 2)),
    ]
    if found.failures:
        failures = [[entry.kind, str(entry.count), entry.detail, entry.schedule] for entry in found.failures]
        made.append(table("what failed, with an example", ["kind", "times", "why", "schedule"], failures, numeric=(1,)))
    if found.decisions:
        made.append(_decision_table(found))
    if found.view:
        made.append(_token_table(found.view))
    return made


def _decision_table(found: Explanation) -> Table:
    lines = [[entry.name, f"{entry.spread:.2f}x", _values(entry)] for entry in found.decisions]
    title = f"which decisions of {found.top[0].family} mattered: the best ratio with each value (schedules that worked)"
    return table(title, ["decision", "best over worst", "values"], lines, numeric=(1,))


def _values(effect: DecisionEffect) -> str:
    listed = [f"{entry.value}: {entry.best:.2f}x ({entry.right})" for entry in effect.values[:_VALUES]]
    rest = len(effect.values) - _VALUES
    return ", ".join([*listed, *([f"{rest} more"] if rest > 0 else [])])


def _token_table(view: ModelView) -> Table:
    lines = [
        [row.part, row.kind, row.role, _whole(row.size), _whole(row.extent), " ".join(map(_number, row.numbers))]
        for row in view.tokens
    ]
    title = (
        f"the fastest as {view.model} reads it; of all that worked it has {100 * view.accuracy:.0f} % of the pairs in "
        "order"
    )
    return table(title, ["part", "kind", "role", "size", "of", "numbers, scaled"], lines, numeric=(3, 4))


def _ratio(value: float | None) -> str:
    return f"{value:.2f}x" if value else "-"


def _whole(value: int | None) -> str:
    return str(value) if value else ""


def _number(value: float) -> str:
    return f"{value:5.2f}" if value else "    0"
