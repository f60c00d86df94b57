"""Progress: learn a new platform in columns beside the base, or without the base where that does better.

Labels are few, so a column that learns from them is partly wrong, each in its own way. What the teacher adds to the
base is therefore the mean of several columns, and of that the share that validation likes best. Where nothing does
better than the base as it is, the labels have nothing to teach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tcl_iree.learning.cost_model import FitOptions
from tcl_iree.learning.distillation.column import ColumnNetwork
from tcl_iree.learning.distillation.learner import Phase, paced
from tcl_iree.learning.distillation.lesson import Lesson
from tcl_iree.learning.distillation.options import Distillation
from tcl_iree.learning.groups import Group
from tcl_iree.learning.mamba import MambaNetwork
from tcl_iree.learning.metrics import pairwise_accuracy, ranked
from tcl_iree.learning.neural import NeuralModel

COLUMN, SCRATCH, UNCHANGED = "column", "scratch", "base"
_SHARES = (0.25, 0.5, 0.75, 1.0)


class Scorer(Protocol):
    """Whatever has an opinion of a group's candidates."""

    def score(self, group: Group) -> np.ndarray:
        """A number for each, higher is thought faster."""
        ...


@dataclass(frozen=True)
class Beside:
    """The base, and a share of what columns beside it would change."""

    base: NeuralModel
    columns: Sequence[NeuralModel]
    share: float = 1.0

    def score(self, group: Group) -> np.ndarray:
        """See `Scorer`."""
        own = self.base.score(group)
        return own + self.share * (np.mean([column.score(group) for column in self.columns], axis=0) - own)


@dataclass(frozen=True)
class Teacher:
    """A model of the new platform alone, for the base to learn from.

    Attributes:
        kind: `column`; `scratch` where earlier knowledge did harm; `base` where the labels did.
        scores: share of pairs in order on validation, by kind.
    """

    model: Scorer
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
    """Train the columns; the base is left alone."""
    network = base.network
    assert isinstance(network, MambaNetwork)
    recipe = paced(base.recipe, lesson.labelled)
    columns = []
    for number in range(options.columns):
        phase(f"training column {number + 1} of {options.columns} beside the base")
        column = NeuralModel(ColumnNetwork(network, options, base.digest), recipe)
        seeded = replace(fit.keeping(f"{COLUMN}-{number}"), seed=fit.seed + 1000 * number)
        column.fit(lesson.labelled, lesson.validation, seeded)
        columns.append(column)
    whole = Beside(base, columns)
    if not options.gate:
        return Teacher(whole, COLUMN, {})
    # Few choices: what is best of many by chance would look as if it were good.
    candidates = [replace(whole, share=share) for share in _SHARES]
    judged = [_in_order(candidate, lesson.validation) for candidate in candidates]
    best = int(np.argmax([pairs.mean() for pairs in judged]))
    phase("training without the base, to compare")
    alone = NeuralModel(MambaNetwork(**network.config), recipe)
    alone.fit(lesson.labelled, lesson.validation, fit.keeping(SCRATCH))
    pairs = {
        UNCHANGED: _in_order(base, lesson.validation),
        COLUMN: judged[best],
        SCRATCH: _in_order(alone, lesson.validation),
    }
    scores = {kind: float(found.mean()) for kind, found in pairs.items()}
    kind = UNCHANGED if scores[UNCHANGED] >= scores[COLUMN] else COLUMN
    if _clearly_ahead(pairs[SCRATCH], pairs[kind]):
        kind = SCRATCH
    models: dict[str, Scorer] = {UNCHANGED: base, COLUMN: candidates[best], SCRATCH: alone}
    return Teacher(models[kind], kind, scores)


def _in_order(model: Scorer, groups: Sequence[Group]) -> np.ndarray:
    """Of each group, the share of pairs in order."""
    return np.array([pairwise_accuracy(ranked(group, model.score(group))) for group in groups])


def _clearly_ahead(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether the mean lead over the same groups is more than its standard error."""
    lead = one - other
    return bool(lead.mean() > lead.std() / np.sqrt(len(lead)) and lead.mean() > 0)
