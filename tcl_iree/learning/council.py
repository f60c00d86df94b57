"""Several networks learn from labels, and one learns from what they agree on.

Labels are few, so networks that differ in nothing but chance differ in what they think of programs they have not seen;
their mean is better than they are on average. Scores need no measuring: the one that is kept learns the mean of all on
programs that were never run, as many as one likes, and becomes about as good as all of them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from random import Random
from typing import Any

import numpy as np
import torch

from tcl_iree.learning.cost_model import Epoch, FitOptions
from tcl_iree.learning.distillation.losses import squares
from tcl_iree.learning.groups import Group, fingerprint
from tcl_iree.learning.network import Network
from tcl_iree.learning.neural import NeuralModel, TrainingRecipe
from tcl_iree.transform_dialect.space import Space

# Programs of each workload that are thought about and not measured.
_DRAWN = 32


class CouncilModel(NeuralModel):
    """A network that learns from several others of its kind.

    Args:
        teachers: so many learn from labels; with one, that one is kept as it is.
    """

    def __init__(self, network: Network, recipe: TrainingRecipe | None = None, teachers: int = 4) -> None:
        super().__init__(network, recipe)
        self._teachers = teachers

    @property
    def config(self) -> dict[str, Any]:
        """With the number of teachers."""
        return super().config | {"teachers": self._teachers}

    @property
    def trainings(self) -> int:
        """See `CostModel`."""
        return self._teachers + 1 if self._teachers > 1 else 1

    def fit(self, training: Sequence[Group], validation: Sequence[Group], options: FitOptions) -> list[Epoch]:
        """See `CostModel`; the epochs are those of the network that is kept."""
        if self._teachers == 1:
            return super().fit(training, validation, options)
        council = [self._teacher(number, training, validation, options) for number in range(self._teachers)]
        listed = [*training, *(drawn for group in training if len(drawn := drawn_programs(group)) > 1)]
        lists = [(self.encode(group), agreement(council, group)) for group in listed]
        torch.manual_seed(options.seed)
        student = NeuralModel(self.network.untrained(), self.recipe, squares)
        settings = (self.name, self.config, self.recipe, options.seed, options.epochs, len(training), len(lists))
        run = fingerprint(settings, [*training, *validation])
        student.network.prepare([arrays for arrays, _ in lists])
        history = student.go_on(lists, validation, options.keeping("student"), run)
        self.load_state(student.state())
        return history

    def _teacher(
        self, number: int, training: Sequence[Group], validation: Sequence[Group], options: FitOptions
    ) -> NeuralModel:
        made = NeuralModel(self.network.untrained(), self.recipe)
        seed = options.seed * self._teachers + number  # another for every teacher of every seed
        made.fit(training, validation, replace(options.keeping(f"teacher-{number}"), seed=seed))
        return made


def drawn_programs(group: Group) -> Group:
    """Random schedules of a group's workload whose times nobody knows; the group remembers them."""

    def draw() -> Group:
        space = Space(group.workload, group.target)
        found = islice(space.samples(Random(f"{group.workload.key} drawn")), _DRAWN)
        return Group.unmeasured(group.workload, group.target, list(found))

    return group.once(drawn_programs, draw)


def agreement(council: Sequence[NeuralModel], group: Group) -> np.ndarray:
    """The mean of several models' scores of a group's candidates, each brought to the same spread first."""
    scores = np.stack([model.score(group) for model in council])
    spread = scores.std(1, keepdims=True)
    return ((scores - scores.mean(1, keepdims=True)) / np.maximum(spread, 1e-6)).mean(0).astype(np.float32)
