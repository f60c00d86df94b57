"""What every sampler does: choose so many programs of a pool, given those that were chosen before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from tcl_iree.errors import OptionError
from tcl_iree.learning.sampling.pool import Pool

# Programs that are compared with one another; larger workloads are cut into parts of this size, so that the work
# grows with the pool and not with its square.
_PART = 2048


class Sampler(ABC):
    """Chooses programs to measure; the same seed chooses the same."""

    name: ClassVar[str]

    def choose(self, pool: Pool, count: int, taken: np.ndarray | None = None, seed: int = 0) -> np.ndarray:
        """Positions of programs, the most wanted first; all that are left if there are fewer than `count`.

        Args:
            taken: positions that were measured, or are being measured: they are not chosen again, and nothing like
                them needs to be.

        Raises:
            OptionError: a count below 0, or positions that the pool does not have.
        """
        taken = np.unique(np.asarray([] if taken is None else taken, np.int64))
        if count < 0:
            raise OptionError(f"cannot choose {count} programs")
        if len(taken) and (taken[0] < 0 or taken[-1] >= len(pool)):
            raise OptionError(f"positions {taken[0]} to {taken[-1]} were taken of a pool of {len(pool)} programs")
        free = np.ones(len(pool), bool)
        free[taken] = False
        positions = np.flatnonzero(free)
        rng = np.random.default_rng(seed)
        if count == 0 or len(positions) == 0:
            return np.zeros(0, np.int64)
        chosen = self._choose(pool, min(count, len(positions)), positions, taken, rng)
        return np.asarray(chosen, np.int64)

    @abstractmethod
    def _choose(
        self, pool: Pool, count: int, free: np.ndarray, taken: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Choose `count` of the positions in `free`, which are at least as many."""


def parts(pool: Pool, free: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Positions of each workload, those of large ones in several random parts."""
    shuffled = rng.permutation(free)
    order = shuffled[np.argsort(pool.workloads[shuffled], kind="stable")]
    ends = np.flatnonzero(np.diff(pool.workloads[order])) + 1
    return [piece for members in np.split(order, ends) for piece in _pieces(members)]


def _pieces(members: np.ndarray) -> Iterator[np.ndarray]:
    yield from np.array_split(members, -(-len(members) // _PART))


def shares(
    members: Sequence[np.ndarray],
    pool: Pool,
    taken: np.ndarray,
    count: int,
    rng: np.random.Generator,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """How many of each part are chosen, so that every workload has its share once they are added to what is taken.

    A workload's share goes by its size, what is taken included. No part gives more than it has.

    Args:
        members: as `parts` makes them.
        weights: of each part, beside its size; all alike if None.
    """
    sizes = np.array([len(part) for part in members])
    workloads, place = np.unique([pool.workloads[part[0]] for part in members], return_inverse=True)
    have = np.bincount(pool.workloads[taken], minlength=int(pool.workloads.max()) + 1)[workloads]
    free = np.bincount(place, sizes)
    wanted = free + have
    if weights is not None:
        wanted = wanted * np.bincount(place, sizes * weights) / free
    lacking = np.maximum((count + have.sum()) * wanted / wanted.sum() - have, 0.0)
    return _within(allot((lacking / free)[place] * sizes, count, rng), sizes)


def allot(claims: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Share `count` out in proportion to claims, rounded by chance: a claim of a half gets one in half of the cases."""
    order = rng.permutation(len(claims))
    ends = np.cumsum(claims[order], dtype=np.float64)
    marks = np.floor(np.append(ends[:-1] * (count / ends[-1]), count) + rng.random()).astype(np.int64)
    given = np.empty(len(claims), np.int64)
    given[order] = np.diff(marks, prepend=0)
    return given


def _within(wanted: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """No more of a part than it has; what is too much goes to those with room, evenly."""
    given = np.minimum(wanted, sizes)
    while over := int(wanted.sum() - given.sum()):
        roomy = np.flatnonzero(given < sizes)
        more = np.minimum(sizes[roomy] - given[roomy], -(-over // len(roomy)))
        given[roomy] += np.diff(np.minimum(np.cumsum(more), over), prepend=0)
    return given


def by_turns(chosen: list[np.ndarray]) -> np.ndarray:
    """The first of each list, then the second of each, and so on: cut off anywhere, none is left out."""
    turn = np.concatenate([np.arange(len(members)) / max(1, len(members)) for members in chosen])
    return np.concatenate(chosen)[np.argsort(turn, kind="stable")]
