"""One model a platform, each trained from scratch: nothing is carried over, nothing is forgotten, and it grows."""

from __future__ import annotations

import copy
from typing import ClassVar

from tcl_iree.errors import LearningError
from tcl_iree.learning.cost_model import CostModel, FitOptions
from tcl_iree.learning.distillation.compress import BASE
from tcl_iree.learning.distillation.learner import Learned, Learner, Phase, Size, bytes_of
from tcl_iree.learning.distillation.lesson import Lesson
from tcl_iree.learning.distillation.options import Distillation
from tcl_iree.learning.neural import NeuralModel


class FromScratch(Learner):
    """See the module."""

    name: ClassVar[str] = "from-scratch"

    def __init__(self, options: Distillation | None = None, start: NeuralModel | None = None) -> None:
        super().__init__(options, start)
        self._models: dict[str, NeuralModel] = {}

    def learn(self, lesson: Lesson, fit: FitOptions, phase: Phase = lambda text: None) -> Learned:
        """Train on this platform's labels alone."""
        if self._start and not self._models:
            self._models[lesson.platform] = NeuralModel(copy.deepcopy(self._start.network), self._start.recipe)
            return Learned(lesson.platform, lesson.labels, ())
        phase("training from scratch")
        model = self._untrained(lesson.labelled)
        history = model.fit(lesson.labelled, lesson.validation, fit.keeping(BASE))
        self._models[lesson.platform] = model
        return Learned(lesson.platform, lesson.labels, tuple(history))

    def model(self, platform: str) -> CostModel:
        """The platform's own; the latest for one that was not learned."""
        if not self._models:
            raise LearningError("nothing was learned yet: give a first platform's measured programs")
        return self._models.get(platform) or list(self._models.values())[-1]

    @property
    def size(self) -> Size:
        """Of all models."""
        states = [model.state() for model in self._models.values()]
        return Size(sum(array.size for state in states for array in state.values()), bytes_of(*states))
