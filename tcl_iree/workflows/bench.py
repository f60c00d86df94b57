"""Time a model under IREE's own flag sets, checked against each other and interleaved."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tcl_iree.errors import MeasureError, ModelError
from tcl_iree.frontend import Model
from tcl_iree.frontend.iree_compile import compile_model
from tcl_iree.processes import scratch_directory
from tcl_iree.report.bench import BenchReport, BenchRow, DispatchTime
from tcl_iree.target import Target
from tcl_iree.workflows.flag_sets import PLAIN, FlagSet, flag_sets, with_larger_stack
from tcl_iree.workflows.model_runs import ModelRuns, depends_on_input
from tcl_iree.workflows.profile import profile

_PROFILE_SECONDS = 1.5

Say = Callable[[str, int], None]


@dataclass(frozen=True)
class _Compiled:
    flag_set: FlagSet
    path: Path
    seconds: float
    digest: str


def bench(
    model: Model,
    target: Target,
    scope: str = "standard",
    seconds: float = 20.0,
    say: Say = lambda text, advance: None,
    keep: Path | None = None,
    profiled: bool = False,
    enough: float = 0.0,
) -> BenchReport:
    """Compile `model` with every flag set, check that they agree, time them in turn.

    Args:
        scope: which flag sets, see `flag_sets`.
        seconds: time for the interleaved rounds.
        say: called with what is going on and how many steps were finished (`bench_steps` in all).
        keep: a directory where the compiled modules are left, each as `<flag set>.vmfb`.
        profiled: see where the time of each goes as well.
        enough: stop timing at this standard error of ratios, however much time is left; 0 takes all of it.

    Raises:
        ModelError: the model does not compile even with no flags.
        MeasureError: it compiles but cannot run.
    """
    target.require_runnable()
    with scratch_directory("bench") as scratch, ModelRuns(target) as runs:
        rows: dict[str, BenchRow] = {}
        compiled: list[_Compiled] = []
        for flag_set in flag_sets(target, scope):
            say(f"compiling {flag_set.name}", 0)
            made, row = _compile(model, target, flag_set, keep or Path(scratch), compiled)
            rows[flag_set.name] = row
            if made:
                compiled.append(made)
            elif flag_set == PLAIN:
                raise ModelError(row.status)
            say(f"compiled {flag_set.name}", 1)
        draws = runs.draws(model, compiled[0].path)
        say("checking outputs", 0)
        reference = runs.outputs(compiled[0].path, draws)
        usable = []
        for made in compiled:
            status, error = runs.compare(reference, made.path, draws)
            rows[made.flag_set.name] = replace(rows[made.flag_set.name], status=status, error=error)
            if status == "ok":
                usable.append(made)
        if not usable:
            raise MeasureError(f"{model.name} does not give the same output twice: {rows[PLAIN.name].status}")
        say(f"timing {len(usable)} flag sets in turn", 1)
        taken = runs.interleave({made.flag_set.name: made.path for made in usable}, draws[0], seconds, enough)
        _fill_rows(rows, taken)
        best = min(usable, key=lambda made: statistics.median(taken[made.flag_set.name]))
        profiles = {}
        for made in usable if profiled else ():
            say(f"profiling {made.flag_set.name}", 0)
            profiles[made.flag_set.name] = _profile(made, runs, draws[0], target, taken)
        say("done", 1)
        depends = depends_on_input(reference)
        return BenchReport(model.name, str(target), scope, tuple(rows.values()), best.flag_set.name, depends, profiles)


def bench_steps(target: Target, scope: str) -> int:
    """Steps `bench` reports."""
    return len(flag_sets(target, scope)) + 2


def _compile(
    model: Model, target: Target, flag_set: FlagSet, scratch: Path, earlier: list[_Compiled]
) -> tuple[_Compiled | None, BenchRow]:
    started = time.monotonic()
    path = scratch / f"{flag_set.name}.vmfb"
    used = flag_set
    try:
        try:
            compile_model(model.path, [*target.compile_flags, *flag_set.flags], path)
        except ModelError as error:
            if "stack allocation" not in str(error):
                raise
            used = with_larger_stack(flag_set)
            compile_model(model.path, [*target.compile_flags, *used.flags], path)
    except ModelError as error:
        return None, BenchRow(flag_set.name, flag_set.flags, str(error), time.monotonic() - started)
    seconds = time.monotonic() - started
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    twin = next((made for made in earlier if made.digest == digest), None)
    if twin:
        path.unlink()
        return None, BenchRow(flag_set.name, used.flags, "ok", seconds, same_as=twin.flag_set.name)
    made = _Compiled(FlagSet(flag_set.name, used.flags), path, seconds, digest)
    return made, BenchRow(flag_set.name, used.flags, "ok", seconds)


def _fill_rows(rows: dict[str, BenchRow], taken: dict[str, list[float]]) -> None:
    """Add times; a row whose code another row has too takes over that row's outcome."""
    plain = taken.get(PLAIN.name)
    for name, row in rows.items():
        twin = rows[row.same_as] if row.same_as else row
        times = taken.get(twin.name)
        if not times:
            rows[name] = replace(row, status=twin.status, error=twin.error)
            continue
        p10, *_, p90 = statistics.quantiles(times, n=10)
        ratio = statistics.median(a / b for a, b in zip(plain, times, strict=True)) if plain else None
        rows[name] = replace(
            row, status=twin.status, error=twin.error, median=statistics.median(times), p10=p10, p90=p90, ratio=ratio
        )


def _profile(
    made: _Compiled, runs: ModelRuns, inputs: list[np.ndarray], target: Target, taken: dict[str, list[float]]
) -> list[DispatchTime]:
    calls = max(3, min(200, round(_PROFILE_SECONDS / statistics.median(taken[made.flag_set.name]))))
    name, _ = runs.entry(made.path)
    try:
        return profile(made.path, name, inputs, target, calls)
    except MeasureError:
        return []
