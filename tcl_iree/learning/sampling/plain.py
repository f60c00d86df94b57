"""Samplers that compare no programs: by chance, and by uncertainty alone."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tcl_iree.learning.sampling.pool import Pool
from tcl_iree.learning.sampling.sampler import Sampler, by_turns, parts, shares


class RandomSampler(Sampler):
    """By chance, the same share of every workload."""

    name: ClassVar[str] = "random"

    def _choose(
        self, pool: Pool, count: int, free: np.ndarray, taken: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        members = parts(pool, free, rng)
        given = shares(members, pool, taken, count, rng)
        return by_turns([part[:share] for part, share in zip(members, given, strict=True)])


class UncertaintySampler(Sampler):
    """Whatever the model is least sure of."""

    name: ClassVar[str] = "uncertainty"

    def _choose(
        self, pool: Pool, count: int, free: np.ndarray, taken: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        order = np.lexsort((rng.random(len(free)), -pool.uncertainty[free]))
        return free[order[:count]]
