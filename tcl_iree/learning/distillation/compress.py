"""Compress: teach the base what the columns know, while what earlier platforms need is held.

Only scores are needed, and those are free: the base is taught on programs that were drawn for it and never run, on the
new platform's target by the teacher and on earlier ones by what it said there before. How well it follows both, on
programs kept back, says when to stop; no label does.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tcl_iree.learning.cost_model import Epoch, FitOptions
from tcl_iree.learning.distillation.consolidation import Consolidation
from tcl_iree.learning.distillation.learner import paced
from tcl_iree.learning.distillation.lesson import Lesson
from tcl_iree.learning.distillation.losses import distillation_loss
from tcl_iree.learning.distillation.options import Distillation
from tcl_iree.learning.distillation.progress import Scorer
from tcl_iree.learning.drawn import drawn_programs
from tcl_iree.learning.groups import Group, candidates_in, fingerprint
from tcl_iree.learning.mamba import MambaNetwork
from tcl_iree.learning.neural import NeuralModel, TrainingRecipe
from tcl_iree.target import Target

BASE = "base"
# Programs drawn for each workload on each target.
_DRAWN = 16
# Of the groups it is taught, one in so many only says when to stop. It knows most already, so few passes are enough.
_KEPT_BACK = 8
_PASSES = 10
# A group of which one candidate is to be compared with another.
_FEWEST = 3


def compress(
    base: NeuralModel,
    teacher: Scorer,
    lesson: Lesson,
    held: Consolidation | None,
    options: Distillation,
    fit: FitOptions,
    earlier: Sequence[Target] = (),
) -> tuple[NeuralModel, list[Epoch]]:
    """The base as it is after learning from a teacher; the one given is left as it is.

    Args:
        earlier: targets of the platforms learned before.
    """
    new = [*lesson.programs, *(drawn_programs(group, count=_DRAWN) for group in lesson.programs)]
    told = [group.told(teacher.score(group)) for group in new if len(group) >= _FEWEST]
    recalled = [group for group in _imagined(lesson, earlier, options.recall, fit.seed) if len(group) >= _FEWEST]
    known = [group.told(base.score(group)) for group in recalled]
    rng = np.random.default_rng(fit.seed)
    stopping, taught = _kept_back(told, len(told) // _KEPT_BACK, rng)
    # As many of what is known: it must not drown what is new, nor the other way round.
    stopping_by_known, taught_known = _kept_back(known, min(len(stopping), len(known) // _KEPT_BACK), rng)
    stopping, taught = [*stopping, *stopping_by_known], [*taught, *taught_known]
    recipe = going_on(paced(base.recipe, taught), options.slow_rate)
    student = NeuralModel(copy.deepcopy(base.network), recipe, distillation_loss(options))
    penalty = held.penalty(options.ewc, options.keep) if held and options.ewc else None
    settings = (options, fit.seed, fit.epochs, base.digest, candidates_in(lesson.programs), len(recalled))
    run = fingerprint(settings, [*lesson.labelled, *lesson.validation])
    # What is to be followed is no noise, so nothing is left out at random.
    assert isinstance(student.network, MambaNetwork)
    usual, student.network.dropout.p = student.network.dropout.p, 0.0
    lists = [(student.encode(group), -np.log(group.seconds).astype(np.float32)) for group in taught]
    epochs = min(fit.epochs, _PASSES)
    patient = replace(fit.keeping(BASE), epochs=epochs, patience=epochs)
    # As it is the base knows what is known perfectly, so by that score it would never change.
    history = student.go_on(lists, stopping, patient, run, penalty, keep_start=False)
    student.network.dropout.p = usual
    return NeuralModel(student.network, base.recipe), history


def _kept_back(groups: Sequence[Group], count: int, rng: np.random.Generator) -> tuple[list[Group], list[Group]]:
    """So many of them by chance, and the others."""
    order = rng.permutation(len(groups))
    return [groups[index] for index in order[:count]], [groups[index] for index in order[count:]]


def _imagined(lesson: Lesson, earlier: Sequence[Target], share: float, seed: int) -> Iterator[Group]:
    """Programs drawn for some of the workloads on each earlier target."""
    groups, rng = lesson.programs, np.random.default_rng(seed)
    for target in earlier:
        if target != lesson.target:
            for index in rng.permutation(len(groups))[: round(share * len(groups))]:
                yield drawn_programs(groups[index], target, _DRAWN)


def going_on(recipe: TrainingRecipe, rate: float) -> TrainingRecipe:
    """How weights that know something already are changed: slowly, and not drawn towards zero."""
    return replace(recipe, rate=rate, decay=0.0)
