"""Compress: teach the base what the column knows, while weights that earlier platforms need are held."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tcl_iree.learning.cost_model import Epoch, FitOptions
from tcl_iree.learning.distillation.consolidation import Consolidation
from tcl_iree.learning.distillation.learner import paced
from tcl_iree.learning.distillation.lesson import Lesson
from tcl_iree.learning.distillation.losses import distillation_loss
from tcl_iree.learning.distillation.options import Distillation
from tcl_iree.learning.groups import Group, candidates_in, fingerprint
from tcl_iree.learning.neural import NeuralModel, TrainingRecipe
from tcl_iree.target import Target

BASE = "base"


def compress(
    base: NeuralModel,
    teacher: NeuralModel,
    lesson: Lesson,
    held: Consolidation | None,
    options: Distillation,
    fit: FitOptions,
    earlier: Sequence[Target] = (),
) -> tuple[NeuralModel, list[Epoch]]:
    """The base as it is after learning from a teacher; the one given is left as it is.

    Only scores are needed, so programs that were never measured teach too. Validation decides when to stop.

    Args:
        earlier: targets of the platforms learned before.
    """
    recipe = going_on(paced(base.recipe, lesson.programs), options)
    student = NeuralModel(copy.deepcopy(base.network), recipe, distillation_loss(options))
    lists = [(student.encode(group), teacher.score(group)) for group in lesson.programs]
    recalled = _imagined(lesson, earlier, options.recall, fit.seed)
    lists += [(student.encode(group), base.score(group)) for group in recalled]
    penalty = held.penalty(options.ewc, options.keep) if held and options.ewc else None
    settings = (options, fit.seed, fit.epochs, base.digest, candidates_in(lesson.programs), len(recalled))
    run = fingerprint(settings, [*lesson.labelled, *lesson.validation])
    history = student.go_on(lists, lesson.validation, fit.keeping(BASE), run, penalty)
    return NeuralModel(student.network, base.recipe), history


def _imagined(lesson: Lesson, earlier: Sequence[Target], share: float, seed: int) -> list[Group]:
    """Some of the groups on each earlier target that could have them; `share` times as many in all."""
    groups, own = lesson.programs, lesson.target
    alike = [target for target in earlier if target.kind == own.kind and target != own]
    count = round(share * len(groups) / max(1, len(alike)))
    rng = np.random.default_rng(seed)
    return [
        groups[index].imagined_on(target)
        for target in alike
        for index in rng.choice(len(groups), count, replace=count > len(groups))
    ]


def going_on(recipe: TrainingRecipe, options: Distillation) -> TrainingRecipe:
    """How weights that know something already are changed: slowly, and not drawn towards zero."""
    return replace(recipe, rate=options.rate, decay=0.0)
