"""No search: schedules that were chosen beforehand."""

from __future__ import annotations

from collections.abc import Sequence

from tcl_iree.search.strategy import Outcome, Strategy
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.space import Space


class Given(Strategy):
    """Proposes a list of random schedules in its order.

    Args:
        schedules: each once.
    """

    def __init__(self, space: Space, seed: int, schedules: Sequence[Schedule]) -> None:
        super().__init__(space, seed)
        self._left = iter(schedules)

    def propose(self) -> Schedule | None:
        """The next one."""
        return next(self._left, None)

    def tell(self, schedule: Schedule, outcome: Outcome) -> None:
        """Nothing depends on outcomes."""

    def origin(self, schedule: Schedule) -> str:
        """Whoever chose them knew no times."""
        return "random"
