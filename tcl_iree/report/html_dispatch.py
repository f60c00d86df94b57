"""The HTML report's part on one dispatch: how its search went, what was predicted, and the script that won."""

from __future__ import annotations

from collections import Counter
from html import escape

from tcl_iree.report.history import DispatchHistory, TriedSchedule, best_so_far
from tcl_iree.report.svg import Axis, Mark, chart, path
from tcl_iree.report.tune import WorkloadRow

_NO_PREDICTIONS = "No cost model proposed these schedules, so there is nothing to compare the measurements with."
_NO_TRIALS = "This run timed no schedule of this dispatch."
_NO_DEFAULT = "IREE was not asked how it configures this dispatch by itself."


def dispatch_section(row: WorkloadRow, history: DispatchHistory, unfolded: bool) -> str:
    """One part that folds."""
    speed = f"{row.speedup:.2f}x of IREE's default" if row.speedup else row.status
    return "\n".join(
        [
            f'<details id="{escape(row.key)}"{" open" if unfolded else ""}>',
            f'<summary>{escape(row.label)}<span class="muted">{escape(speed)}</span></summary>\n<div>',
            f'<p class="muted">key {escape(row.key)}</p>',
            '<div class="pair">',
            f"<div><h3>Best speed-up against trials</h3>\n{_curve(history.tried)}{_counts(row, history)}</div>",
            f"<div><h3>Predicted against measured</h3>\n{_scatter(history.tried)}</div>",
            "</div>",
            _scripts(row, history),
            "</div>\n</details>",
        ]
    )


def _curve(tried: tuple[TriedSchedule, ...]) -> str:
    if not tried:
        return f'<p class="muted">{_NO_TRIALS}</p>'
    curve = [(float(entry.number), best) for entry, best in zip(tried, best_so_far(tried), strict=True) if best]
    across = Axis.linear("trials", len(tried), whole=True)
    up = Axis.linear("speed-up", max([1.0, *(best for _, best in curve)]))
    lines = [("level", path(across, up, [(0.0, 1.0), (across.ticks[-1], 1.0)]))]
    if curve:
        lines.append(("best", path(across, up, [*curve, (float(len(tried)), curve[-1][1])], steps=True)))
    marks = [_mark(entry, float(entry.number), "trial") for entry in tried]
    return chart(across, up, marks, "best speed-up over IREE's default against trials", lines)


def _counts(row: WorkloadRow, history: DispatchHistory) -> str:
    tried = history.tried
    if not tried:
        return ""
    failed = Counter(entry.status for entry in tried if entry.ratio is None)
    told = f"{len(tried)} tried in this run, {len(tried) - failed.total()} right"
    if failed:
        told += "; crosses: " + ", ".join(f"{count} {kind}" for kind, count in failed.most_common())
    if row.tried > len(tried):
        told += f"; {row.tried - len(tried)} more were known from earlier runs"
    return f'<p class="muted">{escape(told)}. The dashed line is IREE\'s default.</p>'


def _scatter(tried: tuple[TriedSchedule, ...]) -> str:
    known = [entry for entry in tried if entry.predicted]
    right = [entry.ratio for entry in known if entry.ratio]
    if not right:
        return f'<p class="muted">{_NO_PREDICTIONS if not known else "Nothing that was predicted worked."}</p>'
    across = Axis.powers("predicted", [entry.predicted or 1.0 for entry in known])
    up = Axis.powers("measured", right)
    low, high = max(across.ticks[0], up.ticks[0]), min(across.ticks[-1], up.ticks[-1])
    lines = [("level", path(across, up, [(low, low), (high, high)]))] if low < high else []
    marks = [_mark(entry, entry.predicted or 1.0, "first" if entry.batch == 1 else "trial") for entry in known]
    return (
        chart(across, up, marks, "speed-up as the cost model predicted it and as measured", lines)
        + '<p class="muted">Each point is a schedule the model picked: its speed-up as thought before it was measured, '
        "and as measured. Hollow points are of the first batch, when the model could only put schedules in order. "
        "Crosses failed; the dashed line is where predictions are exact.</p>"
    )


def _mark(entry: TriedSchedule, x: float, kind: str) -> Mark:
    outcome = f"{entry.ratio:.2f}x" if entry.ratio else entry.status
    title = f"trial {entry.number}: {outcome}\n{entry.schedule}"
    return Mark(x, entry.ratio or None, kind if entry.ratio else "failed", title)


def _scripts(row: WorkloadRow, history: DispatchHistory) -> str:
    if history.script is None:
        return f"<p>IREE's default is left in place: {escape(row.status)}.</p>"
    ours = f"<h3>The winning script</h3>\n<pre>{escape(history.script.strip())}</pre>"
    default = f'<p class="muted">{_NO_DEFAULT}</p>'
    if history.default:
        default = f'<pre class="wrapped">{escape(history.default)}</pre>'
    return (
        f'<p>{escape(row.schedule or "")} <span class="muted">({escape(row.status)})</span></p>\n'
        f'<div class="pair">\n<div>{ours}</div>\n<div><h3>What IREE configures by itself</h3>\n{default}</div>\n</div>'
    )
