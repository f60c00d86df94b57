"""The comparison of a whole network as tables and as figures to keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.common import measured_here
from benchmarks.contest import Contest
from benchmarks.model_contenders import Tuning, flags_name
from benchmarks.model_gaps import gap_figures, gap_table, remaining
from tcl_iree.measure.builder import IREE_VERSION
from tcl_iree.report.tables import console, seconds, table
from tcl_iree.target import Target
from tcl_iree.workflows.whole_model import TUNED

_TOP = 10


def entry(tuning: Tuning, contest: Contest, layouts: str) -> dict[str, Any]:
    """All there is to keep of one network and effort: how it was tuned, and everyone's time over the tuned module's."""
    report = tuning.result.report
    about = measured_here() | {
        "iree": IREE_VERSION,
        "tuning_seconds": report.seconds,
        "overhead": report.overhead,
        "after": list(tuning.after),
        "trials": report.trials,
        "tried": sum(row.tried for row in report.workloads),
        "layouts": layouts,
        "base": f"{report.base} ({report.base_reason})",
        "best_flags": report.best_flags and flags_name(report.best_flags),
        "shipped": report.shipped,
        "notes": list(report.notes),
        "failed": contest.failed,
    }
    ours = contest.standings.get(tuning.name)
    if not ours:
        return about | {"error": contest.failed[tuning.name]}
    everyone = {}
    for name, standing in contest.standings.items():
        ratio, error = contest.ratio(name, tuning.name)
        everyone[name] = {
            "about": standing.about,
            "median": standing.median,
            "minimum": standing.minimum,
            "over_tuned": ratio,
            "error": error,
            "difference": standing.difference,
        }
    return about | {
        "outputs": f"compared with those of {contest.reference}",
        "depends_on_input": contest.depends_on_input,
        "rounds": len(ours.slices),
        "contenders": everyone,
        "dispatches": gap_figures(report, ours.median),
    }


def show(network: str, target: Target, tunings: Sequence[Tuning], contest: Contest) -> None:
    """Print everyone's times, who failed, and for each tuned module where its time is."""
    timed = [tuning for tuning in tunings if tuning.name in contest.standings]
    rows = []
    for name, standing in sorted(contest.standings.items(), key=lambda item: item[1].median):
        ratios = [contest.ratio(name, tuning.name) for tuning in timed]
        cells = [f"{ratio:.2f} ± {100 * error:.1f} %" for ratio, error in ratios]
        outputs = "reference" if name == contest.reference else f"{standing.difference:.1g}"
        rows.append([name, seconds(standing.median), seconds(standing.minimum), *cells, outputs, standing.about])
    over = [f"over {tuning.name}" for tuning in timed]
    names = ["contender", "median", "minimum", *over, "difference", "what"]
    title = (
        f"{network} on {target.threads} thread{'s' * (target.threads > 1)}: seconds per call, over the tuned module's"
    )
    out = console()
    out.print(table(title, names, rows, numeric=tuple(range(1, 4 + len(over)))))
    if not contest.depends_on_input:
        out.print("the output does not move with the input: that outputs agree proves nothing")
    if contest.failed:
        out.print(table("not compared", ["contender", "why"], [[name, why] for name, why in contest.failed.items()]))
    for tuning in timed:
        _show_gap(tuning, contest)


def _show_gap(tuning: Tuning, contest: Contest) -> None:
    """How far the fastest other is, and the dispatches that make it."""
    others = [name for name in contest.standings if not name.startswith(TUNED)]
    fastest = min(others, key=lambda name: contest.standings[name].median)
    ours = contest.standings[tuning.name].median
    gap = ours - contest.standings[fastest].median
    where = "behind" if gap > 0 else "ahead of"
    title = f"{tuning.name}: {seconds(ours)}, {seconds(abs(gap))} {where} {fastest}"
    report = tuning.result.report
    if report.shipped and not report.shipped.startswith(TUNED):
        title += f"; shipped is IREE's {report.shipped}, dispatches are those of {report.base} without schedules"
    if remaining(report):
        console().print(gap_table(report, ours, title, _TOP))
    else:
        console().print(f"{title}; no dispatch was timed with this effort")
