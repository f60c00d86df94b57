"""Compress: teach the base what the column knows, while weights that earlier platforms need are held."""

from __future__ import annotations

import copy
from dataclasses import replace

from tcl_iree.learning.cost_model import Epoch, FitOptions
from tcl_iree.learning.distillation.consolidation import Consolidation
from tcl_iree.learning.distillation.learner import keeping, paced
from tcl_iree.learning.distillation.lesson import Lesson
from tcl_iree.learning.distillation.losses import distillation_loss
from tcl_iree.learning.distillation.options import Distillation
from tcl_iree.learning.groups import candidates_in, fingerprint
from tcl_iree.learning.neural import NeuralModel, TrainingRecipe

BASE = "base"


def compress(
    base: NeuralModel,
    teacher: NeuralModel,
    lesson: Lesson,
    held: Consolidation | None,
    options: Distillation,
    fit: FitOptions,
) -> tuple[NeuralModel, list[Epoch]]:
    """The base as it is after learning from a teacher; the one given is left as it is.

    Only scores are needed, so programs that were never measured teach too. Validation decides when to stop.
    """
    recipe = going_on(paced(base.recipe, lesson.programs), options)
    student = NeuralModel(copy.deepcopy(base.network), recipe, distillation_loss(options))
    lists = [(student.encode(group), teacher.score(group)) for group in lesson.programs]
    penalty = held.penalty(options.ewc, options.keep) if held and options.ewc else None
    settings = (options, fit.seed, fit.epochs, base.digest, candidates_in(lesson.programs))
    run = fingerprint(settings, [*lesson.labelled, *lesson.validation])
    history = student.go_on(lists, lesson.validation, keeping(fit, BASE), run, penalty)
    return NeuralModel(student.network, base.recipe), history


def going_on(recipe: TrainingRecipe, options: Distillation) -> TrainingRecipe:
    """How weights that know something already are changed: slowly, and not drawn towards zero."""
    return replace(recipe, rate=options.rate, decay=0.0)
