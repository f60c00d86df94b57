"""The result of `tcl-iree bench`, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass

from rich.table import Table

from tcl_iree.report.tables import seconds, table


@dataclass(frozen=True)
class BenchRow:
    """One flag set.

    Attributes:
        status: `ok`, or why it has no time.
        median, p10, p90: seconds per inference.
        ratio: plain's time over this one's, the median over rounds.
        error: largest difference to plain's outputs, relative to their size.
        same_as: the flag set whose compiled module is byte for byte the same.
    """

    name: str
    flags: tuple[str, ...]
    status: str
    compile_seconds: float
    median: float | None = None
    p10: float | None = None
    p90: float | None = None
    ratio: float | None = None
    error: float | None = None
    same_as: str | None = None


@dataclass(frozen=True)
class DispatchTime:
    """One dispatch inside the running model.

    Attributes:
        times: dispatches per inference.
        seconds: mean time of one dispatch.
        share: of the time spent in all dispatches.
    """

    name: str
    times: float
    seconds: float
    share: float


@dataclass(frozen=True)
class BenchReport:
    """All flag sets of one model on one target.

    Attributes:
        scope: which flag sets were tried.
        best: the name of the fastest flag set.
        depends_on_input: whether the output was seen to move with the input; if not, `error` proves nothing.
        profiles: where the time goes, for every flag set that ran; empty lists where the device has no profiler.
    """

    model: str
    target: str
    scope: str
    rows: tuple[BenchRow, ...]
    best: str
    depends_on_input: bool
    profiles: dict[str, list[DispatchTime]]


def bench_tables(report: BenchReport, top: int) -> list[Table]:
    """Flag sets by time, then the dispatches that take most of it."""
    ordered = sorted(report.rows, key=lambda row: row.median or float("inf"))
    lines = [
        [
            row.name + (" *" if row.name == report.best else ""),
            seconds(row.median),
            f"{seconds(row.p10)} - {seconds(row.p90)}" if row.p10 else "-",
            f"{row.ratio:.2f}x" if row.ratio else "-",
            _check(row, report),
            seconds(row.compile_seconds),
        ]
        for row in ordered
    ]
    names = ["flag set", "median", "p10 - p90", "vs plain", "outputs", "compile"]
    made = [
        table(
            f"{report.model} on {report.target} (* IREE's best flags of scope {report.scope})",
            names,
            lines,
            numeric=(1, 2, 3, 5),
        )
    ]
    for name in dict.fromkeys(("plain", report.best)):
        entries = report.profiles.get(name, [])
        rows = [
            [entry.name, f"{entry.times:.3g}", seconds(entry.seconds), f"{100 * entry.share:.1f} %"]
            for entry in entries[:top]
        ]
        rest = entries[top:]
        if rest:
            rows.append([f"{len(rest)} more", "", "", f"{100 * sum(entry.share for entry in rest):.1f} %"])
        title = f"where the time goes: {name}" + ("" if rows else " (not profiled on this device)")
        made.append(table(title, ["dispatch", "times", "each", "share"], rows, numeric=(1, 2, 3)))
    return made


def _check(row: BenchRow, report: BenchReport) -> str:
    if row.same_as:
        return f"same code as {row.same_as}"
    if row.status != "ok":
        return row.status
    if not report.depends_on_input:
        return "unproven: the output does not depend on the input"
    return f"agree ({row.error:.1g})"
