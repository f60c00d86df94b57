"""Progress: learn a new platform in a column beside the base, or without the base where that does better.

Where neither does better than the base as it is, the labels have nothing to teach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcl_iree.learning.cost_model import Epoch, FitOptions
from tcl_iree.learning.distillation.column import ColumnNetwork
from tcl_iree.learning.distillation.learner import Phase, paced
from tcl_iree.learning.distillation.lesson import Lesson
from tcl_iree.learning.distillation.options import Distillation
from tcl_iree.learning.mamba import MambaNetwork
from tcl_iree.learning.neural import NeuralModel

COLUMN, SCRATCH, UNCHANGED = "column", "scratch", "base"


@dataclass(frozen=True)
class Teacher:
    """A model of the new platform alone, for the base to learn from.

    Attributes:
        kind: `column`; `scratch` where earlier knowledge did harm; `base` where the labels did.
        scores: share of pairs in order on validation, by kind.
    """

    model: NeuralModel
    kind: str
    scores: dict[str, float]

    @property
    def notes(self) -> tuple[str, ...]:
        """That the base or the labels were of no use here, if so."""
        if self.kind == COLUMN:
            return ()
        if self.kind == UNCHANGED:
            return (
                "the labels teach nothing new: validation scores "
                f"{self.scores[COLUMN]:.3f} with them beside the base, {self.scores[SCRATCH]:.3f} with them alone, and "
                f"{self.scores[UNCHANGED]:.3f} without them; the base stays as it is",
            )
        return (
            "what earlier platforms taught does harm here: beside the base, validation scores "
            f"{self.scores[COLUMN]:.3f}, without it {self.scores[SCRATCH]:.3f}; a model trained from scratch teaches",
        )


def progress(
    base: NeuralModel, lesson: Lesson, options: Distillation, fit: FitOptions, phase: Phase = lambda text: None
) -> Teacher:
    """Train the column; the base is left alone."""
    network = base.network
    assert isinstance(network, MambaNetwork)
    recipe = paced(base.recipe, lesson.labelled)
    phase("training the column beside the base")
    column = NeuralModel(ColumnNetwork(network, options, base.digest), recipe)
    scores = {COLUMN: _best(column.fit(lesson.labelled, lesson.validation, fit.keeping(COLUMN)))}
    if options.gate:
        phase("training without the base, to compare")
        alone = NeuralModel(MambaNetwork(**network.config), recipe)
        scores[SCRATCH] = _best(alone.fit(lesson.labelled, lesson.validation, fit.keeping(SCRATCH)))
        scores[UNCHANGED] = base.validated(lesson.validation)
        models = {UNCHANGED: base, COLUMN: column, SCRATCH: alone}
        best = max(models, key=lambda kind: scores[kind])
        return Teacher(models[best], best, scores)
    return Teacher(column, COLUMN, scores)


def _best(history: Sequence[Epoch]) -> float:
    """The validation score of the weights that were kept."""
    return max(epoch.score for epoch in history)
