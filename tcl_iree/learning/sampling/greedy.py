"""Samplers that take one program after the other, each in view of those already taken.

What a program is worth is the sum of a fixed part and of how far it is from everything taken:

    worth[i] = fixed[i] + weight * min over taken j of |e[i] - e[j]| / typical distance

The typical distance is that of the program's own workload. Programs of other workloads count as taken too, through a
limited number of them chosen by chance. Work and memory grow with the pool: a workload is cut into parts that are
chosen from one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tcl_iree.learning.distances import squared_distances
from tcl_iree.learning.sampling.pool import Pool
from tcl_iree.learning.sampling.sampler import Sampler, by_turns, parts, shares

_LANDMARKS = 512
_SAMPLED = 128
_DISTANCES_AT_ONCE = 1 << 22


class GreedySampler(Sampler):
    """See the module."""

    def _choose(
        self, pool: Pool, count: int, free: np.ndarray, taken: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        space = self._space(pool)
        seen = rng.permutation(taken)[:_LANDMARKS]
        chosen: list[np.ndarray] = []
        members = parts(pool, free, rng)
        given = shares(members, pool, taken, count, rng, self._weights(pool, members, count, taken, rng))
        own = {workload: taken[pool.workloads[taken] == workload] for workload in np.unique(pool.workloads[taken])}
        for part, share in zip(members, given, strict=True):
            if share == 0:
                continue
            mine = own.get(pool.workloads[part[0]], seen[:0])
            near = np.unique(np.concatenate([seen, mine]))
            typical = _typical(space[np.concatenate([part, mine])], rng)
            apart = np.full(len(part), 2.0)
            if len(near):
                apart = np.minimum(apart, _nearest(space[part], space[near]) / typical)
            fixed = self._fixed(pool, space, part, rng)
            found = part[self._pick(space[part], apart, fixed, share, typical, rng)]
            chosen.append(found)
            seen = _remembered(seen, found, rng)
        return by_turns(chosen)

    def _space(self, pool: Pool) -> np.ndarray:
        """Where distances are taken."""
        return pool.embeddings

    def _weights(
        self, pool: Pool, members: list[np.ndarray], count: int, taken: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray | None:
        """What the parts' shares of the budget go by, beside their sizes; 0 passes one over."""
        return None

    def _fixed(self, pool: Pool, space: np.ndarray, part: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.zeros(len(part))

    def _distance(self) -> float:
        """What a typical distance is worth."""
        return 1.0

    def _next(self, apart: np.ndarray, fixed: np.ndarray, rng: np.random.Generator) -> int:
        """The program to take; the fixed part of those taken already is minus infinity."""
        return int(np.argmax(fixed + self._distance() * apart))

    def _pick(
        self, space: np.ndarray, apart: np.ndarray, fixed: np.ndarray, count: int, typical: float,
        rng: np.random.Generator,
    ) -> np.ndarray:  # fmt: skip
        squares = (space * space).sum(1)
        picked = np.empty(count, np.int64)
        fixed = fixed + 1e-9 * rng.random(len(fixed))  # ties by chance
        for turn in range(count):
            best = picked[turn] = self._next(apart, fixed, rng)
            away = squares - 2.0 * (space @ space[best]) + squares[best]
            apart = np.minimum(apart, np.sqrt(np.maximum(away, 0.0)) / typical)
            fixed[best] = -np.inf
        return picked


class KCenterSampler(GreedySampler):
    """Whatever is farthest from everything taken."""

    name: ClassVar[str] = "k-center"


class BadgeSampler(GreedySampler):
    """Like BADGE: by chance, the likelier the farther, where distances are those of the last layer's gradients.

    A gradient is the embedding times how much the score would have to move, for which the uncertainty stands.
    """

    name: ClassVar[str] = "badge"

    def _space(self, pool: Pool) -> np.ndarray:
        return pool.embeddings * pool.uncertainty[:, None].astype(np.float32)

    def _next(self, apart: np.ndarray, fixed: np.ndarray, rng: np.random.Generator) -> int:
        chance = np.where(np.isfinite(fixed), apart**2 + 1e-12, 0.0)
        return int(rng.choice(len(chance), p=chance / chance.sum()))


@dataclass(frozen=True)
class BiasedSampler(GreedySampler):
    """Like BALTO: diversity, with programs that the model thinks fast preferred.

    Attributes:
        bias: what being thought the best of a workload is worth, in typical distances.
    """

    name: ClassVar[str] = "biased"
    bias: float = 1.0

    def _fixed(self, pool: Pool, space: np.ndarray, part: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.bias * pool.goodness[part]


@dataclass(frozen=True)
class RduSampler(GreedySampler):
    """Representativeness, diversity and uncertainty in one sum.

    Representativeness is how dense the pool is around a program, beside the densest place of its workload; diversity is
    the distance to what is taken; uncertainty is beside the most uncertain of the pool. Workloads of which the model is
    less sure get a larger part of the budget.

    A program teaches something beside others of its workload: times of different workloads are not compared. So where
    the budget is too small for all workloads, some are chosen first, by the same sum over their mean embeddings.

    Attributes:
        representativeness, diversity, uncertainty: the weights.
        together: programs that a workload should get if it gets any.
    """

    name: ClassVar[str] = "rdu"
    representativeness: float = 0.1
    diversity: float = 1.0
    uncertainty: float = 0.1
    together: int = 4

    def _distance(self) -> float:
        return self.diversity

    def _weights(
        self, pool: Pool, members: list[np.ndarray], count: int, taken: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        weights = np.array([1.0 + self.uncertainty * float(pool.doubt[part].mean()) for part in members])
        workloads, place = np.unique([pool.workloads[part[0]] for part in members], return_inverse=True)
        have = np.bincount(pool.workloads[taken], minlength=int(workloads[-1]) + 1)[workloads]
        begun = np.flatnonzero(have)
        total = count + int(have.sum())  # workloads that have nothing left to choose are done with
        more = max(total // self.together - len(begun), 0 if len(begun) else 1)
        if len(begun) + more >= len(workloads):
            return weights
        centres, doubt = _means(pool, members, place, len(workloads))
        fixed = self.representativeness * density(centres, rng) + self.uncertainty * doubt
        fixed[begun] = -np.inf
        apart, typical = np.full(len(workloads), 2.0), _typical(centres, rng)
        if len(begun):
            apart = np.minimum(apart, _nearest(centres, centres[begun]) / typical)
        chosen = np.concatenate([begun, self._pick(centres, apart, fixed, more, typical, rng)])
        return np.where(np.isin(place, chosen), weights, 0.0)

    def _fixed(self, pool: Pool, space: np.ndarray, part: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.representativeness * density(space[part], rng) + self.uncertainty * pool.doubt[part]

    def _focused(
        self, claims: np.ndarray, pool: Pool, members: list[np.ndarray], count: int, taken: np.ndarray, typical: float,
        rng: np.random.Generator,
    ) -> np.ndarray:  # fmt: skip
        workloads, place = np.unique([pool.workloads[part[0]] for part in members], return_inverse=True)
        held = np.bincount(pool.workloads[taken], minlength=int(workloads[-1]) + 1)
        have = held[workloads]
        begun = np.flatnonzero(have)
        total = count + int(have.sum())  # workloads that have nothing left to choose are done with
        more = max(total // self.together - len(begun), 0 if len(begun) else 1)
        if len(begun) + more >= len(workloads):
            return claims
        centres, doubt = _means(pool, members, place, len(workloads))
        fixed = self.representativeness * density(centres, rng) + self.uncertainty * doubt
        fixed[begun] = -np.inf
        apart = np.full(len(workloads), 2.0)
        if len(begun):
            apart = np.minimum(apart, _nearest(centres, centres[begun]) / typical)
        chosen = np.concatenate([begun, self._pick(centres, apart, fixed, more, typical, rng)])
        totals = np.bincount(place, claims)
        wanted = np.where(np.isin(np.arange(len(workloads)), chosen), totals, 0.0)
        # What a workload has already counts towards its share.
        lacking = np.maximum(total * wanted / wanted.sum() - have, 0.0)
        return claims / totals[place] * (lacking if lacking.any() else wanted)[place]


def _means(pool: Pool, members: list[np.ndarray], place: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean embedding and mean doubt of workloads; `place` says which one each part is of."""
    centres, doubt = np.zeros((count, pool.embeddings.shape[1]), np.float32), np.zeros(count)
    for part, at in zip(members, place, strict=True):
        centres[at] += pool.embeddings[part].sum(0)
        doubt[at] += pool.doubt[part].sum()
    sizes = np.bincount(place, [len(part) for part in members])
    return centres / sizes[:, None].astype(np.float32), doubt / sizes


def density(space: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """How dense points lie around each, from 0 to 1: a Gaussian kernel over some of them."""
    some = space[rng.choice(len(space), min(_LANDMARKS, len(space)), replace=False)]
    squares = squared_distances(space, some)
    width = max(float(np.median(squares)), 1e-12)
    dense = np.exp(-squares / width).mean(1)
    return (dense - dense.min()) / max(float(np.ptp(dense)), 1e-12)


def _remembered(seen: np.ndarray, found: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(np.concatenate([seen, found]))[:_LANDMARKS]


def _typical(space: np.ndarray, rng: np.random.Generator) -> float:
    """A typical distance between two points."""
    some = space[rng.choice(len(space), min(_SAMPLED, len(space)), replace=False)]
    apart = squared_distances(some, some)[np.triu_indices(len(some), 1)]
    return max(float(np.sqrt(np.median(apart))), 1e-9) if len(apart) else 1.0


def _nearest(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Distance of each point to the nearest of the others; a limited number of them at once."""
    step = max(1, _DISTANCES_AT_ONCE // max(1, len(others)))
    found = [squared_distances(points[at : at + step], others).min(1) for at in range(0, len(points), step)]
    return np.sqrt(np.concatenate(found))
