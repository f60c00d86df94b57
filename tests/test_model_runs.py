"""Whole models beside each other: how long they are timed, and on which inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import DATA

from tcl_iree.frontend import load_model
from tcl_iree.frontend.iree_compile import compile_model
from tcl_iree.measure.model_job import redrawn, settled
from tcl_iree.target import Target
from tcl_iree.workflows.model_runs import ModelRuns


@pytest.mark.parametrize("rounds", [31, 33])
def test_it_is_looked_at_now_and_then(rounds: int) -> None:
    assert not settled({"a": [1.0] * rounds, "b": [2.0] * rounds}, 0.01)
    assert settled({"a": [1.0] * 32, "b": [2.0] * 32}, 0.01)
    assert not settled({"a": [1.0] * 32, "b": [2.0] * 32}, 0.0), "nobody asked for less than all the time"


def test_what_rises_and_falls_together_is_known_and_what_does_not_is_not() -> None:
    rng = np.random.default_rng(0)
    machine, noise = np.exp(0.3 * rng.standard_normal((2, 64)))
    together = {"a": machine.tolist(), "b": (2 * machine).tolist()}
    assert settled(together, 0.01)
    assert not settled(together | {"c": (2 * machine * noise).tolist()}, 0.01)


def test_timing_ends_when_enough_is_known(tmp_path: Path, target: Target) -> None:
    model, path = load_model(DATA / "matmul_bias_relu.mlir"), tmp_path / "a.vmfb"
    compile_model(model.path, target.compile_flags, path)
    with ModelRuns(target) as runs:
        (inputs, _) = runs.draws(model, path)
        taken = runs.interleave({"a": path, "b": path}, inputs, 60.0, enough=10.0)
    assert {len(values) for values in taken.values()} == {32}


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int64])
def test_integers_are_drawn_from_all_that_the_examples_have(kind: type[np.integer]) -> None:
    limits = np.iinfo(kind)
    (made,) = redrawn([np.array([limits.min, limits.max] * 50, kind)], 0)
    assert made.dtype == kind
    assert len(np.unique(made)) > 10
