"""Cost models trained alike, for every benchmark that compares them."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tcl_iree.learning.checkpoint import Checkpoint, inputs_hash, load_checkpoint
from tcl_iree.learning.cost_model import STOPPED_BY
from tcl_iree.learning.groups import Group, fingerprint
from tcl_iree.learning.models import make_model
from tcl_iree.learning.neural import TrainingRecipe
from tcl_iree.learning.split import load_split
from tcl_iree.workflows.train import train

# What kept models and scores depend on besides data and options.
LEARNED_BY = (STOPPED_BY, TrainingRecipe(), inputs_hash())
# Models that learn nothing.
FLOORS = ("random", "roofline")
# Rates of learning tried for each model that learns; boosted trees take theirs by another name.
_RATES = {"xgboost": ("eta", (0.1, 0.3, 0.6))}
_USUAL = ("rate", (7e-4, 2e-3, 5e-3))
# Rates are compared with one network where several would teach one.
_ALONE = {"mamba": {"teachers": 1}}


class Trainer:
    """Trains models by the one split; a checkpoint of the same data and settings is used again.

    How fast a model learns is chosen on validation with the first seed, from as many values for each.

    Args:
        groups: the training and validation parts.
        place: directory that checkpoints are kept below.
    """

    def __init__(self, groups: Sequence[Group], seeds: Sequence[int], epochs: int, place: Path) -> None:
        self._groups, self._first, self._epochs = list(groups), seeds[0], epochs
        # The test part is not in it: checkpoints serve whatever is measured of that.
        self.run = fingerprint((epochs, self._first, _RATES, _USUAL, LEARNED_BY), groups)
        self._place = place / self.run

    def checkpoint(self, name: str, seed: int) -> Checkpoint:
        """A trained model; the seconds its training took are among its metrics."""
        return load_checkpoint(self.path(name, seed))

    def path(self, name: str, seed: int) -> Path:
        """Where that checkpoint is; it is made first if it is missing."""
        path = self._place / f"{name}-{seed}"
        if not self.trained(name, seed):
            self._make(name, seed).save(path)
        return path

    def trained(self, name: str, seed: int) -> bool:
        """Whether that checkpoint is there already."""
        return (self._place / f"{name}-{seed}.json").exists()

    def _make(self, name: str, seed: int) -> Checkpoint:
        if name in FLOORS:
            return Checkpoint(make_model(name), (), (), {"training_seconds": 0.0})
        setting, rates = _RATES.get(name, _USUAL)
        values: Sequence[float] = rates
        if seed != self._first:  # the rate that was best for the first seed
            values = (self.checkpoint(name, self._first).model.config[setting],)
        if len(values) > 1:
            tried = {value: self._train(name, seed, {setting: value} | _ALONE.get(name, {})) for value in values}
            best = max(tried, key=lambda value: tried[value].metrics["accuracy"])
            if name not in _ALONE:
                return tried[best]
            values = (best,)
        return self._train(name, seed, {setting: values[0]})

    def _train(self, name: str, seed: int, config: dict[str, float]) -> Checkpoint:
        started = time.monotonic()
        made = train(name, self._groups, load_split(), seed, self._epochs, config)
        made.metrics["training_seconds"] = time.monotonic() - started
        print(
            f"{name}, seed {seed}, {config}: validation top-1 {made.metrics['top_1']:.3f}, "
            f"top-5 {made.metrics['top_5']:.3f}, pairs {made.metrics['accuracy']:.3f} after {len(made.history)} epochs, "
            f"{made.metrics['training_seconds']:.0f} s", file=sys.stderr, flush=True,
        )  # fmt: skip
        return made
