"""Strategies: what they propose, and that a seed fixes it. Scores are made up: no kernel is needed to judge a search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tcl_iree.errors import ScheduleError
from tcl_iree.features.steps import Candidate
from tcl_iree.learning.corrected import CorrectedModel
from tcl_iree.learning.floors import RandomModel
from tcl_iree.report.progress import silent
from tcl_iree.search import GUIDED, STRATEGIES, Guided, Outcome, Strategy, TaskScheduler
from tcl_iree.search import make_strategy as make_strategy_of
from tcl_iree.target import Target
from tcl_iree.transform_dialect.families import family_of
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workflows.search_rounds import search_rounds
from tcl_iree.workflows.tune_options import TuneOptions
from tcl_iree.workload.model import Workload

# Scripts are only written here, never run: a fixed class gives the same space on every machine.
TARGET = Target.parse("cpu:avx512,threads=1")


@pytest.fixture(scope="module")
def space(matmul: Workload) -> Space:
    made = Space(matmul, TARGET)
    assert made.families
    return made


def test_a_family_is_left_out_only_where_others_serve(space: Space) -> None:
    names = {family.name for family in space.families}
    assert {family.name for family in Space(space.workload, TARGET, without="config").families} == names - {"config"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tcl_iree.transform_dialect.space.FAMILIES", (family_of("config"),))
        assert [family.name for family in Space(space.workload, TARGET, without="config").families] == ["config"]


class Plain(RandomModel):
    """Guesses; schedules are near where their decisions are."""

    def embed(self, workload: Workload, target: Target, candidates: Sequence[Candidate]) -> np.ndarray:
        return np.array([numbers(entry) for entry in candidates if isinstance(entry, Schedule)])


class Knowing(Plain):
    """Scores by how near a schedule is to a hidden one, or, turned around, by how far."""

    def __init__(self, best: Schedule, sign: float = 1.0) -> None:
        super().__init__()
        self.best, self.sign, self.asked = best, sign, 0

    def predict(self, workload: Workload, target: Target, candidates: Sequence[Candidate]) -> np.ndarray:
        self.asked += len(candidates)
        return np.array([self.sign * score(entry, self.best) for entry in candidates if isinstance(entry, Schedule)])


def numbers(schedule: Schedule) -> list[float]:
    """Decisions on a scale, in a fixed number of columns."""
    values = [float(np.log2(1 + sum(map(ord, str(value))) % 97)) for _, value in schedule.decisions]
    return [*values, *[0.0] * 24][:24]


def make_strategy(name: str, space: Space, seed: int) -> Strategy:
    return make_strategy_of(name, space, seed, Plain() if name in GUIDED else None)


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


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_space_that_is_used_up_gives_fewer(name: str, matmul: Workload) -> None:
    empty = Space(matmul, TARGET)
    empty.families = ()
    assert make_strategy(name, empty, 0).ask(4) == []


@pytest.mark.parametrize("name", GUIDED)
def test_a_model_that_knows_finds_the_best_at_once(name: str, space: Space) -> None:
    best = hidden_best(space)
    model = Knowing(best)
    first = make_strategy_of(name, space, 3, model).ask(16)
    blind = make_strategy("random", space, 3).ask(16)
    assert max(score(schedule, best) for schedule in first) > max(score(schedule, best) for schedule in blind)
    assert model.asked > 500


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_guided_strategy_tells_what_it_predicted_and_others_nothing(name: str, space: Space) -> None:
    best = hidden_best(space)
    strategy = make_strategy_of(name, space, 3, Knowing(best) if name in GUIDED else None)
    asked = strategy.ask(16)
    told = {schedule: strategy.predicted(schedule) for schedule in asked}
    if name not in GUIDED:
        assert set(told.values()) == {None}
        return
    known = [(value, score(schedule, best)) for schedule, value in told.items() if value is not None]
    assert len(known) >= 12, "all but those proposed as if there were no model"
    assert [real for _, real in sorted(known)] == sorted(real for _, real in known), "it knows the order"


def test_measurements_set_a_misleading_model_right(space: Space) -> None:
    best = hidden_best(space)
    asked = play(Guided(space, 0, Knowing(best, sign=-1.0)), best, 10)
    scores = [score(schedule, best) for schedule in asked]
    assert np.mean(scores[-48:]) > np.mean(scores[:16]) + 0.2


def test_the_schedules_thought_best_are_handed_over_in_order(space: Space) -> None:
    best = hidden_best(space)
    found = Guided(space, 0, Knowing(best)).best(8)
    scores = [score(schedule, best) for schedule in found]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 1.0


def test_seeds_are_thought_of_from_the_start(space: Space) -> None:
    best = hidden_best(space)
    assert Guided(space, 0, Knowing(best), seeds=[best]).ask(4)[0] == best


def test_a_measurement_moves_the_opinion_of_its_likes(space: Space) -> None:
    one, *others = make_strategy("random", space, 5).ask(64)
    model = CorrectedModel(Plain(), space.workload, space.target)
    before = model.opinion([one, *others])
    for schedule in others[:20]:
        model.tell(schedule, 1.0)
    model.tell(one, 8.0)
    after = model.opinion([one, *others])
    assert after.mean[0] > np.quantile(after.mean, 0.9)
    assert after.error[0] < before.error[0]
    near = np.argsort(((after.embeddings - after.embeddings[0]) ** 2).sum(1))
    assert after.mean[near[1:4]].mean() > after.mean[near[-4:]].mean()
    model.tell(others[20], None)
    assert model.opinion([others[20]]).mean[0] < after.mean[21]


def test_opinions_of_two_calls_can_be_compared(space: Space) -> None:
    asked = make_strategy("random", space, 5).ask(32)
    model = CorrectedModel(Plain(), space.workload, space.target)
    for schedule in asked[:8]:
        model.tell(schedule, 2.0)
    whole, part = model.opinion(asked), model.opinion(asked[20:])
    np.testing.assert_allclose(part.mean, whole.mean[20:], rtol=1e-6)


def test_every_task_gets_a_round_and_then_those_that_gain_most() -> None:
    scheduler = TaskScheduler([(1, 1.0), (10, 1.0), (1, 5.0)])
    order = []
    for _ in range(3):
        position = scheduler.next()
        assert position is not None
        order.append(position)
        scheduler.tell(position, scheduler.tasks[position].seconds)
    assert order == [1, 2, 0]
    assert scheduler.next() == 1
    scheduler.tell(1, 0.5)  # it gains: it goes on
    assert scheduler.next() == 1
    for _ in range(4):  # it gains no more: others come
        scheduler.tell(1, None)
    assert scheduler.next() == 2
    scheduler.tell(2, None, more=False)
    assert scheduler.next() in (0, 1)


def test_rounds_end_when_nothing_is_left_to_gain() -> None:
    scheduler = TaskScheduler([(1, 1.0), (1, 1e-6)], enough=1e-3)
    rounds = 0
    while (position := scheduler.next()) is not None:
        scheduler.tell(position, None)
        rounds += 1
    assert 3 < rounds < 20
    assert scheduler.tasks[1].rounds == 1


class Standing:
    """A search in which each trial is as fast as the best before."""

    def __init__(self, default: float, best: float) -> None:
        self.dispatch = SimpleNamespace(occurrences=1, workload=SimpleNamespace(label="made up"))
        self.default_seconds, self.asked, self.exhausted, self._best = default, 0, False, best

    def found_ratio(self) -> float:
        return self._best

    def step(self, count: int) -> Iterator[SimpleNamespace]:
        for _ in range(count):
            self.asked += 1
            yield SimpleNamespace(ratio=self._best)


def test_what_a_first_look_took_is_part_of_the_time_limit() -> None:
    search: Any = Standing(1.0, 1.0)
    (told,) = search_rounds([search], TuneOptions(trials=64, time_limit=30.0), silent, spent=30.0)
    assert "time limit of 30 s" in told
    assert search.asked == 1


@pytest.mark.parametrize("name", STRATEGIES)
def test_small_spaces_are_searched_to_their_end(name: str, space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn to its end in the first round, most of it only thought about."""
    every = list(dict.fromkeys(islice(space.samples(Random(0)), 90)))
    monkeypatch.setattr(Space, "samples", lambda self, rng: iter(every))
    monkeypatch.setattr(Space, "mutate", lambda self, schedule, rng: rng.choice(every))
    monkeypatch.setattr(Space, "cross", lambda self, one, other, rng: rng.choice(every))
    strategy = make_strategy(name, space, 0)
    asked: list[Schedule] = []
    while found := strategy.ask(16):
        assert len(found) == min(16, len(every) - len(asked))
        asked += found
        for schedule in found:
            strategy.tell(schedule, Outcome(1.0, str(schedule)))
    assert sorted(asked, key=str) == sorted(every, key=str)


def test_what_was_found_before_is_no_gain_of_a_round() -> None:
    near, far = Standing(1.0, 1.0), Standing(8.0, 16.0)  # half a second left: the second gains nothing by its rounds
    searches: list[Any] = [near, far]
    search_rounds(searches, TuneOptions(trials=16, time_limit=30.0), silent)
    assert near.asked >= far.asked


def test_an_unknown_strategy_and_one_without_a_model_are_clear_errors(space: Space) -> None:
    with pytest.raises(ScheduleError, match="guided, annealing, evolutionary, random"):
        make_strategy_of("climbing", space, 0)
    with pytest.raises(ScheduleError, match="needs a cost model"):
        make_strategy_of("guided", space, 0)
