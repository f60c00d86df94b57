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
_PASSES, _PATIENCE = 12, 3
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
    told = [group.told(teacher.score(group)) for group in new]
    recalled = list(_imagined(lesson, earlier, options.recall, fit.seed))
    told += [group.told(base.score(group)) for group in recalled]
    told = [group for group in told if len(group) >= _FEWEST]
    order = np.random.default_rng(fit.seed).permutation(len(told))
    stopping = [told[index] for index in order[::_KEPT_BACK]]
    taught = [told[index] for position, index in enumerate(order) if position % _KEPT_BACK]
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
    patient = replace(fit.keeping(BASE), epochs=epochs, patience=min(fit.patience, _PATIENCE))
    history = student.go_on(lists, stopping, patient, run, penalty)
    student.network.dropout.p = usual
    return NeuralModel(student.network, base.recipe), history


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
