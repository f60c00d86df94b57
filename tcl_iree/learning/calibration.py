"""From scores to what they mean: a time, and the chance that a candidate compiles and is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcl_iree.features.steps import Candidate
from tcl_iree.learning.cost_model import CostModel
from tcl_iree.learning.groups import Group
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

_NEWTON_STEPS = 50
_RIDGE = 1e-3
# Log odds beyond this are certainty in numbers of limited precision.
_MOST_ODDS = 20.0


@dataclass(frozen=True)
class Calibration:
    """How a model's scores translate, as found on groups it did not learn from.

    Scores mean something only beside others of the same workload, so they are taken beside that of IREE's default.

    Attributes:
        latency: log2 of seconds = latency . (1, log2 flops, log2 bytes, score).
        spread: standard deviation of what that misses, in log2 of seconds.
        works: log odds of success = works . (1, score).
    """

    latency: tuple[float, ...]
    spread: float
    works: tuple[float, ...]


@dataclass(frozen=True)
class Estimate:
    """What a calibrated model expects of candidates.

    Attributes:
        seconds: the expected time of each; `spread` is one standard deviation of its log2.
        works: chance that each compiles and gives right results.
    """

    seconds: np.ndarray
    spread: float
    works: np.ndarray


def calibrate(model: CostModel, groups: Sequence[Group]) -> Calibration:
    """Fit both translations by regression."""
    inputs, times, chances = [], [], []
    for group in groups:
        scores = _relative(model, group.workload, group.target, group.candidates)
        inputs.append(_columns(group.workload, scores))
        times.append(np.log2(group.seconds))
        chances.append(group.works)
    columns, logs, works = np.concatenate(inputs), np.concatenate(times), np.concatenate(chances)
    latency, *_ = np.linalg.lstsq(columns[works], logs[works], rcond=None)
    missed = logs[works] - columns[works] @ latency
    odds = _logistic(columns[:, [0, 3]], _never_certain(works))
    return Calibration(tuple(latency.tolist()), float(missed.std()), tuple(odds.tolist()))


def estimate(
    model: CostModel, calibration: Calibration, workload: Workload, target: Target, candidates: Sequence[Candidate]
) -> Estimate:
    """Times and chances of candidates."""
    columns = _columns(workload, _relative(model, workload, target, [None, *candidates])[1:])
    odds = np.clip(columns[:, [0, 3]] @ np.array(calibration.works), -_MOST_ODDS, _MOST_ODDS)
    return Estimate(2.0 ** (columns @ np.array(calibration.latency)), calibration.spread, 1.0 / (1.0 + np.exp(-odds)))


def _relative(model: CostModel, workload: Workload, target: Target, candidates: Sequence[Candidate]) -> np.ndarray:
    """Scores beside that of the first candidate, the default."""
    scores = model.predict(workload, target, candidates)
    return scores - scores[0]


def _columns(workload: Workload, scores: np.ndarray) -> np.ndarray:
    ones = np.ones(len(scores))
    return np.stack([ones, np.log2(1 + workload.flops) * ones, np.log2(1 + workload.bytes) * ones, scores], axis=1)


def _never_certain(works: np.ndarray) -> np.ndarray:
    """What to aim at (Platt): scores that tell the two apart without a mistake must not become certainties."""
    right, wrong = np.count_nonzero(works), np.count_nonzero(~works)
    return np.where(works, (right + 1) / (right + 2), 1 / (wrong + 2))


def _logistic(columns: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
    """Logistic regression by Newton's method, a little drawn towards zero so that it ends for any data."""
    weights = np.zeros(columns.shape[1])
    for _ in range(_NEWTON_STEPS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(columns @ weights, -30, 30)))
        gradient = columns.T @ (outcomes - chance) - _RIDGE * weights
        curvature = (columns * (chance * (1 - chance))[:, None]).T @ columns + _RIDGE * np.eye(len(weights))
        step = np.linalg.solve(curvature, gradient)
        weights = weights + step
        if np.abs(step).max() < 1e-8:
            break
    return weights
