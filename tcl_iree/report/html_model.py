"""The HTML report's part on the whole model: IREE's flag sets and the tuned module, before and after."""

from __future__ import annotations

from html import escape

from tcl_iree.report.bench import BenchRow
from tcl_iree.report.svg import Bar, bars
from tcl_iree.report.tables import seconds
from tcl_iree.report.tune import ModelRow, TuneReport

_PLAIN, _TUNED = "plain", "tuned"


def model_section(report: TuneReport) -> str:
    """What came of it in words, and a bar for every way the model was timed."""
    made = ["<h2>The whole model</h2>", f'<p class="lead">{_in_words(report)}</p>']
    drawn = _bars(report)
    if drawn:
        drawing = bars(drawn, f"time of one inference of {report.model}, by how it was compiled")
        made += [f'<div class="wide">{drawing}</div>', f'<p class="muted">{escape(_caption(report))}</p>']
    left = [row for row in report.flag_sets if row.same_as or row.status != "ok"]
    if left:
        listed = "".join(f"<li>{escape(_left_out(row))}</li>" for row in left)
        made.append(f"<ul>{listed}</ul>")
    return "\n".join(made)


def _in_words(report: TuneReport) -> str:
    rows = {row.name: row for row in report.rows}
    shipped, best, plain = (rows.get(name or "") for name in (report.shipped, report.best_flags, _PLAIN))
    if not (shipped and best and plain and report.speedup and report.vs_plain):
        return "The whole model was not timed; the notes below say why."
    proof = (
        "" if report.depends_on_input else " The outputs do not depend on the inputs, so that they agree proves little."
    )
    if not shipped.name.startswith(_TUNED):
        return (
            f"IREE's own flags {escape(shipped.name)} are the fastest at <b>{seconds(shipped.median)}</b> an "
            f"inference, {report.vs_plain:.2f} times as fast as plain IREE; they are what is shipped.{proof}"
        )
    return (
        f"One inference takes <b>{seconds(shipped.median)}</b>: <b>{report.speedup:.2f} times as fast</b> as with "
        f"IREE's best flags ({escape(best.name)}, {seconds(best.median)}) and {report.vs_plain:.2f} times as fast as "
        f"plain IREE ({seconds(plain.median)}).{proof}"
    )


def _bars(report: TuneReport) -> list[Bar]:
    """The last comparison, fastest first; then flag sets that only took part in the first one."""
    timed = [_bar(row, report.shipped) for row in sorted(report.rows, key=lambda row: row.median)]
    known = {row.name for row in report.rows}
    earlier = [
        Bar(row.name, row.median, row.p10 or row.median, row.p90 or row.median, seconds(row.median), "earlier")
        for row in sorted(report.flag_sets, key=lambda row: row.median or 0.0)
        if row.median and not row.same_as and row.name not in known
    ]
    return [*timed, *earlier]


def _bar(row: ModelRow, shipped: str | None) -> Bar:
    kind = "ours" if row.name.startswith(_TUNED) else _PLAIN if row.name == _PLAIN else "flags"
    text = f"{seconds(row.median)}, {row.vs_plain:.2f}x of plain"
    return Bar(row.name, row.median, row.p10, row.p90, text + (", shipped" if row.name == shipped else ""), kind)


def _caption(report: TuneReport) -> str:
    told = "Median time of one inference, with its 10th and 90th percentile."
    if report.rows:
        told += " Bars with a ratio are of one run in which all took turns."
    if any(bar.kind == "earlier" for bar in _bars(report)):
        told += " Pale bars are of a run before the search, in which only IREE's own flag sets took part."
    return told


def _left_out(row: BenchRow) -> str:
    return f"{row.name}: the very same module as {row.same_as}" if row.same_as else f"{row.name}: {row.status}"
