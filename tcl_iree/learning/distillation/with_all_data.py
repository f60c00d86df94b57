"""Learners that keep every measured program: joint training, which others are measured by, and MTL-TLP."""

from __future__ import annotations

from typing import ClassVar

from tcl_iree.errors import LearningError
from tcl_iree.learning.cost_model import CostModel, FitOptions
from tcl_iree.learning.distillation.compress import BASE
from tcl_iree.learning.distillation.learner import Learned, Learner, Phase, Size, bytes_of
from tcl_iree.learning.distillation.lesson import Lesson
from tcl_iree.learning.distillation.options import Distillation
from tcl_iree.learning.groups import Group, candidates_in
from tcl_iree.learning.network import Network
from tcl_iree.learning.neural import NeuralModel
from tcl_iree.learning.tlp import MtlTlpNetwork


class JointTraining(Learner):
    """Train from scratch on the labels of all platforms so far: what could be had if nothing were thrown away."""

    name: ClassVar[str] = "joint"

    def __init__(self, options: Distillation | None = None, start: NeuralModel | None = None) -> None:
        super().__init__(options, start)
        self._labelled: list[Group] = []
        self._validation: list[Group] = []
        self._model: NeuralModel | None = None

    def learn(self, lesson: Lesson, fit: FitOptions, phase: Phase = lambda text: None) -> Learned:
        """Train on everything."""
        self._labelled += lesson.labelled
        self._validation += lesson.validation
        if self._start and self._model is None:
            self._model = self._start
            return Learned(lesson.platform, lesson.labels, ())
        phase("training on all platforms")
        self._model = self._untrained(self._labelled)
        history = self._model.fit(self._labelled, self._validation, fit.keeping(BASE))
        return Learned(lesson.platform, lesson.labels, tuple(history))

    def model(self, platform: str) -> CostModel:
        """One for all."""
        if self._model is None:
            raise LearningError("nothing was learned yet: give a first platform's measured programs")
        return self._model

    @property
    def size(self) -> Size:
        """The model, and all programs."""
        state = self._model.state() if self._model else {}
        return Size(sum(array.size for array in state.values()), bytes_of(state), candidates_in(self._labelled))


class MtlTlp(JointTraining):
    """Multi-task learning as published with TLP: one body, one head for each kind of platform, everyone's data."""

    name: ClassVar[str] = "mtl-tlp"
    network: ClassVar[type[Network]] = MtlTlpNetwork
