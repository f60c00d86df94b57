"""What every search strategy offers: ask it for schedules, tell it what came of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from random import Random

from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.space import Space

_ATTEMPTS = 100


@dataclass(frozen=True)
class Outcome:
    """What came of a schedule.

    Attributes:
        ratio: time of IREE's default over its time; None if it failed.
        artifact: hash of its code; two schedules may give the same.
    """

    ratio: float | None
    artifact: str | None = None


class Strategy(ABC):
    """Proposes schedules of one workload, none of them twice.

    The same space, seed and outcomes give the same proposals: a run that was interrupted is resumed by asking again
    and telling what is known already.
    """

    def __init__(self, space: Space, seed: int) -> None:
        self.space = space
        self.rng = Random(f"{seed} {space.workload.key}")
        self._samples = space.samples(Random(f"{seed} {space.workload.key} samples"))
        self._proposed: set[Schedule] = set()
        self._sampled: dict[Schedule, None] = {}
        self._predictions: dict[Schedule, float] = {}

    def ask(self, count: int) -> list[Schedule]:
        """Up to `count` new schedules; fewer once the space seems used up."""
        asked: list[Schedule] = []
        misses = 0
        while len(asked) < count and misses < _ATTEMPTS:
            schedule = self.propose()
            if schedule is None or schedule in self._proposed:
                misses += 1
                continue
            misses = 0
            self._proposed.add(schedule)
            asked.append(schedule)
        # A small space is soon drawn to its end, and most of what was drawn only thought about.
        rest = self.passed_over()[: count - len(asked)] if len(asked) < count else []
        self._proposed |= set(rest)
        return [*asked, *rest]

    @abstractmethod
    def propose(self) -> Schedule | None:
        """One schedule, perhaps one proposed before; None if there is nothing to propose."""

    @abstractmethod
    def tell(self, schedule: Schedule, outcome: Outcome) -> None:
        """Take note of what came of a schedule."""

    def sample(self) -> Schedule | None:
        """The next random schedule; None once the space seems used up."""
        drawn = next(self._samples, None)
        if drawn:
            self._sampled[drawn] = None
        return drawn

    def passed_over(self) -> list[Schedule]:
        """What was drawn and never proposed, in the order of drawing."""
        return [schedule for schedule in self._sampled if schedule not in self._proposed]

    def predicted(self, schedule: Schedule) -> float | None:
        """How much faster than IREE's default a schedule was thought to be when it was proposed.

        None where nobody was asked.
        """
        return self._predictions.get(schedule)

    def origin(self, schedule: Schedule) -> str:
        """How a proposed schedule was come by: `random` or `evolved`."""
        return "random" if schedule in self._sampled else "evolved"
