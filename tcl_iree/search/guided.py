"""Evolutionary search guided by a cost model: thousands of candidates are thought about, a few are measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tcl_iree.learning.corrected import CorrectedModel, Opinion
from tcl_iree.learning.cost_model import CostModel
from tcl_iree.learning.sampling.greedy import RduSampler
from tcl_iree.learning.sampling.pool import Pool
from tcl_iree.search.evolutionary import Evolutionary
from tcl_iree.search.strategy import Outcome
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.space import Space

# Candidates thought about in each round: strangers first, then generations of children of those thought best.
_STRANGERS_FIRST, _STRANGERS_LATER = 1024, 256
_GENERATIONS, _CHILDREN = 2, 384
_PARENTS = 64
_CROSSED = 0.3
# Of a measured batch: so many are the best by opinion, so many are as if there were no model, in case it misleads
# (strangers and children of the best measured), and RDU picks the rest among the promising.
_BEST, _UNGUIDED = 0.5, 0.125
_PROMISING = 6
_TEACHING = RduSampler(representativeness=0.5, diversity=0.5, uncertainty=0.5)


class Guided(Evolutionary):
    """Children of the best, measured or thought so; the model's opinion, corrected by what was measured, picks.

    Args:
        model: ranks candidates before they are measured.
        seeds: schedules to think about from the start, such as the best of similar workloads.
    """

    def __init__(self, space: Space, seed: int, model: CostModel, seeds: Sequence[Schedule] = ()) -> None:
        super().__init__(space, seed, population=0)
        self._model = CorrectedModel(model, space.workload, space.target)
        self._seeds = list(seeds)
        self._rounds = 0

    def ask(self, count: int) -> list[Schedule]:
        """See `Strategy`."""
        thought = self.candidates()
        asked: list[Schedule] = []
        if thought:
            opinion = self._model.opinion(thought)
            chosen = self._batch(opinion, count - math.ceil(_UNGUIDED * count))
            asked = [thought[position] for position in chosen]
            self._predictions |= zip(asked, np.exp(opinion.mean[chosen]).tolist(), strict=True)
        self._proposed |= set(asked)
        self._rounds += 1
        return [*asked, *super().ask(count - len(asked))]

    def best(self, count: int) -> list[Schedule]:
        """The schedules thought best, for when nothing is to be measured."""
        thought = self.candidates()
        if not thought:
            return []
        order = np.argsort(-self._model.opinion(thought).mean, kind="stable")
        return [thought[position] for position in order[:count]]

    def tell(self, schedule: Schedule, outcome: Outcome) -> None:
        """See `Strategy`."""
        super().tell(schedule, outcome)
        self._model.tell(schedule, outcome.ratio)

    def candidates(self) -> list[Schedule]:
        """Schedules to choose from, none proposed before: they evolve under the model's eyes."""
        found = dict.fromkeys(self._first())
        ranked = list(found)
        for _ in range(_GENERATIONS):
            if not ranked:
                break
            means = self._model.opinion(ranked).mean
            ranked = [ranked[position] for position in np.argsort(-means, kind="stable")]
            children = dict.fromkeys(self._children(ranked[:_PARENTS]))
            found |= children
            ranked = list(dict.fromkeys([*ranked[:_PARENTS], *children]))
        return [schedule for schedule in found if schedule not in self._proposed]

    def _first(self) -> Iterator[Schedule]:
        yield from self._seeds
        measured = self._parents()
        yield from measured
        yield from self._children(measured)
        for _ in range(_STRANGERS_LATER if self._rounds else _STRANGERS_FIRST):
            sample = self.sample()
            if sample is None:
                yield from self.passed_over()
                return
            yield sample

    def _children(self, parents: Sequence[Schedule]) -> Iterator[Schedule]:
        """Mutants and crosses, of the parents in front more often."""
        if not parents:
            return
        weights = [1.0 / (rank + 4) for rank in range(len(parents))]
        for _ in range(_CHILDREN):
            one, other = self.rng.choices(parents, weights, k=2)
            if one != other and self.rng.random() < _CROSSED:
                yield self.space.cross(one, other, self.rng)
            else:
                yield self.space.mutate(one, self.rng)

    def _batch(self, opinion: Opinion, count: int) -> list[int]:
        """Positions to measure: the best by opinion, and those of the promising that teach most."""
        order = np.argsort(-opinion.mean, kind="stable")
        best = order[: math.ceil(_BEST * count)]
        promising = order[: _PROMISING * count]
        places = np.concatenate([opinion.embeddings[promising], opinion.measured]).astype(np.float32)
        # What is measured has no doubt left; the best are on their way.
        doubt = np.concatenate([opinion.error[promising], np.zeros(len(opinion.measured))])
        scores = np.concatenate([opinion.mean[promising], np.zeros(len(opinion.measured))])
        pool = Pool(places, np.zeros(len(places), np.int64), scores, doubt)
        taken = np.concatenate([np.arange(len(best)), len(promising) + np.arange(len(opinion.measured))])
        seed = self.rng.getrandbits(32)
        others = _TEACHING.choose(pool, min(count, len(promising)) - len(best), taken, seed)
        return [*best.tolist(), *promising[others].tolist()]
