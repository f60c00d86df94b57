"""AutoTVM's search: simulated annealing on a cost model, then a pick that weighs scores against variety."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tcl_iree.learning.corrected import CorrectedModel
from tcl_iree.learning.cost_model import CostModel
from tcl_iree.search.strategy import Outcome, Strategy
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.space import Space

# AutoTVM walks 128 chains for 500 steps; ours rate fewer candidates, in about the time a batch takes to measure.
_CHAINS, _STEPS = 192, 16
_PLAN = 4
_CHANCE = 0.05
# What a choice not yet in the batch is worth beside a standard deviation of scores.
_VARIETY = 0.5


class Annealing(Strategy):
    """Chains of neighbours that climb by the model's opinion; the temperature falls from 1 to 0.

    Args:
        model: ranks candidates before they are measured; corrected by what is measured.
        seeds: schedules that chains start from, such as the best of similar workloads.
    """

    def __init__(self, space: Space, seed: int, model: CostModel, seeds: Sequence[Schedule] = ()) -> None:
        super().__init__(space, seed)
        self._model = CorrectedModel(model, space.workload, space.target)
        self._ends = list(seeds)

    def ask(self, count: int) -> list[Schedule]:
        """See `Strategy`."""
        planned = self._walk(_PLAN * count)
        asked = self._varied(planned, count - math.ceil(_CHANCE * count))
        scores = dict(planned)
        self._predictions |= {schedule: math.exp(scores[schedule]) for schedule in asked}
        self._proposed |= set(asked)
        return [*asked, *super().ask(count - len(asked))]

    def propose(self) -> Schedule | None:
        """A stranger."""
        return self.sample()

    def tell(self, schedule: Schedule, outcome: Outcome) -> None:
        """See `Strategy`."""
        self._model.tell(schedule, outcome.ratio)

    def _walk(self, wanted: int) -> list[tuple[Schedule, float]]:
        """The best candidates met by all chains, with their scores; chains go on where the last round ended."""
        at = [*self._ends]
        while len(at) < _CHAINS and (drawn := self.sample()):
            at.append(drawn)
        if not at:
            return []
        scores = self._scores(at)
        met = dict(zip(at, scores, strict=True))
        for step in range(_STEPS):
            heat = max(1.0 - step / _STEPS, 1e-6)
            near = [self.space.mutate(schedule, self.rng) for schedule in at]
            values = self._scores(near)
            met |= zip(near, values, strict=True)
            for chain, (schedule, value) in enumerate(zip(near, values, strict=True)):
                if value >= scores[chain] or self.rng.random() < math.exp((value - scores[chain]) / heat):
                    at[chain], scores[chain] = schedule, value
        self._ends = at
        fresh = [(schedule, score) for schedule, score in met.items() if schedule not in self._proposed]
        return sorted(fresh, key=lambda entry: (-entry[1], str(entry[0])))[:wanted]

    def _scores(self, schedules: Sequence[Schedule]) -> list[float]:
        opinion = self._model.opinion(schedules)
        return [float(mean) for mean in opinion.mean]

    @staticmethod
    def _varied(planned: list[tuple[Schedule, float]], count: int) -> list[Schedule]:
        """One after the other, by score and by how many of its choices the batch does not have yet."""
        scale = max(float(np.std([score for _, score in planned])), 1e-9) if planned else 1.0
        left = dict(planned)
        taken: list[Schedule] = []
        seen: set[tuple[object, ...]] = set()

        def worth(schedule: Schedule) -> float:
            new = sum((schedule.family, *pair) not in seen for pair in schedule.decisions)
            return left[schedule] / scale + _VARIETY * new / max(1, len(schedule.decisions))

        while left and len(taken) < count:
            best = max(left, key=worth)
            taken.append(best)
            seen.update((best.family, *pair) for pair in best.decisions)
            del left[best]
        return taken
