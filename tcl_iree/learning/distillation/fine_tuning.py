"""Go on with one model's weights on the new platform's labels: plainly, with weights held, or with replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from tcl_iree.learning.cost_model import FitOptions
from tcl_iree.learning.distillation.compress import BASE, going_on
from tcl_iree.learning.distillation.consolidation import Consolidation, consolidate
from tcl_iree.learning.distillation.continual import OneModel
from tcl_iree.learning.distillation.learner import Learned, Phase, Size, bytes_of, paced
from tcl_iree.learning.distillation.lesson import Lesson
from tcl_iree.learning.distillation.options import Distillation
from tcl_iree.learning.groups import Group, candidates_in, fingerprint
from tcl_iree.learning.neural import NeuralModel, Penalty
from tcl_iree.learning.sampling.programs import ProgramList


class FineTuning(OneModel):
    """The usual way to carry a network over; nothing holds what it knew."""

    name: ClassVar[str] = "fine-tuning"

    def learn(self, lesson: Lesson, fit: FitOptions, phase: Phase = lambda text: None) -> Learned:
        """Train all weights on."""
        if self.base is None:
            learned = self._begin(lesson, fit, phase)
        else:
            phase("fine-tuning")
            groups = [*lesson.labelled, *self._more()]
            learner = NeuralModel(self.base.network, going_on(paced(self.base.recipe, groups), self.options.rate))
            settings = (self.name, self.options, fit.seed, fit.epochs, self.base.digest)
            run = fingerprint(settings, [*groups, *lesson.validation])
            penalty = self._penalty()
            history = learner.go_on(learner.lists(groups), lesson.validation, fit.keeping(BASE), run, penalty)
            self.base = NeuralModel(learner.network, self.base.recipe)
            learned = Learned(lesson.platform, lesson.labels, tuple(history))
        self._remember(lesson, fit)
        return learned

    def _more(self) -> Sequence[Group]:
        """Programs of earlier platforms."""
        return ()

    def _penalty(self) -> Penalty | None:
        return None

    def _remember(self, lesson: Lesson, fit: FitOptions) -> None:
        """Keep what the next platforms' learning needs of this one."""


class HeldFineTuning(FineTuning):
    """Fine-tuning under elastic weight consolidation: what the column adds is seen beside this."""

    name: ClassVar[str] = "ewc"

    def __init__(self, options: Distillation | None = None, start: NeuralModel | None = None) -> None:
        super().__init__(options, start)
        self._held: Consolidation | None = None

    def _penalty(self) -> Penalty | None:
        return self._held.penalty(self.options.ewc, self.options.keep) if self._held else None

    def _remember(self, lesson: Lesson, fit: FitOptions) -> None:
        assert self.base
        self._held = consolidate(self._held, self.base, lesson.programs, self.options, fit.seed)

    @property
    def size(self) -> Size:
        """The model, where it was, and how much each weight matters."""
        found = super().size
        held = bytes_of(self._held.anchor, self._held.fisher) if self._held else 0
        return replace(found, bytes=found.bytes + held)


class Replay(FineTuning):
    """Fine-tuning on the new labels and on a few programs of every earlier platform."""

    name: ClassVar[str] = "replay"

    def __init__(self, options: Distillation | None = None, start: NeuralModel | None = None) -> None:
        super().__init__(options, start)
        self._buffer: list[Group] = []

    def _more(self) -> Sequence[Group]:
        return self._buffer

    def _remember(self, lesson: Lesson, fit: FitOptions) -> None:
        self._buffer += ProgramList.of(lesson.labelled).by_chance(self.options.buffer, fit.seed)

    @property
    def size(self) -> Size:
        """The model; the programs are counted beside it."""
        return replace(super().size, programs=candidates_in(self._buffer))
