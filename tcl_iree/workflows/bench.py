"""Time a model under IREE's own flag sets, checked against each other and interleaved."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from tcl_iree.errors import MeasureError, ModelError
from tcl_iree.frontend import Model
from tcl_iree.frontend.iree_compile import compile_model
from tcl_iree.hardware import machine_memory
from tcl_iree.measure.model_job import random_inputs, redrawn
from tcl_iree.measure.worker import Worker
from tcl_iree.processes import scratch_directory
from tcl_iree.report.bench import BenchReport, BenchRow, DispatchTime
from tcl_iree.target import Target
from tcl_iree.workflows.flag_sets import PLAIN, FlagSet, flag_sets, with_larger_stack
from tcl_iree.workflows.profile import profile

_JOB = "tcl_iree.measure.model_job:job"
_SETUP_SECONDS = 600.0
_PROFILE_SECONDS = 1.5
# Two correct compilations of a deep network differ by reordered sums; a wrong one by far more.
_AGREE = {"float64": 1e-6, "float32": 5e-3, "float16": 5e-2, "bfloat16": 1e-1}

Say = Callable[[str, int], None]


@dataclass(frozen=True)
class _Compiled:
    flag_set: FlagSet
    path: Path
    seconds: float
    digest: str


def bench(
    model: Model, target: Target, scope: str = "standard", seconds: float = 20.0, say: Say = lambda text, advance: None
) -> BenchReport:
    """Compile `model` with every flag set, check that they agree, time them in turn, profile each.

    Args:
        scope: which flag sets, see `flag_sets`.
        seconds: time for the interleaved rounds.
        say: called with what is going on and how many steps were finished (`bench_steps` in all).

    Raises:
        ModelError: the model does not compile even with no flags.
        MeasureError: it compiles but cannot run.
    """
    target.require_runnable()
    with scratch_directory("bench") as scratch, Worker(_JOB) as worker:
        rows: dict[str, BenchRow] = {}
        compiled: list[_Compiled] = []
        for flag_set in flag_sets(target, scope):
            say(f"compiling {flag_set.name}", 0)
            made, row = _compile(model, target, flag_set, Path(scratch), compiled)
            rows[flag_set.name] = row
            if made:
                compiled.append(made)
            elif flag_set == PLAIN:
                raise ModelError(row.status)
            say(f"compiled {flag_set.name}", 1)
        runs = _Runs(worker, target)
        draws = _draws(runs, model, compiled[0])
        say("checking outputs", 0)
        reference = runs.outputs(compiled[0].path, draws)
        usable = []
        for made in compiled:
            status, error = _compare(reference, runs, made, draws)
            rows[made.flag_set.name] = replace(rows[made.flag_set.name], status=status, error=error)
            if status == "ok":
                usable.append(made)
        if not usable:
            raise MeasureError(f"{model.name} does not give the same output twice: {rows[PLAIN.name].status}")
        say(f"timing {len(usable)} flag sets in turn", 1)
        taken = runs.interleave({made.flag_set.name: str(made.path) for made in usable}, draws[0], seconds)
        _fill_rows(rows, taken)
        best = min(usable, key=lambda made: statistics.median(taken[made.flag_set.name]))
        profiles = {}
        for made in usable:
            say(f"profiling {made.flag_set.name}", 0)
            profiles[made.flag_set.name] = _profile(made, runs, draws[0], target, taken)
        say("done", 1)
        depends = _moves(*reference)
        return BenchReport(model.name, str(target), scope, tuple(rows.values()), best.flag_set.name, depends, profiles)


def bench_steps(target: Target, scope: str) -> int:
    """Steps `bench` reports."""
    return len(flag_sets(target, scope)) + 2


class _Runs:
    """Calls into the model worker, failures as `MeasureError`."""

    def __init__(self, worker: Worker, target: Target) -> None:
        self._worker, self._target = worker, target

    def entry(self, path: Path) -> tuple[str, list[Any]]:
        return self._call(_SETUP_SECONDS, task="signature", path=str(path))

    def outputs(self, path: Path, draws: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
        return self._call(_SETUP_SECONDS, task="outputs", path=str(path), draws=draws)

    def interleave(self, paths: dict[str, str], inputs: list[np.ndarray], seconds: float) -> dict[str, list[float]]:
        limit = seconds + _SETUP_SECONDS
        return self._call(limit, task="interleave", paths=paths, inputs=inputs, seconds=seconds, min_rounds=5)

    def _call(self, timeout: float, **arguments: Any) -> Any:
        arguments |= {"device": self._target.device, "flags": list(self._target.runtime_flags)}
        memory = None if self._target.kind == "cuda" else int(0.9 * machine_memory())
        outcome = self._worker.run(arguments, timeout, memory)
        if outcome.status != "done":
            raise MeasureError(f"the compiled model does not run: {outcome.headline}")
        return outcome.value


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


def _draws(runs: _Runs, model: Model, plain: _Compiled) -> list[list[np.ndarray]]:
    if model.inputs is not None:
        return [list(model.inputs), redrawn(list(model.inputs), 1)]
    _, inputs = runs.entry(plain.path)
    return [random_inputs(inputs, seed) for seed in (0, 1)]


def _compare(
    reference: list[list[np.ndarray]], runs: _Runs, made: _Compiled, draws: list[list[np.ndarray]]
) -> tuple[str, float | None]:
    try:
        actual = runs.outputs(made.path, draws)
    except MeasureError as error:
        return str(error), None
    worst = 0.0
    for wanted, got in zip(chain(*reference), chain(*actual), strict=True):
        difference = _difference(wanted, got)
        worst = max(worst, difference)
        if not difference <= _AGREE.get(str(wanted.dtype), 0.0):
            return f"wrong result: outputs differ by {difference:.2g} of their size", difference
    return "ok", worst


def _difference(wanted: np.ndarray, got: np.ndarray) -> float:
    """Largest difference relative to the size of the numbers; infinite where only one is finite."""
    a, b = wanted.astype(np.float64), got.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    scale = float(np.sqrt(np.mean(np.square(a[finite])))) if finite.any() else 1.0
    return float(np.max(np.abs(a[finite] - b[finite]), initial=0.0)) / (scale or 1.0)


def _moves(first: list[np.ndarray], second: list[np.ndarray]) -> bool:
    """Whether the output changed with the input by more than two compilations may differ."""
    return any(
        _difference(a, b) > _AGREE.get(str(a.dtype), 0.0) and np.isfinite(a).any()
        for a, b in zip(first, second, strict=True)
    )


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
    made: _Compiled, runs: _Runs, inputs: list[np.ndarray], target: Target, taken: dict[str, list[float]]
) -> list[DispatchTime]:
    calls = max(3, min(200, round(_PROFILE_SECONDS / statistics.median(taken[made.flag_set.name]))))
    name, _ = runs.entry(made.path)
    try:
        return profile(made.path, name, inputs, target, calls)
    except MeasureError:
        return []
