"""How good models are on groups they did not learn from, and whether one is ahead of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcl_iree.learning.cost_model import CostModel
from tcl_iree.learning.groups import Group
from tcl_iree.learning.metrics import Ranked, pairwise_accuracy, regret, top_k
from tcl_iree.learning.split import Split

_DRAWS = 1000


@dataclass(frozen=True)
class Evaluation:
    """A model's figures over pools of candidates.

    Attributes:
        top_1, top_5: the mean over networks; `top_1_sums`, `top_5_sums` are ratios of sums over all of them.
        accuracy: share of pairs in the right order, mean over workloads.
        regret: how much slower the first pick is than the best, mean over workloads.
    """

    top_1: float
    top_5: float
    top_1_sums: float
    top_5_sums: float
    accuracy: float
    regret: float
    workloads: int
    candidates: int


def rank(model: CostModel, groups: Sequence[Group], split: Split | None = None) -> list[Ranked]:
    """Pools with a model's scores; a workload of several networks is in one pool for each."""
    pools = []
    for group in groups:
        scores = model.predict(group.workload, group.target, group.candidates)
        places = split.occurrences(group.workload.key) if split else []
        pools += [Ranked(name, count, group.seconds, scores) for name, count in places or [("other", 1)]]
    return pools


def evaluate(pools: Sequence[Ranked]) -> Evaluation:
    """The figures."""
    first, fifth = top_k(pools, 1), top_k(pools, 5)
    return Evaluation(
        first["mean"],
        fifth["mean"],
        first["sums"],
        fifth["sums"],
        float(np.mean([pairwise_accuracy(pool) for pool in pools])),
        float(np.mean([regret(pool) for pool in pools])),
        len(pools),
        sum(len(pool.seconds) for pool in pools),
    )


def interval(pools: Sequence[Sequence[Ranked]], count: int, seed: int = 0) -> tuple[float, float]:
    """95 % bootstrap interval of top-k, over seeds of one model and over workloads."""
    return _spread([np.array([_top(pools, count, *draw)]) for draw in _drawn(len(pools), len(pools[0]), seed)])


def ahead(
    one: Sequence[Sequence[Ranked]], other: Sequence[Sequence[Ranked]], count: int, seed: int = 0
) -> tuple[float, float]:
    """95 % bootstrap interval of the difference in top-k, paired over seeds and workloads; ahead if it is above zero.

    Args:
        one, other: pools of each seed, in the same order for both.
    """
    seeds, workloads = min(len(one), len(other)), len(one[0])
    return _spread([
        np.array([_top(one, count, *draw) - _top(other, count, *draw)]) for draw in _drawn(seeds, workloads, seed)
    ])  # fmt: skip


def _drawn(seeds: int, workloads: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [(rng.integers(seeds, size=seeds), rng.integers(workloads, size=workloads)) for _ in range(_DRAWS)]


def _top(pools: Sequence[Sequence[Ranked]], count: int, seeds: np.ndarray, workloads: np.ndarray) -> float:
    return float(np.mean([top_k([pools[one][index] for index in workloads], count)["mean"] for one in seeds]))


def _spread(values: list[np.ndarray]) -> tuple[float, float]:
    low, high = np.quantile(np.concatenate(values), (0.025, 0.975))
    return float(low), float(high)
