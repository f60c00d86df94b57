"""Several models learn from labels, and one network learns from what they agree on.

Labels are few, so models differ in what they think of programs they have not seen: by chance, and the more if they are
of different kinds, which read different things. Their mean is usually better than any of them. Scores need no
measuring: the network that is kept learns the mean of all on programs that were never run, as many as one likes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from tcl_iree.learning.cost_model import CostModel, Epoch, FitOptions
from tcl_iree.learning.distillation.losses import squares
from tcl_iree.learning.drawn import drawn_programs
from tcl_iree.learning.groups import Group, fingerprint
from tcl_iree.learning.network import Network
from tcl_iree.learning.neural import NeuralModel, TrainingRecipe


class CouncilModel(NeuralModel):
    """A network that learns from what several models agree on.

    Args:
        teachers: each makes a model that learns from labels; without any the network learns from labels itself.
    """

    def __init__(
        self,
        network: Network,
        recipe: TrainingRecipe | None = None,
        teachers: Sequence[Callable[[], CostModel]] = (),
    ) -> None:
        super().__init__(network, recipe)
        self._teachers = tuple(teachers)

    @property
    def config(self) -> dict[str, Any]:
        """With the number of models that learn from labels."""
        return super().config | {"teachers": max(1, len(self._teachers))}

    @property
    def trainings(self) -> int:
        """See `CostModel`."""
        return len(self._teachers) + 1

    def fit(self, training: Sequence[Group], validation: Sequence[Group], options: FitOptions) -> list[Epoch]:
        """See `CostModel`; the epochs are those of the network that is kept."""
        if not self._teachers:
            return super().fit(training, validation, options)
        council = [self._taught(number, training, validation, options) for number in range(len(self._teachers))]
        listed = [*training, *(drawn for group in training if len(drawn := drawn_programs(group)) > 1)]
        lists = [(self.encode(group), agreement(council, group)) for group in listed]
        torch.manual_seed(options.seed)
        student = NeuralModel(self.network.untrained(), self.recipe, squares)
        kinds = "+".join(model.name for model in council)
        settings = (kinds, self.config, self.recipe, options.seed, options.epochs, len(training), len(lists))
        run = fingerprint(settings, [*training, *validation])
        student.network.prepare([arrays for arrays, _ in lists])
        history = student.go_on(lists, validation, options.keeping("student"), run, keep_start=False)
        self.load_state(student.state())
        return history

    def _taught(
        self, number: int, training: Sequence[Group], validation: Sequence[Group], options: FitOptions
    ) -> CostModel:
        made = self._teachers[number]()
        seed = options.seed * len(self._teachers) + number  # another for every teacher of every seed
        made.fit(training, validation, replace(options.keeping(f"teacher-{number}"), seed=seed))
        return made


def agreement(council: Sequence[CostModel], group: Group) -> np.ndarray:
    """The mean of several models' scores of a group's candidates, each brought to the same spread first."""
    scores = np.stack([model.score(group) for model in council])
    spread = scores.std(1, keepdims=True)
    return ((scores - scores.mean(1, keepdims=True)) / np.maximum(spread, 1e-6)).mean(0).astype(np.float32)
