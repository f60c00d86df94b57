"""How good models are on groups they did not learn from, and whether one is ahead of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tcl_iree.errors import LearningError
from tcl_iree.learning.cost_model import CostModel
from tcl_iree.learning.groups import Group
from tcl_iree.learning.metrics import Ranked, pairwise_accuracy, random_top_k, ranked, regret, top_k
from tcl_iree.learning.split import Split

PAIRS: Literal["pairs"] = "pairs"
# How good rankings are: k of top-k, or the share of pairs in order.
Figure = int | Literal["pairs"]
FIGURES: tuple[Figure, ...] = (1, 5, PAIRS)
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
    """Pools with a model's scores.

    Args:
        split: says which networks run a workload and how often; a workload of several is in one pool for each, one that
            it does not list in none. Without it each workload stands for itself.
    """
    pools = []
    for group in groups:
        if places := Split.places(split, group.workload.key):
            scores = model.score(group)
            pools += [ranked(group, scores, name, count) for name, count in places]
    return pools


def evaluate(pools: Sequence[Ranked]) -> Evaluation:
    """The figures.

    Raises:
        LearningError: there are no pools.
    """
    if not pools:
        raise LearningError("there is nothing to evaluate: no workload of the data is listed in the split")
    first, fifth = top_k(pools, 1), top_k(pools, 5)
    distinct = [pools[index] for index in _distinct(pools)]
    return Evaluation(
        first["mean"],
        fifth["mean"],
        first["sums"],
        fifth["sums"],
        float(np.mean([pairwise_accuracy(pool) for pool in distinct])),
        float(np.mean([regret(pool) for pool in distinct])),
        len(distinct),
        sum(len(pool.seconds) for pool in distinct),
    )


def evaluate_guessing(pools: Sequence[Ranked], seed: int = 0) -> Evaluation:
    """The figures of choosing at random: top-k averaged over many draws, the rest of one."""
    rng = np.random.default_rng(seed)
    first, fifth = (random_top_k(pools, count, rng) for count in (1, 5))
    found = evaluate(pools)
    return replace(
        found,
        top_1=first["mean"],
        top_5=fifth["mean"],
        top_1_sums=first["sums"],
        top_5_sums=fifth["sums"],
    )


def guesses(pools: Sequence[Ranked], draws: int = 20, seed: int = 0) -> list[list[Ranked]]:
    """The same pools, ranked at random so many times."""
    rng = np.random.default_rng(seed)
    return [[replace(pool, scores=rng.random(len(pool.seconds))) for pool in pools] for _ in range(draws)]


def mean_figure(pools: Sequence[Sequence[Ranked]], figure: Figure) -> float:
    """A figure of one model, the mean over its seeds."""
    measure = _measure(pools, figure)
    every = np.arange(len(pools[0]))
    return measure.of(np.arange(len(pools)), every)


def interval(pools: Sequence[Sequence[Ranked]], figure: Figure, seed: int = 0) -> tuple[float, float]:
    """95 % bootstrap interval of a figure, over seeds of one model and over workloads."""
    measure = _measure(pools, figure)
    return _spread([measure.of(*draw) for draw in _drawn(len(pools), pools[0], seed)])


def ahead(
    one: Sequence[Sequence[Ranked]], other: Sequence[Sequence[Ranked]], figure: Figure, seed: int = 0
) -> tuple[float, float]:
    """95 % bootstrap interval of a figure's difference, paired over seeds and workloads; ahead if it is above zero.

    Args:
        one, other: pools of each seed, in the same order for both.
    """
    mine, others = _measure(one, figure), _measure(other, figure)
    drawn = _drawn(min(len(one), len(other)), one[0], seed)
    return _spread([mine.of(*draw) - others.of(*draw) for draw in drawn])


def figure_name(figure: Figure) -> str:
    """What a figure is recorded as."""
    return f"top_{figure}" if isinstance(figure, int) else figure


def _distinct(pools: Sequence[Ranked]) -> list[int]:
    """Positions of the pools, of one that networks share the last; platforms differ in the default's time."""
    return list({(pool.workload, pool.default): index for index, pool in enumerate(pools)}.values())


def _drawn(seeds: int, pools: Sequence[Ranked], seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Seeds and pools; a workload is drawn with all the networks it is of."""
    rng = np.random.default_rng(seed)
    places: dict[str, list[int]] = {}
    for index, pool in enumerate(pools):
        places.setdefault(pool.workload, []).append(index)
    held = [np.array(indices) for indices in places.values()]
    return [
        (
            rng.integers(seeds, size=seeds),
            np.concatenate([held[drawn] for drawn in rng.integers(len(held), size=len(held))]),
        )
        for _ in range(_DRAWS)
    ]


class _Times:
    """What top-k is made of, looked up once: the same pools are drawn again and again."""

    def __init__(self, pools: Sequence[Sequence[Ranked]], count: int) -> None:
        _, self._network = np.unique([pool.network for pool in pools[0]], return_inverse=True)
        self._best = np.array([[pool.weight * pool.best() for pool in held] for held in pools])
        self._found = np.array([[pool.weight * pool.best_of_first(count) for pool in held] for held in pools])

    def of(self, seeds: np.ndarray, chosen: np.ndarray) -> float:
        """The mean over seeds of the mean over networks, of the chosen pools."""
        networks = self._network[chosen]
        there = np.unique(networks)
        ratios = []
        for one in seeds:
            best, found = (np.bincount(networks, times[one, chosen]) for times in (self._best, self._found))
            ratios.append((best[there] / found[there]).mean())
        return float(np.mean(ratios))


class _Pairs:
    """Shares of pairs in order, looked up once."""

    def __init__(self, pools: Sequence[Sequence[Ranked]]) -> None:
        self._counts = np.isin(np.arange(len(pools[0])), _distinct(pools[0]))
        self._shares = np.array([[pairwise_accuracy(pool) for pool in held] for held in pools])

    def of(self, seeds: np.ndarray, chosen: np.ndarray) -> float:
        """The mean over seeds and over the chosen pools, each once where networks share it."""
        return float(self._shares[np.ix_(seeds, chosen[self._counts[chosen]])].mean())


def _measure(pools: Sequence[Sequence[Ranked]], figure: Figure) -> _Times | _Pairs:
    return _Times(pools, figure) if isinstance(figure, int) else _Pairs(pools)


def _spread(values: Sequence[float]) -> tuple[float, float]:
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)
