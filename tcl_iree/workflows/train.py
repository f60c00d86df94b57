"""Train a cost model on measured programs and judge it on those it has not seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tcl_iree.errors import LearningError, OptionError
from tcl_iree.learning.calibration import calibrate
from tcl_iree.learning.checkpoint import Checkpoint
from tcl_iree.learning.cost_model import CostModel, Epoch, FitOptions
from tcl_iree.learning.distillation.consolidation import consolidate
from tcl_iree.learning.distillation.options import Distillation
from tcl_iree.learning.evaluation import Evaluation, evaluate, evaluate_guessing, rank
from tcl_iree.learning.floors import RandomModel
from tcl_iree.learning.groups import Group, candidates_in
from tcl_iree.learning.lineage import LABELS, stage_of
from tcl_iree.learning.mamba import MambaNetwork
from tcl_iree.learning.models import make_model
from tcl_iree.learning.neural import NeuralModel
from tcl_iree.learning.split import TRAIN, VALIDATION, Split

# Without a validation part of its own, so many of the training workloads stand in for it.
_HELD_OUT = 0.2


def train(
    name: str,
    groups: Sequence[Group],
    split: Split | None,
    seed: int = 0,
    epochs: int = 60,
    config: dict[str, Any] | None = None,
    resume: Path | None = None,
    say: Callable[[Epoch], None] = lambda epoch: None,
) -> Checkpoint:
    """Train one model.

    Args:
        split: which workloads to learn from; None learns from all but a fifth, held out to stop by.
        resume: file that an unfinished run is kept in.

    Raises:
        LearningError: there is too little to learn from.
    """
    if epochs < 1 or seed < 0:
        raise OptionError(
            f"there must be at least one epoch, and the seed must not be negative (not {epochs} and {seed})"
        )
    model = make_model(name, config)
    training, validation = training_parts(groups, split)
    history = model.fit(training, validation, FitOptions(epochs, seed=seed, resume=resume, say=say))
    metrics = validated(model, training, validation)
    stage = stage_of(training, validation, metrics, LABELS, model.digest)
    held = None
    if isinstance(model, NeuralModel) and isinstance(model.network, MambaNetwork):  # others cannot go on
        held = consolidate(None, model, training, Distillation(), seed).state()
    return Checkpoint(
        model,
        tuple(sorted(stage.platforms)),
        stage.training_keys,
        metrics,
        tuple(history),
        calibrate(model, validation),
        (stage,),
        held,
    )


def validated(model: CostModel, training: Sequence[Group], validation: Sequence[Group]) -> dict[str, float]:
    """The figures that a checkpoint carries."""
    found = asdict(evaluate(rank(model, validation)))
    return {name: float(value) for name, value in found.items()} | {"programs": candidates_in(training)}


def judge(models: dict[str, CostModel], groups: Sequence[Group], split: Split | None) -> dict[str, Evaluation]:
    """The figures of models over the same groups; those of guessing are averaged over many draws."""
    found = {}
    for name, model in models.items():
        pools = rank(model, groups, split)
        found[name] = evaluate_guessing(pools) if isinstance(model, RandomModel) else evaluate(pools)
    return found


def training_parts(groups: Sequence[Group], split: Split | None) -> tuple[list[Group], list[Group]]:
    """What to learn from and what to stop by; a fifth of the workloads stands in where validation has none.

    Raises:
        LearningError: there are too few workloads.
    """
    if split:
        parts = split.divide(groups)
        training, validation = parts[TRAIN], parts[VALIDATION]
    else:
        training, validation = list(groups), []
    if not validation:
        keys = sorted({group.workload.key for group in training})
        held = set(keys[:: math.ceil(1 / _HELD_OUT)])
        validation = [group for group in training if group.workload.key in held]
        training = [group for group in training if group.workload.key not in held]
    if not training or not validation:
        distinct = len({group.workload.key for group in (*training, *validation)})
        raise LearningError(
            f"there are {distinct} workloads to learn from{' outside the test part' if split else ''}; at least two "
            "are needed, one to learn from and one to stop by: collect more with `tcl-iree collect`"
        )
    return training, validation
