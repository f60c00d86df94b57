"""What every way to learn platform after platform offers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tcl_iree.features.steps import Candidate
from tcl_iree.learning.cost_model import CostModel, Epoch, FitOptions, State
from tcl_iree.learning.distillation.lesson import Lesson
from tcl_iree.learning.distillation.options import Distillation
from tcl_iree.learning.groups import Group
from tcl_iree.learning.mamba import MambaNetwork
from tcl_iree.learning.network import Network
from tcl_iree.learning.neural import NeuralModel, TrainingRecipe
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

_MEAN_PASSES = 4
# Told what is being done.
Phase = Callable[[str], None]


@dataclass(frozen=True)
class Learned:
    """How a platform was learned.

    Attributes:
        epochs: of what is kept.
        teacher: what taught it: `labels`, or the model that was distilled.
        notes: what a user should know, such as that earlier knowledge was of no use.
    """

    platform: str
    labels: int
    epochs: tuple[Epoch, ...]
    teacher: str = "labels"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Size:
    """What is carried from platform to platform.

    Attributes:
        parameters: numbers that scoring needs.
        bytes: of these and of whatever else learning needs, data left out.
        programs: measured programs that are kept.
    """

    parameters: int
    bytes: int
    programs: int = 0


class Learner(ABC):
    """Learns platforms one after the other.

    Args:
        start: a model that has learned the first platform already, so that `learn` need not do it again; it is left as
            it is. One of another network than this learner's is of no use to it.
    """

    name: ClassVar[str]
    network: ClassVar[type[Network]] = MambaNetwork

    def __init__(self, options: Distillation | None = None, start: NeuralModel | None = None) -> None:
        self.options = options or Distillation()
        self._start = start if start and isinstance(start.network, self.network) else None

    @abstractmethod
    def learn(self, lesson: Lesson, fit: FitOptions, phase: Phase = lambda text: None) -> Learned:
        """Learn one more platform; programs of earlier ones are not given again."""

    @abstractmethod
    def model(self, platform: str) -> CostModel:
        """The model to rank a platform's programs with, one that was not learned included."""

    @property
    @abstractmethod
    def size(self) -> Size:
        """What is carried on now."""

    def predict(self, platform: str, workload: Workload, target: Target, candidates: Sequence[Candidate]) -> np.ndarray:
        """A score for each candidate."""
        return self.model(platform).predict(workload, target, candidates)

    def _untrained(self, groups: Sequence[Group]) -> NeuralModel:
        """A model to train on groups, like the one to start from."""
        recipe = self._start.recipe if self._start else TrainingRecipe()
        return NeuralModel(self._start.network.untrained() if self._start else self.network(), paced(recipe, groups))


def bytes_of(*states: State) -> int:
    """Bytes of arrays."""
    return sum(array.nbytes for state in states for array in state.values())


def paced(recipe: TrainingRecipe, groups: Sequence[Group]) -> TrainingRecipe:
    """With a running mean of weights over a few passes at most: few labels make few steps."""
    lists = sum(max(1, round(len(group) / recipe.group)) for group in groups)
    steps = math.ceil(lists / recipe.groups)
    return replace(recipe, average=min(recipe.average, 1.0 - 1.0 / (_MEAN_PASSES * max(1, steps))))
