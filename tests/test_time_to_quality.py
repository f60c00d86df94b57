"""Time to quality: what is read off a search's curve, and searches that are replayed on measured pools."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from made_up import PLATFORM, made_up_groups
from test_database import trial
from test_search import Knowing, score

from benchmarks.curve import Curve, Reach
from benchmarks.kept import file_name, kept
from benchmarks.quality_figures import Task, bar, figures
from benchmarks.quality_live import common_weights
from benchmarks.quality_report import losing
from benchmarks.replay import PooledGuided, PoolSpace, UpdatedGuided, replay
from benchmarks.replay_pool import Recorded, ReplayPool
from benchmarks.tuner_run import TunerRun
from tcl_iree.database import ScheduleRecord
from tcl_iree.learning.boosted import BoostedModel
from tcl_iree.learning.groups import Group
from tcl_iree.search import make_strategy
from tcl_iree.search.strategy import Strategy
from tcl_iree.transform_dialect.schedule import Schedule

CURVE = Curve.of([(1.0, None), (2.0, 8.0), (4.0, 9.0), (5.0, 3.0), (9.0, 5.0)])
BUILD, RUN = 0.5, 2.0


def test_a_curve_is_the_best_so_far() -> None:
    assert CURVE.latency == (math.inf, 8.0, 8.0, 3.0, 3.0)
    assert CURVE.final == 3.0
    assert [CURVE.after_trials(count) for count in (0, 1, 3, 4, 99)] == [math.inf, math.inf, 8.0, 3.0, 3.0]
    assert [CURVE.after_seconds(at) for at in (0.5, 2.0, 4.9, 5.0, 99.0)] == [math.inf, 8.0, 8.0, 3.0, 3.0]
    assert CURVE.first(3).final == 8.0
    assert CURVE.improvements() == [[2.0, 8.0], [5.0, 3.0]]
    assert Curve.from_plain(CURVE.plain()) == CURVE
    assert Curve.of([], start=7.0).final == Curve.of([(1.0, 9.0)], start=7.0).final == 7.0


def test_a_search_reaches_a_latency_with_the_trial_that_first_has_it() -> None:
    assert CURVE.reach(8.0, 5) == Reach(2, 2.0, True)
    assert CURVE.reach(3.05, 5) == Reach(4, 5.0, True)
    assert Curve.of([(1.0, 9.0)], start=7.0).reach(7.5, 5) == Reach(1, 1.0, True)  # no search takes no time at all


def test_a_search_that_never_gets_there_counts_as_its_full_budget() -> None:
    assert CURVE.reach(2.9, 5) == Reach(5, 9.0, False)
    assert CURVE.reach(2.9, 50) == Reach(50, 90.0, False)  # it gave up after a tenth of its budget
    assert Curve.of([]).reach(1.0, 5) == Reach(5, math.inf, False)


def test_a_curve_keeps_its_ratios_when_its_end_is_timed_anew() -> None:
    scaled = CURVE.scaled_to(6.0)
    assert scaled.seconds == CURVE.seconds
    assert scaled.latency[1:] == (16.0, 16.0, 6.0, 6.0)


def test_gains_are_ratios_to_the_yardstick() -> None:
    def straight(reaches_at: int, end: float = 1.0) -> Curve:
        return Curve.of([(2.0 * count, end if count >= reaches_at else 4.0) for count in range(1, 11)])

    tasks = {"a": Task("A", 10, 4), "b": Task("B", 10, 4)}
    curves = {
        "slow": {"a": [straight(8), straight(8)], "b": [straight(4), straight(6)]},
        "fast": {"a": [straight(2), straight(2)], "b": [straight(5), straight(5)]},
        "lame": {"a": [straight(2, end=1.5)] * 2, "b": [straight(5)] * 2},
    }
    assert bar(curves["slow"]["a"], 0.02) == pytest.approx(1.02)
    found = figures(curves, tasks, "slow", 0.02)
    assert {found["slow"][f"gain_in_{what}"]["ratio"] for what in ("trials", "seconds", "early")} == {1.0}
    fast = found["fast"]
    assert (fast["trials"], fast["seconds"], fast["reached"]) == (3.5, 7.0, 1.0)
    assert fast["gain_in_trials"]["ratio"] == pytest.approx(math.sqrt(8 / 2 * 5 / 5))
    assert fast["gain_in_trials"]["low"] <= fast["gain_in_trials"]["ratio"] <= fast["gain_in_trials"]["high"]
    # After four trials: 1 against 4 in task a; 4 against 1 and 4 in task b.
    assert fast["gain_in_early"]["ratio"] == pytest.approx(math.sqrt(4 / 1 * 2.5 / 4))
    assert found["lame"]["reached"] == 0.5
    assert found["lame"]["tasks"]["a"]["trials"] == 10
    assert losing(fast["tasks"], found["slow"]["tasks"]) == [("b", "early", pytest.approx(2.5 / 4))]


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Group:
    return made_up_groups(tmp_path_factory.mktemp("models"), PLATFORM, programs=60)[0]


@pytest.fixture(scope="module")
def pool(group: Group) -> ReplayPool:
    ratios = group.seconds[0] / group.seconds
    programs = {
        schedule: Recorded(None if np.isnan(ratio) else ratio, f"code {number}", BUILD, RUN, True)
        for number, (schedule, ratio) in enumerate(zip(group.candidates, ratios, strict=True))
        if isinstance(schedule, Schedule)
    }
    return ReplayPool(group, programs)


class Watched(Strategy):
    """A strategy whose proposals are noted."""

    def __init__(self, inner: Strategy) -> None:
        self.inner, self.asked = inner, list[Schedule]()

    def ask(self, count: int) -> list[Schedule]:
        made = self.inner.ask(count)
        self.asked += made
        return made

    def propose(self) -> Schedule | None:
        return self.inner.propose()

    def tell(self, schedule: Schedule, outcome: object) -> None:
        self.inner.tell(schedule, outcome)  # type: ignore[arg-type]


def best_of(pool: ReplayPool) -> Schedule:
    return max(pool.programs, key=lambda schedule: pool.programs[schedule].ratio or 0.0)


def test_a_replay_stays_in_its_pool_and_gets_all_of_it(pool: ReplayPool) -> None:
    strategy = Watched(PooledGuided(PoolSpace(pool), 0, BoostedModel()))
    curve = replay(pool, strategy, 1000).curve
    assert len(strategy.asked) == len(set(strategy.asked)) == len(curve.latency)
    assert set(strategy.asked) == set(pool.programs)
    assert curve.final == pytest.approx(pool.best_seconds)


def test_a_seed_fixes_a_replay(pool: ReplayPool) -> None:
    curves = [replay(pool, PooledGuided(PoolSpace(pool), seed, BoostedModel()), 32).curve for seed in (3, 3, 4)]
    assert curves[0].latency == curves[1].latency
    assert curves[0].latency != curves[2].latency


def test_a_model_that_knows_finds_the_best_in_the_first_batch(pool: ReplayPool) -> None:
    best = best_of(pool)
    known = replay(pool, PooledGuided(PoolSpace(pool), 0, Knowing(best)), 16).curve
    assert known.latency[0] == pytest.approx(pool.best_seconds)
    # One that is wrong about everything still has strangers, and is corrected.
    misled = PooledGuided(PoolSpace(pool), 0, Knowing(best, sign=-1.0))
    assert score(misled.ask(1)[0], best) < 1.1
    assert replay(pool, PooledGuided(PoolSpace(pool), 0, Knowing(best, -1.0)), 58).curve.final < known.start


def test_trials_are_charged_what_they_took_and_equal_code_runs_once(pool: ReplayPool) -> None:
    done = replay(pool, make_strategy("random", PoolSpace(pool), 0), 20)
    assert done.curve.seconds[-1] - done.thinking == pytest.approx(20 * (BUILD + RUN), abs=0.1)
    assert done.curve.start == pool.default_seconds
    same = {schedule: Recorded(1.0, "the same", BUILD, RUN, True) for schedule in pool.programs}
    done = replay(ReplayPool(pool.group, same), make_strategy("random", PoolSpace(pool), 0), 20)
    assert done.curve.seconds[-1] - done.thinking == pytest.approx(20 * BUILD + RUN, abs=0.1)
    unsteady = {schedule: Recorded(1.0, "the same", BUILD, RUN, False) for schedule in pool.programs}
    done = replay(ReplayPool(pool.group, unsteady), make_strategy("random", PoolSpace(pool), 0), 20)
    assert done.curve.seconds[-1] - done.thinking == pytest.approx(20 * (BUILD + RUN), abs=0.1)


def test_weights_that_learn_on_the_way_start_anew_with_each_pool(pool: ReplayPool) -> None:
    pytest.importorskip("xgboost")
    model = BoostedModel()

    def updated() -> tuple[float, ...]:
        return replay(pool, UpdatedGuided(PoolSpace(pool), 0, model, pool.default_seconds), 48).curve.latency

    first, again = updated(), updated()
    assert first == again
    assert model.predict(pool.group.workload, pool.group.target, list(pool.programs)).std() > 0


def test_a_pool_is_made_of_trials(group: Group) -> None:
    schedules = [entry for entry in group.candidates if isinstance(entry, Schedule)]
    records = [ScheduleRecord(schedule.family, schedule.plain, None) for schedule in schedules]
    trials = [
        trial(str(number), schedule=record.sha, artifact=f"code {number}", build_seconds=BUILD, run_seconds=RUN)
        for number, record in enumerate(records)
    ]
    # The second has the code of the first, whose time was reused; the seventh failed, after some time.
    trials[1] = trial(
        "1", schedule=records[1].sha, artifact="code 0", build_seconds=0.25, run_seconds=0.0, measured=False
    )
    trials[6] = trial(
        "6", schedule=records[6].sha, status="crash", artifact="code 6", build_seconds=BUILD, run_seconds=7.0,
        measured=False, ratio=None, calm=None, stopped_early=None,
    )  # fmt: skip
    pool = ReplayPool.of(group, trials, {record.sha: record for record in records})
    assert list(pool.programs) == schedules
    assert pool.programs[schedules[0]].ratio == pytest.approx(group.seconds[0] / group.seconds[1])
    assert pool.programs[schedules[1]] == Recorded(
        pytest.approx(group.seconds[0] / group.seconds[2]), "code 0", 0.25, RUN, True
    )
    assert pool.programs[schedules[6]] == Recorded(None, "code 6", BUILD, 7.0, False)


def test_dispatches_of_a_run_of_the_tuner_add_up() -> None:
    trials = ((1.0, "a", 0.5), (2.0, "b", 2.0), (3.0, "elsewhere", 9.0), (4.0, "a", 3.0), (5.0, "b", None))
    run = TunerRun(trials, {"a": 6.0, "b": 4.0})
    assert run.curve() == Curve((1.0, 2.0, 3.0, 4.0, 5.0), (10.0, 8.0, 8.0, 4.0, 4.0), 10.0)
    assert run.curve({"a": 3.0, "b": 4.0}).final == 3.0
    assert run.dispatches == 3
    assert TunerRun.from_plain(run.plain()) == run
    assert common_weights([run, TunerRun((), {"a": 8.0, "b": 4.0, "c": 1.0})]) == {"a": 7.0, "b": 4.0, "c": 1.0}


def test_what_is_kept_is_made_once(tmp_path: Path) -> None:
    made = []

    def make() -> list[float]:
        made.append(1)
        return [1.0, math.inf]

    path = tmp_path / "there" / f"{file_name('a b/c, 3x3')}.json"
    assert kept(path, make) == kept(path, make) == [1.0, math.inf]
    assert len(made) == 1
    assert path.name == "a_b_c__3x3.json"
