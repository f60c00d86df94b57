"""Strategies that choose which schedules of a workload to measure; one file each."""

from __future__ import annotations

from collections.abc import Callable

from tcl_iree.errors import ScheduleError
from tcl_iree.search.evolutionary import Evolutionary
from tcl_iree.search.random_search import RandomSearch
from tcl_iree.search.strategy import Outcome, Strategy
from tcl_iree.transform_dialect.space import Space

STRATEGIES: dict[str, type[Strategy]] = {"random": RandomSearch, "evolutionary": Evolutionary}

# A strategy's class, or whatever else makes one for a space with a seed.
StrategyMaker = Callable[[Space, int], Strategy]

__all__ = ["STRATEGIES", "Evolutionary", "Outcome", "Strategy", "StrategyMaker", "make_strategy"]


def make_strategy(name: str, space: Space, seed: int) -> Strategy:
    """The strategy of this name over a space.

    Raises:
        ScheduleError: there is none.
    """
    if name not in STRATEGIES:
        raise ScheduleError(f"there is no search strategy {name!r}; known: {', '.join(STRATEGIES)}")
    return STRATEGIES[name](space, seed)
