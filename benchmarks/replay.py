"""The tuner's guided search over a pool of measured programs: nothing is built or run, everything is charged."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import numpy as np

from benchmarks.curve import Curve
from benchmarks.replay_pool import Recorded, ReplayPool
from tcl_iree.learning.corrected import CorrectedModel
from tcl_iree.learning.cost_model import CostModel
from tcl_iree.learning.groups import Group
from tcl_iree.search import Guided, Outcome, Strategy
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workflows.search_rounds import BATCH


class PoolSpace(Space):
    """A space that has the programs of a pool and no others to sample."""

    def __init__(self, pool: ReplayPool) -> None:
        super().__init__(pool.group.workload, pool.group.target)
        self._schedules = tuple(pool.programs)

    def samples(self, rng: Random) -> Iterator[Schedule]:
        """All of them in a random order."""
        yield from rng.sample(self._schedules, len(self._schedules))


class PooledGuided(Guided):
    """Guided search that chooses among all programs of a pool that it has not had yet.

    The tuner lets candidates evolve and measures what it thinks best among them; a pool can be thought about as a whole.
    What the tuner proposes without asking the model are strangers, and children of the best measured: here strangers of
    the pool, and whatever in the pool is most like such a child.
    """

    def __init__(self, space: PoolSpace, seed: int, model: CostModel) -> None:
        super().__init__(space, seed, model)
        # In another order for each seed: it decides between equals.
        self._order = list(space.samples(Random(f"{seed} {space.workload.key} order")))
        self._members = set(self._order)

    def candidates(self) -> list[Schedule]:
        """See `Guided`."""
        return [schedule for schedule in self._order if schedule not in self._proposed]

    def propose(self) -> Schedule | None:
        """See `Evolutionary`."""
        made = super().propose()
        return made if made is None or made in self._members else self._like(made)

    def _like(self, schedule: Schedule) -> Schedule | None:
        """The program that has most decisions in common with a schedule; a stranger where none of its family is left."""
        left = [entry for entry in self.candidates() if entry.family == schedule.family]
        wanted = set(schedule.decisions)
        return max(left, key=lambda entry: len(wanted & set(entry.decisions)), default=None) or self.sample()


class UpdatedGuided(PooledGuided):
    """The same, where the model's own weights learn from every batch too; the tuner leaves that to the correction."""

    def __init__(self, space: PoolSpace, seed: int, model: CostModel, default_seconds: float) -> None:
        super().__init__(space, seed, model)
        self._learner, self._default = model, default_seconds
        self._told: list[tuple[Schedule, float | None]] = []
        model.update([])  # what it learned of another workload is forgotten

    def ask(self, count: int) -> list[Schedule]:
        """See `Strategy`."""
        if self._told:
            self._learn()
        return super().ask(count)

    def tell(self, schedule: Schedule, outcome: Outcome) -> None:
        """See `Strategy`."""
        super().tell(schedule, outcome)
        self._told.append((schedule, outcome.ratio))

    def _learn(self) -> None:
        workload, target = self.space.workload, self.space.target
        seconds = [self._default, *(self._default / ratio if ratio else np.nan for _, ratio in self._told)]
        candidates = (None, *(schedule for schedule, _ in self._told))
        self._learner.update([Group(workload, target, target.key, candidates, np.array(seconds))])
        self._model = CorrectedModel(self._learner, workload, target)
        for schedule, ratio in self._told:
            self._model.tell(schedule, ratio)


@dataclass(frozen=True)
class Replay:
    """A search as it would have gone.

    Attributes:
        curve: in seconds that building and running were recorded to take, and the search itself took now.
        thinking: seconds of the search itself, part of the above.
    """

    curve: Curve
    thinking: float


def replay(pool: ReplayPool, strategy: Strategy, trials: int) -> Replay:
    """Let a strategy search a pool, in the tuner's batches, one after the other.

    As in the tuner, code that was timed before is built, but not run again.
    """
    charged = thinking = 0.0
    seen: set[str] = set()
    steps: list[tuple[float, float | None]] = []
    while len(steps) < trials:
        started = time.perf_counter()
        asked = strategy.ask(min(BATCH, trials - len(steps)))
        thinking += time.perf_counter() - started
        if not asked:
            break
        for schedule in asked:
            known = pool.programs[schedule]
            charged += _charge(known, seen)
            steps.append((charged + thinking, pool.default_seconds / known.ratio if known.ratio else None))
        started = time.perf_counter()
        for schedule in asked:
            known = pool.programs[schedule]
            strategy.tell(schedule, Outcome(known.ratio, known.artifact))
        thinking += time.perf_counter() - started
    return Replay(Curve.of(steps, pool.default_seconds), thinking)


def _charge(known: Recorded, seen: set[str]) -> float:
    """Seconds of one trial; `seen` has the code whose time is known, and gets more."""
    run = 0.0 if known.artifact in seen else known.run_seconds
    if known.artifact and known.reused:
        seen.add(known.artifact)
    return known.build_seconds + run
