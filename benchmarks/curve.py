"""How a search went: the best latency it knew after each trial, and what can be read off that."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any


@dataclass(frozen=True)
class Reach:
    """When a search got as far as it should.

    Attributes:
        trials, seconds: it took; the full budget's where it never got there.
        reached: whether it got there.
    """

    trials: int
    seconds: float
    reached: bool


@dataclass(frozen=True)
class Curve:
    """The best latency so far after each trial.

    Attributes:
        seconds: since the beginning, at the end of each trial.
        latency: of the best so far; infinite while nothing worked.
        start: latency before the first trial; infinite where there is nothing to fall back on.
    """

    seconds: tuple[float, ...]
    latency: tuple[float, ...]
    start: float = math.inf

    @staticmethod
    def of(trials: Iterable[tuple[float, float | None]], start: float = math.inf) -> Curve:
        """From the end and the latency of each trial, None where it failed."""
        held = list(trials)
        best = accumulate((math.inf if value is None else value for _, value in held), min, initial=start)
        return Curve(tuple(at for at, _ in held), tuple(best)[1:], start)

    @property
    def final(self) -> float:
        """The best of all."""
        return self.latency[-1] if self.latency else self.start

    def after_trials(self, count: int) -> float:
        """The best latency after so many trials, or after all there were."""
        return self.latency[:count][-1] if self.latency[:count] else self.start

    def after_seconds(self, seconds: float) -> float:
        """The best latency known at a moment."""
        return self.after_trials(bisect_right(self.seconds, seconds))

    def reach(self, latency: float, budget: int) -> Reach:
        """When the best latency was at most this.

        A search that never got there counts as its full budget; if it ended before that, the seconds of the trials it
        left out are thought to be as many as those of the trials it had.

        Args:
            budget: trials it might have had.
        """
        found = next((index for index, best in enumerate(self.latency) if best <= latency), None)
        if found is not None:
            return Reach(found + 1, self.seconds[found], True)
        if not self.seconds:
            return Reach(budget, math.inf, False)
        return Reach(budget, self.seconds[-1] * max(1.0, budget / len(self.seconds)), False)

    def first(self, count: int) -> Curve:
        """The same search, ended after so many trials."""
        return Curve(self.seconds[:count], self.latency[:count], self.start)

    def scaled_to(self, latency: float) -> Curve:
        """The same search with its final latency measured anew: all others keep their ratio to that."""
        factor = latency / self.final
        return Curve(self.seconds, tuple(factor * value for value in self.latency), factor * self.start)

    def improvements(self) -> list[list[float]]:
        """Second and latency of each step down: all that a figure needs."""
        before = (self.start, *self.latency)
        return [[at, best] for at, best, last in zip(self.seconds, self.latency, before, strict=False) if best < last]

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        return {"start": self.start, "seconds": list(self.seconds), "latency": list(self.latency)}

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Curve:
        """What `plain` gave."""
        return Curve(tuple(plain["seconds"]), tuple(plain["latency"]), plain["start"])
