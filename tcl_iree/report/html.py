"""The report of a tuning run as one HTML page: no scripts, nothing loaded, readable without a network."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from tcl_iree.report.html_dispatch import dispatch_section
from tcl_iree.report.html_model import model_section
from tcl_iree.report.html_style import STYLE
from tcl_iree.report.tables import seconds
from tcl_iree.report.tune import TuneReport, WorkloadRow

# The page may use its own style and nothing else, whatever text got into it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_NUMERIC, _NAME, _WHY = "number", "name", "why"


def html_report(report: TuneReport) -> str:
    """The whole page."""
    title = escape(f"{report.model} on {report.target}")
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>tcl-iree: {title}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
        _head(report),
        model_section(report),
        _dispatch_table(report),
        _dispatch_sections(report),
        _notes(report),
        _commands(report),
        "</body>\n</html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _head(report: TuneReport) -> str:
    searched = f"{report.strategy}, {report.trials} trials a dispatch" if report.trials else report.strategy
    facts = {
        "target": report.target,
        "IREE": report.iree,
        "effort": report.effort,
        "search": f"{searched}, seed {report.seed}",
        "dispatches formed under": f"{report.base} ({report.base_reason})",
        "finished": report.when.replace("T", " ").replace("+00:00", " UTC"),
        "took": report.took,
    }
    listed = "".join(f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>" for name, text in facts.items() if text)
    return f'<header>\n<h1>{escape(report.model)}, tuned</h1>\n<dl class="facts">{listed}</dl>\n</header>'


def _dispatch_table(report: TuneReport) -> str:
    told = {history.key for history in report.histories}
    columns = {
        "dispatch": _NAME, "times": _NUMERIC, "share": _NUMERIC, "default": _NUMERIC, "best": _NUMERIC,
        "speed-up": _NUMERIC, "right / tried": _NUMERIC, "outcome": _WHY,
    }  # fmt: skip
    rows = "\n".join(
        "<tr>" + "".join(_cells(columns.values(), _row(row, row.key in told))) + "</tr>" for row in report.workloads
    )
    head = "".join(f'<th class="{kind}">{name}</th>' for name, kind in columns.items())
    return (
        f"<h2>Dispatches</h2>\n<p>The {len(report.workloads)} distinct dispatches of one inference, by their share of "
        "its time under IREE's default. Times are of one run of a dispatch; the speed-up is from a fresh run after the "
        "search, interleaved with the default, with its standard error.</p>\n"
        f'<div class="scroll"><table id="dispatches">\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


def _row(row: WorkloadRow, linked: bool) -> list[str]:
    name = escape(row.label)
    best = row.default_seconds / row.speedup if row.default_seconds and row.speedup else None
    outcome = f"{row.status}: {row.schedule}" if row.schedule else row.status
    return [
        f'<a href="#{escape(row.key)}">{name}</a>' if linked else name,
        str(row.occurrences),
        f"{100 * row.share:.1f} %" if row.share else "-",
        seconds(row.default_seconds),
        seconds(best),
        _speedup(row),
        f"{row.right} / {row.tried}" if row.tried else "-",
        escape(outcome),
    ]


def _speedup(row: WorkloadRow) -> str:
    if not row.speedup:
        return "-"
    error = f' <span class="muted">± {100 * row.error:.1f} %</span>' if row.error is not None else ""
    kind = "gain" if row.schedule else "muted"
    return f'<span class="{kind}">{row.speedup:.2f}x</span>{error}'


def _cells(kinds: Iterable[str], texts: Iterable[str]) -> Iterable[str]:
    return (f'<td class="{kind}">{text}</td>' for kind, text in zip(kinds, texts, strict=True))


def _dispatch_sections(report: TuneReport) -> str:
    histories = {history.key: history for history in report.histories}
    told = [(row, histories[row.key]) for row in report.workloads if row.key in histories]
    if not told:
        return ""
    sections = [dispatch_section(row, history, number == 0) for number, (row, history) in enumerate(told)]
    return "\n".join(["<h2>How each search went</h2>", *sections])


def _notes(report: TuneReport) -> str:
    if not report.notes:
        return ""
    return "<h2>Notes</h2>\n<ul>" + "".join(f"<li>{escape(note)}</li>" for note in report.notes) + "</ul>"


def _commands(report: TuneReport) -> str:
    made = []
    if report.library_command:
        made += [
            "<h2>Use the library</h2>\n<p>Stock <code>iree-compile</code> takes it, for this model or another that has "
            "the same dispatches, under the very flags they were found under. In the directory of this page:</p>",
            f'<pre class="command">{escape(report.library_command)}</pre>',
        ]
    if report.command and report.command != report.library_command:
        made += [
            "<h2>Make the shipped module again</h2>",
            f'<pre class="command">{escape(report.command)}</pre>',
        ]
    return "\n".join(made)
