"""Evolutionary search by measurement: children of the fastest, and some strangers."""

from __future__ import annotations

from tcl_iree.search.strategy import Outcome, Strategy
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.space import Space

# A first generation large enough to meet every family, parents few enough to matter.
_POPULATION = 24
_PARENTS = 8
_STRANGERS = 0.2
_CROSSED = 0.4


class Evolutionary(Strategy):
    """A random population first, then mutants and children of the best measured.

    Args:
        population: so many random schedules come first.
    """

    def __init__(self, space: Space, seed: int, population: int = _POPULATION) -> None:
        super().__init__(space, seed)
        self._population = population
        self._alive: dict[str, tuple[float, Schedule]] = {}

    def propose(self) -> Schedule | None:
        """A stranger, a mutant or a child of two parents."""
        parents = self._parents()
        if len(self._proposed) < self._population or not parents or self.rng.random() < _STRANGERS:
            sample = self.sample()
            if sample or not parents:
                return sample
        one, other = (self._pick(parents) for _ in range(2))
        if one != other and self.rng.random() < _CROSSED:
            return self.space.cross(one, other, self.rng)
        return self.space.mutate(one, self.rng)

    def tell(self, schedule: Schedule, outcome: Outcome) -> None:
        """Keep one schedule for every distinct code that ran, at the best ratio seen."""
        if outcome.ratio is None:
            return
        code = outcome.artifact or str(schedule)
        if code not in self._alive or outcome.ratio > self._alive[code][0]:
            self._alive[code] = (outcome.ratio, schedule)

    def _parents(self) -> list[Schedule]:
        ranked = sorted(self._alive.values(), key=lambda entry: (-entry[0], str(entry[1])))
        return [schedule for _, schedule in ranked[:_PARENTS]]

    def _pick(self, parents: list[Schedule]) -> Schedule:
        """The better a parent's rank, the more often it is picked."""
        return self.rng.choices(parents, [1.0 / (rank + 1) for rank in range(len(parents))])[0]
