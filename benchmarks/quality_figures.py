"""What `benchmarks.time_to_quality` says of searches: how long each takes to be as good as the yardstick."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.curve import Curve

_DRAWS = 1000


@dataclass(frozen=True)
class Task:
    """One thing that is searched.

    Attributes:
        budget: trials of a whole search.
        early: trials after which latency is looked at before the end.
    """

    label: str
    budget: int
    early: int


# Searcher -> task -> how each seed went, seeds in the same order everywhere.
Curves = Mapping[str, Mapping[str, Sequence[Curve]]]


def bar(curves: Sequence[Curve], within: float) -> float:
    """The latency to reach: the median of what the yardstick's seeds ended with, and a share more."""
    return (1.0 + within) * statistics.median(curve.final for curve in curves)


def figures(curves: Curves, tasks: Mapping[str, Task], yardstick: str, within: float) -> dict[str, dict[str, Any]]:
    """Figures of each searcher: what it takes to reach the yardstick's final latency, and how early it is good.

    Gains are geometric means over tasks of ratios between means over seeds, more than 1 where a searcher is ahead of
    the yardstick, with 95 % intervals from drawing tasks and seeds again.
    """
    bars = {task: bar(curves[yardstick][task], within) for task in tasks}
    own = {name: _matrices(held, tasks, bars) for name, held in curves.items()}
    return {
        name: {
            "trials": float(mine["trials"].mean()),
            "seconds": float(mine["seconds"].mean()),
            "reached": float(mine["reached"].mean()),
            "runs": int(mine["reached"].size),
            **{f"gain_in_{what}": _gain(own[yardstick][what], mine[what]) for what in ("trials", "seconds", "early")},
            "tasks": {
                task: {what: float(values[position].mean()) for what, values in mine.items()}
                for position, task in enumerate(tasks)
            },
        }
        for name, mine in own.items()
    }


def mean_ratio(ones: np.ndarray, others: np.ndarray) -> float:
    """Geometric mean over rows of the ratio between the means of two matrices' rows."""
    return float(np.exp(np.log(ones.mean(1) / others.mean(1)).mean()))


def _gain(yardstick: np.ndarray, mine: np.ndarray) -> dict[str, float]:
    rng = np.random.default_rng(0)
    tasks, seeds = mine.shape
    drawn = []
    for _ in range(_DRAWS):
        chosen = np.ix_(rng.integers(tasks, size=tasks), rng.integers(seeds, size=seeds))
        drawn.append(mean_ratio(yardstick[chosen], mine[chosen]))
    low, high = np.quantile(drawn, (0.025, 0.975))
    return {"ratio": mean_ratio(yardstick, mine), "low": float(low), "high": float(high)}


def _matrices(
    curves: Mapping[str, Sequence[Curve]], tasks: Mapping[str, Task], bars: Mapping[str, float]
) -> dict[str, np.ndarray]:
    """Task x seed: trials, seconds and whether the bar was reached, and the latency after the early trials."""
    reaches = [[curve.reach(bars[key], task.budget) for curve in curves[key]] for key, task in tasks.items()]
    return {
        "trials": np.array([[entry.trials for entry in row] for row in reaches], float),
        "seconds": np.array([[entry.seconds for entry in row] for row in reaches], float),
        "reached": np.array([[entry.reached for entry in row] for row in reaches], float),
        "early": np.array(
            [[curve.after_trials(task.early) for curve in curves[key]] for key, task in tasks.items()], float
        ),
    }
