"""Strategies: what they propose, and that a seed fixes it. Scores are made up: no kernel is needed to judge a search."""

from __future__ import annotations

import pytest

from tcl_iree.errors import ScheduleError
from tcl_iree.search import STRATEGIES, Outcome, Strategy, make_strategy
from tcl_iree.target import Target
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workload.model import Workload

# Scripts are only written here, never run: a fixed class gives the same space on every machine.
TARGET = Target.parse("cpu:avx512,threads=1")


@pytest.fixture(scope="module")
def space(matmul: Workload) -> Space:
    made = Space(matmul, TARGET)
    assert made.families
    return made


def score(schedule: Schedule, best: Schedule) -> float:
    """The share of decisions that are as in `best`."""
    if schedule.family != best.family:
        return 0.1
    return 0.1 + sum(a == b for a, b in zip(schedule.decisions, best.decisions, strict=True)) / len(best.decisions)


def play(strategy: Strategy, best: Schedule, rounds: int, batch: int = 16) -> list[Schedule]:
    asked: list[Schedule] = []
    for _ in range(rounds):
        for schedule in (batch_of := strategy.ask(batch)):
            strategy.tell(schedule, Outcome(score(schedule, best), str(schedule)))
        asked += batch_of
    return asked


def hidden_best(space: Space) -> Schedule:
    (best,) = make_strategy("random", space, 99).ask(1)
    return best


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_same_seed_gives_the_same_proposals(name: str, space: Space) -> None:
    best = hidden_best(space)
    first, second, other = (play(make_strategy(name, space, seed), best, 5) for seed in (7, 7, 8))
    assert first == second
    assert first != other


@pytest.mark.parametrize("name", STRATEGIES)
def test_no_schedule_is_proposed_twice_and_all_are_legal(name: str, space: Space) -> None:
    asked = play(make_strategy(name, space, 1), hidden_best(space), 6)
    assert len(asked) == len(set(asked)) == 96
    for schedule in asked[::12]:
        space.script(schedule)  # raises if it is illegal


def test_evolution_finds_better_schedules_than_chance(space: Space) -> None:
    wins = 0
    for seed in range(5):
        best = make_strategy("random", space, 100 + seed).ask(1)[0]
        evolved, random = (
            max(score(schedule, best) for schedule in play(make_strategy(name, space, seed), best, 8))
            for name in ("evolutionary", "random")
        )
        wins += evolved > random
        assert evolved >= random - 1e-9
    assert wins >= 2


def test_equal_code_counts_once_among_parents(space: Space) -> None:
    strategy = make_strategy("evolutionary", space, 0)
    asked = strategy.ask(30)
    for index, schedule in enumerate(asked):
        strategy.tell(schedule, Outcome(1.0 + index, "the same code"))
    assert strategy._parents() == [asked[-1]]


def test_failures_are_never_parents(space: Space) -> None:
    strategy = make_strategy("evolutionary", space, 0)
    asked = strategy.ask(30)
    for schedule in asked:
        strategy.tell(schedule, Outcome(None))
    assert strategy._parents() == []
    assert set(strategy.ask(8)).isdisjoint(asked)


def test_a_space_that_is_used_up_gives_fewer(matmul: Workload) -> None:
    empty = Space(matmul, TARGET)
    empty.families = ()
    assert make_strategy("random", empty, 0).ask(4) == []
    assert make_strategy("evolutionary", empty, 0).ask(4) == []


def test_an_unknown_strategy_is_one_clear_error(space: Space) -> None:
    with pytest.raises(ScheduleError, match="random, evolutionary"):
        make_strategy("annealing", space, 0)
