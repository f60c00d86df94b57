"""The method of this project: progress in a column, compress into the base. Its size never grows."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import torch

from tcl_iree.errors import LearningError
from tcl_iree.features.prefix import target_kind
from tcl_iree.features.vocabulary import KINDS
from tcl_iree.learning.cost_model import CostModel, Epoch, FitOptions
from tcl_iree.learning.distillation.compress import BASE, compress
from tcl_iree.learning.distillation.consolidation import Consolidation, consolidate
from tcl_iree.learning.distillation.learner import Learned, Learner, Phase, Size, bytes_of
from tcl_iree.learning.distillation.lesson import Lesson
from tcl_iree.learning.distillation.options import Distillation
from tcl_iree.learning.distillation.progress import UNCHANGED, progress
from tcl_iree.learning.mamba import MambaNetwork
from tcl_iree.learning.neural import NeuralModel
from tcl_iree.target import Target


class OneModel(Learner):
    """A learner whose knowledge is one Mamba model, the base, whatever platforms come."""

    def __init__(self, options: Distillation | None = None, start: NeuralModel | None = None) -> None:
        super().__init__(options, start)
        self.base: NeuralModel | None = None

    def model(self, platform: str) -> CostModel:
        """The one there is."""
        if self.base is None:
            raise LearningError("nothing was learned yet: give a first platform's measured programs")
        return self.base

    @property
    def size(self) -> Size:
        """Of the base."""
        state = self.base.state() if self.base else {}
        return Size(sum(array.size for array in state.values()), bytes_of(state))

    def _begin(self, lesson: Lesson, fit: FitOptions, phase: Phase) -> Learned:
        """The first platform: trained from scratch, as a single model would be."""
        if self._start:
            self.base = NeuralModel(copy.deepcopy(self._start.network), self._start.recipe)
            return Learned(lesson.platform, lesson.labels, ())
        phase("training on the first platform")
        self.base = self._untrained(lesson.labelled)
        history = self.base.fit(lesson.labelled, lesson.validation, fit.keeping(BASE))
        return Learned(lesson.platform, lesson.labels, tuple(history))


class ContinualDistillation(OneModel):
    """A Knowledge Base, and a Hardware Active Column that lasts for one platform."""

    name: ClassVar[str] = "continual-distillation"

    def __init__(self, options: Distillation | None = None, start: NeuralModel | None = None) -> None:
        super().__init__(options, start)
        self.held: Consolidation | None = None
        self._targets: list[Target] = []

    @classmethod
    def resumed(
        cls,
        base: NeuralModel,
        held: Consolidation | None,
        options: Distillation,
        targets: Sequence[Target] = (),
    ) -> ContinualDistillation:
        """With what earlier platforms left.

        Args:
            targets: theirs.

        Raises:
            LearningError: the base is no Mamba model.
        """
        if not isinstance(base.network, MambaNetwork):
            raise LearningError(f"only a mamba model can be carried to another platform, not {base.name}")
        made = cls(options, base)
        made.base, made.held, made._targets = base, held, list(targets)
        return made

    def learn(self, lesson: Lesson, fit: FitOptions, phase: Phase = lambda text: None) -> Learned:
        """Train a column, distil it into the base, forget the column."""
        if self.base is None:
            learned = self._begin(lesson, fit, phase)
        else:
            self.base = self._acquainted(self.base, lesson.target)
            teacher = progress(self.base, lesson, self.options, fit, phase)
            history: list[Epoch] = []
            if teacher.kind != UNCHANGED:
                phase("distilling into the base")
                self.base, history = compress(
                    self.base, teacher.model, lesson, self.held, self.options, fit, self._targets
                )
            learned = Learned(lesson.platform, lesson.labels, tuple(history), teacher.kind, teacher.notes)
        assert self.base
        if self.options.ewc:
            phase("seeing which weights matter")
            self.held = consolidate(self.held, self.base, lesson.programs, self.options, fit.seed)
        if lesson.target not in self._targets:
            self._targets.append(lesson.target)
        return learned

    def _acquainted(self, base: NeuralModel, target: Target) -> NeuralModel:
        """The base with the name of a kind of target it has never met standing for the one it met last."""
        met = [target_kind(earlier) for earlier in self._targets]
        name = target_kind(target)
        if not met or name in met:
            return base
        network = copy.deepcopy(base.network)
        assert isinstance(network, MambaNetwork)
        with torch.no_grad():
            network.kind.weight[KINDS.index(name)] = network.kind.weight[KINDS.index(met[-1])]
        return NeuralModel(network, base.recipe)

    @property
    def size(self) -> Size:
        """The base, where it was, and how much each weight matters; no column and no data."""
        found = super().size
        held = bytes_of(self.held.anchor, self.held.fisher) if self.held else 0
        return replace(found, bytes=found.bytes + held)


class PlainDistillation(ContinualDistillation):
    """The same with nothing that holds earlier knowledge."""

    name: ClassVar[str] = "plain-distillation"

    def __init__(self, options: Distillation | None = None, start: NeuralModel | None = None) -> None:
        super().__init__(replace(options or Distillation(), ewc=0.0, recall=0.0), start)
