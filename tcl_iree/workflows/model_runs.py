"""Run whole compiled models: their outputs, compared, and their latencies, interleaved."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from tcl_iree.errors import MeasureError
from tcl_iree.frontend import Model
from tcl_iree.hardware import machine_memory
from tcl_iree.measure.exclusive import exclusive
from tcl_iree.measure.model_job import random_inputs, redrawn
from tcl_iree.measure.worker import Worker
from tcl_iree.target import Target

_JOB = "tcl_iree.measure.model_job:job"
_SETUP_SECONDS = 600.0
# Two correct compilations of a deep network differ by reordered sums; a wrong one by far more.
_AGREE = {"float64": 1e-6, "float32": 5e-3, "float16": 5e-2, "bfloat16": 1e-1}

Draws = list[list[np.ndarray]]


class ModelRuns:
    """Calls compiled models of one target in a process of their own; failures are `MeasureError`."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._worker = Worker(_JOB)

    def __enter__(self) -> ModelRuns:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._worker.close()

    def entry(self, path: Path) -> tuple[str, list[Any]]:
        """Name and inputs of a compiled model's function."""
        return self._call(_SETUP_SECONDS, task="signature", path=str(path))

    def outputs(self, path: Path, draws: Draws) -> Draws:
        """What a compiled model computes from each draw of inputs."""
        return self._call(_SETUP_SECONDS, task="outputs", path=str(path), draws=draws)

    def interleave(
        self, paths: dict[str, Path], inputs: list[np.ndarray], seconds: float, enough: float = 0.0
    ) -> dict[str, list[float]]:
        """Latencies of several compiled models, one call each in turn.

        Args:
            enough: a standard error of ratios at which to stop before the time is over; 0 takes all of it.
        """
        named = {name: str(path) for name, path in paths.items()}
        given = {"inputs": inputs, "seconds": seconds, "min_rounds": 5, "enough": enough}
        with exclusive():
            return self._call(seconds + _SETUP_SECONDS, task="interleave", paths=named, **given)

    def draws(self, model: Model, compiled: Path) -> Draws:
        """Two draws of inputs: the model's examples and others like them, or random ones."""
        if model.inputs is not None:
            return [list(model.inputs), redrawn(list(model.inputs), 1)]
        _, inputs = self.entry(compiled)
        return [random_inputs(inputs, seed) for seed in (0, 1)]

    def compare(self, reference: Draws, path: Path, draws: Draws) -> tuple[str, float | None]:
        """`ok` or what is wrong with a compiled model's outputs, and how far they are from the reference's."""
        try:
            return agreement(reference, self.outputs(path, draws))
        except MeasureError as error:
            return str(error), None

    def _call(self, timeout: float, **arguments: Any) -> Any:
        arguments |= {"device": self._target.device, "flags": list(self._target.runtime_flags)}
        memory = None if self._target.kind == "cuda" else int(0.9 * machine_memory())
        outcome = self._worker.run(arguments, timeout, memory)
        if outcome.status != "done":
            raise MeasureError(f"the compiled model does not run: {outcome.headline}")
        return outcome.value


def agreement(reference: Draws, actual: Draws) -> tuple[str, float]:
    """`ok` or how outputs are wrong, and how far they are from the reference's."""
    worst = 0.0
    for wanted, got in zip(chain(*reference), chain(*actual), strict=True):
        difference = _difference(wanted, got)
        worst = max(worst, difference)
        if not difference <= _AGREE.get(str(wanted.dtype), 0.0):
            return f"wrong result: outputs differ by {difference:.2g} of their size", difference
    return "ok", worst


def depends_on_input(outputs: Draws) -> bool:
    """Whether the output changed with the input by more than two compilations may differ."""
    first, second = outputs
    return any(
        _difference(a, b) > _AGREE.get(str(a.dtype), 0.0) and np.isfinite(a).any()
        for a, b in zip(first, second, strict=True)
    )


def _difference(wanted: np.ndarray, got: np.ndarray) -> float:
    """Largest difference relative to the size of the numbers; infinite where only one is finite."""
    a, b = wanted.astype(np.float64), got.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    scale = float(np.sqrt(np.mean(np.square(a[finite])))) if finite.any() else 1.0
    return float(np.max(np.abs(a[finite] - b[finite]), initial=0.0)) / (scale or 1.0)
