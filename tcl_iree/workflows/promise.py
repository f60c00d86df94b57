"""What the dispatches of a model may take once they are searched in full, judged after a first look at some of them.

A look is at the largest dispatches only. The others stand at IREE's default, which is poor for some layouts and says
nothing of what schedules make of them. So each dispatch that can be searched but had no trial is thought to come near
the rates that others of the model have reached already, if its default is not faster. Those that had trials are taken
as they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Of the dispatches of a model so many are slower than the rate that others are measured by.
_REACHED = 0.8
# A search in full is thought to come within this factor of it.
_NEAR = 1.5


@dataclass(frozen=True)
class Stand:
    """How one dispatch stands.

    Attributes:
        times: it runs in one inference.
        seconds: of one run with the best found so far, IREE's default included.
        flops, bytes: of one run, at least.
        open: whether there are schedules to try and none was tried.
    """

    times: int
    seconds: float
    flops: float
    bytes: float
    open: bool


@dataclass(frozen=True)
class Rates:
    """Operations and bytes a second that dispatches have reached."""

    flops: float
    bytes: float

    @staticmethod
    def of(stands: Sequence[Stand]) -> Rates:
        """The rates of a model's dispatches, in all the layouts that were looked at."""
        timed = [stand for stand in stands if stand.seconds > 0.0]
        timed = [stand for stand in timed if not stand.open] or timed
        rates = [
            float(np.quantile([of(stand) / stand.seconds for stand in timed], _REACHED)) if timed else 0.0
            for of in (lambda stand: stand.flops, lambda stand: stand.bytes)
        ]
        return Rates(*rates)

    def promise(self, stands: Sequence[Stand]) -> float:
        """Seconds of one inference that these dispatches may take in the end."""
        return sum(stand.times * self._seconds(stand) for stand in stands)

    def _seconds(self, stand: Stand) -> float:
        if not stand.open or not self.flops or not self.bytes:
            return stand.seconds
        return min(stand.seconds, _NEAR * max(stand.flops / self.flops, stand.bytes / self.bytes))
