"""Strategies that choose which schedules of a workload to measure, one file each; which workload is next."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcl_iree.errors import ScheduleError
from tcl_iree.learning.cost_model import CostModel
from tcl_iree.search.annealing import Annealing
from tcl_iree.search.evolutionary import Evolutionary
from tcl_iree.search.guided import Guided
from tcl_iree.search.random_search import RandomSearch
from tcl_iree.search.strategy import Outcome, Strategy
from tcl_iree.search.task_scheduler import TaskScheduler
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.space import Space

UNGUIDED: dict[str, Callable[[Space, int], Strategy]] = {"evolutionary": Evolutionary, "random": RandomSearch}
GUIDED: dict[str, Callable[[Space, int, CostModel, Sequence[Schedule]], Strategy]] = {
    "guided": Guided,
    "annealing": Annealing,
}
STRATEGIES = (*GUIDED, *UNGUIDED)

# Whatever makes a strategy for a space with a seed.
StrategyMaker = Callable[[Space, int], Strategy]

__all__ = ["GUIDED", "STRATEGIES", "Guided", "Outcome", "Strategy", "StrategyMaker", "TaskScheduler", "make_strategy"]


def make_strategy(
    name: str, space: Space, seed: int, model: CostModel | None = None, seeds: Sequence[Schedule] = ()
) -> Strategy:
    """The strategy of this name over a space.

    Args:
        model: what guided strategies go by.
        seeds: schedules that guided strategies start from, such as the best of similar workloads.

    Raises:
        ScheduleError: there is none, or it needs a cost model.
    """
    if name in UNGUIDED:
        return UNGUIDED[name](space, seed)
    if name not in GUIDED:
        raise ScheduleError(f"there is no search strategy {name!r}; known: {', '.join(STRATEGIES)}")
    if model is None:
        raise ScheduleError(f"the search strategy {name} needs a cost model; without one, use {' or '.join(UNGUIDED)}")
    return GUIDED[name](space, seed, model, seeds)
