"""Random search: the yardstick of every other strategy."""

from __future__ import annotations

from tcl_iree.search.strategy import Outcome, Strategy
from tcl_iree.transform_dialect.schedule import Schedule


class RandomSearch(Strategy):
    """Samples the space and learns nothing."""

    def propose(self) -> Schedule | None:
        """The next sample."""
        return self.sample()

    def tell(self, schedule: Schedule, outcome: Outcome) -> None:
        """Random search has no use for outcomes."""
