"""Time one dispatch under IREE's flag sets: what its code generator, not its graph, can do."""

from __future__ import annotations

from collections.abc import Callable

from tcl_iree.errors import MeasureError
from tcl_iree.measure.builder import Builder
from tcl_iree.measure.results import Artifact
from tcl_iree.measure.runner import Runner
from tcl_iree.report.bench import BenchReport, BenchRow
from tcl_iree.target import Target
from tcl_iree.workflows.flag_sets import PLAIN, FlagSet, flag_sets
from tcl_iree.workload.model import Workload


def bench_workload(
    workload: Workload,
    target: Target,
    scope: str = "standard",
    say: Callable[[str, int], None] = lambda text, advance: None,
) -> BenchReport:
    """Build one formed dispatch with every flag set, verify and time each beside the plain one.

    Raises:
        MeasureError: it does not build or run even with no flags.
    """
    rows: dict[str, BenchRow] = {}
    codes: dict[str, str] = {}
    plain: Artifact | None = None
    with Runner(target) as runner:
        for flag_set in flag_sets(target, scope):
            say(f"measuring {flag_set.name}", 0)
            artifact, row = _build(workload, target, flag_set)
            plain = plain or artifact
            if artifact and artifact.sha in codes:
                twin = rows[codes[artifact.sha]]
                row = BenchRow(**{**vars(twin), "name": row.name, "flags": row.flags, "same_as": twin.name})
            elif artifact and plain:
                codes[artifact.sha] = flag_set.name
                row = _measure(workload, runner, artifact, plain, row)
            rows[flag_set.name] = row
            if flag_set == PLAIN and row.status != "ok":
                raise MeasureError(f"IREE's default for {workload.label} does not run: {row.status}")
            say(f"measured {flag_set.name}", 1)
    best = min((row for row in rows.values() if row.median), key=lambda row: row.median or 0.0)
    return BenchReport(workload.label, str(target), scope, tuple(rows.values()), best.name, True, {})


def _build(workload: Workload, target: Target, flag_set: FlagSet) -> tuple[Artifact | None, BenchRow]:
    with Builder(target, flag_set.flags, workers=1) as builder:
        built = builder.build_default(workload)
    status = f"{built.failure.kind}: {built.failure.detail.partition(chr(10))[0]}" if built.failure else "ok"
    return built.artifact, BenchRow(flag_set.name, flag_set.flags, status, built.seconds)


def _measure(workload: Workload, runner: Runner, artifact: Artifact, plain: Artifact, row: BenchRow) -> BenchRow:
    result = runner.measure(workload, artifact, plain)
    if result.failure:
        headline = result.failure.detail.partition("\n")[0]
        return BenchRow(row.name, row.flags, f"{result.failure.kind}: {headline}", row.compile_seconds)
    timing = result.timing
    assert timing
    return BenchRow(
        row.name, row.flags, "ok", row.compile_seconds, timing.p50, timing.p10, timing.p90, timing.ratio, result.error
    )
