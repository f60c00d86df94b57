"""How good a ranking is: what the best of its first few candidates costs beside the best there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tcl_iree.learning.groups import Group


@dataclass(frozen=True)
class Ranked:
    """One workload's pool of candidates with a model's scores.

    Attributes:
        workload: its key.
        network: where the workload is from; several networks may share one.
        weight: how often it occurs in the network.
        default: seconds of IREE's default. It is no candidate: it is measured whatever a model says.
        seconds: of each candidate; NaN if it failed.
        scores: higher is thought faster.
    """

    workload: str
    network: str
    weight: float
    default: float
    seconds: np.ndarray
    scores: np.ndarray

    def best(self) -> float:
        """Seconds of the fastest candidate; those of the default if all failed."""
        return float(np.nanmin(self.seconds)) if np.isfinite(self.seconds).any() else self.default

    def best_of_first(self, count: int) -> float:
        """Seconds of the fastest among those ranked first.

        A failure costs what IREE's default does, or the best candidate where that is slower: no failure is a gain.
        """
        first = np.argsort(-self.scores, kind="stable")[:count]
        seconds = np.where(np.isnan(self.seconds), max(self.default, self.best()), self.seconds)
        return float(seconds[first].min())


def ranked(group: Group, scores: np.ndarray, network: str = "", weight: float = 1.0) -> Ranked:
    """A group's candidates but for the default, with scores of all of them; without a network it stands for itself."""
    key = group.workload.key
    return Ranked(key, network or key, weight, float(group.seconds[0]), group.seconds[1:], scores[1:])


def top_k(pools: Sequence[Ranked], count: int) -> dict[str, float]:
    """Top-k in both published forms: the mean over networks, and the ratio of sums over all of them."""
    by_network: dict[str, tuple[float, float]] = {}
    for pool in pools:
        best, found = by_network.get(pool.network, (0.0, 0.0))
        by_network[pool.network] = (
            best + pool.weight * pool.best(),
            found + pool.weight * pool.best_of_first(count),
        )
    sums = np.array(list(by_network.values()))
    return {"mean": float(np.mean(sums[:, 0] / sums[:, 1])), "sums": float(sums[:, 0].sum() / sums[:, 1].sum())}


def random_top_k(pools: Sequence[Ranked], count: int, rng: np.random.Generator, draws: int = 200) -> dict[str, float]:
    """What choosing at random scores, averaged over draws."""
    found = [
        top_k([replace(pool, scores=rng.random(len(pool.seconds))) for pool in pools], count) for _ in range(draws)
    ]
    return {form: float(np.mean([entry[form] for entry in found])) for form in ("mean", "sums")}


def pairwise_accuracy(pool: Ranked) -> float:
    """Share of pairs of candidates in the right order; ties in time do not count."""
    known = ~np.isnan(pool.seconds)
    seconds, scores = pool.seconds[known], pool.scores[known]
    faster = seconds[:, None] < seconds[None, :]
    total = int(faster.sum())
    if not total:
        return 1.0
    above = (scores[:, None] > scores[None, :]) + 0.5 * (scores[:, None] == scores[None, :])
    return float((above * faster).sum() / total)


def validation_figures(pools: Sequence[Ranked]) -> tuple[float, float, float]:
    """Top-1, top-5 and the mean share of pairs in order, as training is watched by; zeros where there are no pools."""
    if not pools:
        return 0.0, 0.0, 0.0
    pairs = float(np.mean([pairwise_accuracy(pool) for pool in pools]))
    return top_k(pools, 1)["mean"], top_k(pools, 5)["mean"], pairs


def regret(pool: Ranked) -> float:
    """How much slower the candidate ranked first is than the best, as a share of the best."""
    return pool.best_of_first(1) / pool.best() - 1.0


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's: 1 if both put things in the same order, -1 if in the opposite one; equal values share a rank."""
    return float(np.corrcoef(_ranks(one), _ranks(other))[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - 0.5 * (counts + 1))[place]
