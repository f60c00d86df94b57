"""The result of `tcl-iree tune`, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.table import Table

from tcl_iree.report.bench import BenchRow
from tcl_iree.report.history import DispatchHistory
from tcl_iree.report.static_figures import static_table
from tcl_iree.report.tables import seconds, table

NOT_SHIPPED = "not shipped"


@dataclass(frozen=True)
class WorkloadRow:
    """One distinct dispatch of the model.

    Attributes:
        default_seconds: time of IREE's default code for it under the base flags; None if it could not be measured.
        share: of the time all dispatches of one inference take by default.
        tried, right: schedules tried, and how many of them compiled, ran and gave right results.
        schedule: the one in the library; None where there is none.
        speedup: default's time over the schedule's, from a fresh interleaved run after the search.
        error: standard error of that, relative to it.
        status: `tuned`; `not shipped` (in the library, but the shipped module was compiled without it); `unmeasured`
            (in the library as a guess); or why there is no schedule.
    """

    key: str
    label: str
    occurrences: int
    default_seconds: float | None
    share: float
    tried: int
    right: int
    schedule: str | None
    decisions: dict[str, Any]
    speedup: float | None
    error: float | None
    status: str


@dataclass(frozen=True)
class BuiltCandidate:
    """Code that was built for a device that is not here.

    Attributes:
        static: what the assembler says of it (registers, spills, memory); None where there is no assembler.
    """

    workload: str
    schedule: str
    static: dict[str, Any] | None


@dataclass(frozen=True)
class ModelRow:
    """One way to compile the whole model.

    Attributes:
        median, p10, p90: seconds per inference, all rows interleaved in one run.
        vs_plain: plain's time over this one's, over the faster half of the calls of each.
        error: largest difference to plain's outputs, relative to their size.
    """

    name: str
    flags: tuple[str, ...]
    median: float
    p10: float
    p90: float
    vs_plain: float
    error: float


@dataclass(frozen=True)
class TuneReport:
    """What tuning a model found.

    Attributes:
        effort: how hard it was told to try.
        when: it ended, as ISO 8601 in UTC; it took `seconds`.
        base: name of the flag set the dispatches were formed under; `base_reason` says why that one.
        rows: the whole model compiled in several ways; empty if it was not timed.
        best_flags: IREE's own fastest flag set.
        shipped: the row that `model.vmfb` is: `tuned`, or a flag set of IREE's own where that is faster.
        speedup: time under IREE's best flags over the shipped one's; `vs_plain` over plain's.
        outputs: `agree` where the shipped module's outputs were compared with plain's (what does not agree is never
            shipped), `not checked` where nothing was shipped.
        depends_on_input: whether the output was seen to move with the input; if not, `agree` proves nothing.
        command: makes the shipped module again.
        notes: what the user should know, one sentence each.
        candidates: what was built but could not be run.
        flag_sets: IREE's own flag sets as timed before the search, in a run of their own; those among `rows` again.
        histories: how the search of each dispatch went, what it chose, and what IREE does by itself.
        library_command: compiles the model with the library, whatever was shipped; empty if that holds nothing.
        overhead: share of `seconds` in which nothing was compiled or measured; None where nothing was to be measured.
    """

    model: str
    target: str
    iree: str
    effort: str
    strategy: str
    seed: int
    trials: int
    base: str
    base_flags: tuple[str, ...]
    base_reason: str
    workloads: tuple[WorkloadRow, ...]
    rows: tuple[ModelRow, ...]
    best_flags: str | None
    shipped: str | None
    speedup: float | None
    vs_plain: float | None
    outputs: str
    depends_on_input: bool | None
    command: str
    notes: tuple[str, ...]
    when: str
    seconds: float
    candidates: tuple[BuiltCandidate, ...] = ()
    flag_sets: tuple[BenchRow, ...] = ()
    histories: tuple[DispatchHistory, ...] = ()
    library_command: str = ""
    overhead: float | None = None

    @property
    def took(self) -> str:
        """How long it took, and how much of that was the tuner's own."""
        told = f"{self.seconds / 60:.1f} min" if self.seconds >= 60 else f"{self.seconds:.0f} s"
        return told if self.overhead is None else f"{told}, {self.overhead:.0%} of it neither compiling nor measuring"


def tune_tables(report: TuneReport, top: int = 20) -> list[Table]:
    """The workloads by share, then the whole model."""
    lines = [
        [
            row.label,
            str(row.occurrences),
            f"{100 * row.share:.1f} %",
            seconds(row.default_seconds),
            f"{row.right}/{row.tried}",
            f"{row.speedup:.2f}x" if row.speedup else "-",
            _outcome(row),
        ]
        for row in report.workloads[:top]
    ]
    rest = report.workloads[top:]
    if rest:
        lines.append([f"{len(rest)} more", "", f"{100 * sum(row.share for row in rest):.1f} %", "", "", "", ""])
    title = f"{report.model} on {report.target}: dispatches under {report.base} ({report.base_reason})"
    names = ["workload", "times", "share", "default", "right/tried", "speed-up", "schedule"]
    made = [table(title, names, lines, numeric=(1, 2, 3, 4, 5))]
    if report.rows:
        made.append(_model_table(report))
    if any(candidate.static for candidate in report.candidates):
        figures = [(candidate.workload, candidate.schedule, candidate.static) for candidate in report.candidates]
        made.append(static_table("candidates as the assembler sees them", figures))
    return made


def _outcome(row: WorkloadRow) -> str:
    if row.schedule is None:
        return row.status
    return f"{row.schedule} ({row.status})" if row.status == NOT_SHIPPED else row.schedule


def _model_table(report: TuneReport) -> Table:
    lines = [
        [
            row.name + (" *" if row.name == report.shipped else ""),
            seconds(row.median),
            f"{seconds(row.p10)} - {seconds(row.p90)}",
            f"{row.vs_plain:.2f}x",
            f"agree ({row.error:.1g})"
            if report.depends_on_input
            else "unproven: the output does not depend on the input",
        ]
        for row in sorted(report.rows, key=lambda row: -row.vs_plain)
    ]
    title = f"the whole model (* shipped; {report.speedup:.2f}x of IREE's best flags, {report.vs_plain:.2f}x of plain)"
    return table(title, ["compiled", "median", "p10 - p90", "vs plain", "outputs"], lines, numeric=(1, 2, 3))
