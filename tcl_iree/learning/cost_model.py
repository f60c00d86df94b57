"""What every cost model offers."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tcl_iree.features.steps import Candidate
from tcl_iree.learning.groups import Group
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

State = dict[str, np.ndarray]
# Which figure of an `Epoch` says when to stop; runs that went by another are other runs.
STOPPED_BY = "pairs"


@dataclass(frozen=True)
class Epoch:
    """How training stands after a pass over the data.

    Attributes:
        loss: mean over the pass.
        top_1, top_5, pairs: on the validation groups; `pairs` is the share of pairs of candidates in the right order.
    """

    number: int
    loss: float
    top_1: float
    top_5: float
    pairs: float = 0.0

    @property
    def score(self) -> float:
        """What training is stopped by and weights are chosen by.

        Every program that works has a say in it; which one comes first of a few small pools is more of a chance.
        """
        return float(getattr(self, STOPPED_BY))


@dataclass(frozen=True)
class FitOptions:
    """How to train.

    Attributes:
        epochs: at most so many passes.
        patience: stop after so many passes without a better validation score.
        resume: file that keeps the state of a run after every pass; one that was cut off is gone on with. A run of
            several trainings has a file for each, with an ending more. Whoever asks for it removes them. Models that
            train in a minute do without.
        say: told about every pass.
    """

    epochs: int = 60
    patience: int = 12
    seed: int = 0
    resume: Path | None = None
    say: Callable[[Epoch], None] = field(default=lambda epoch: None)

    def keeping(self, part: str) -> FitOptions:
        """Options for one of several trainings of a run: each keeps its unfinished state in a file of its own."""
        return replace(self, resume=self.resume.with_name(f"{self.resume.name}.{part}")) if self.resume else self


class CostModel(ABC):
    """Ranks candidates of a workload on a target without running them.

    Scores of candidates of one workload on one target are comparable, higher is thought faster; scores of different
    workloads are not.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name it is made by."""

    @property
    def trainings(self) -> int:
        """How many times `fit` goes through all epochs."""
        return 1

    @abstractmethod
    def fit(self, training: Sequence[Group], validation: Sequence[Group], options: FitOptions) -> list[Epoch]:
        """Learn from scratch. Validation decides when to stop and is not learned from."""

    @abstractmethod
    def update(self, groups: Sequence[Group]) -> None:
        """Learn from measurements taken since `fit`, all of them: those of earlier updates are given again."""

    @abstractmethod
    def predict(self, workload: Workload, target: Target, candidates: Sequence[Candidate]) -> np.ndarray:
        """A score for each candidate."""

    def score(self, group: Group) -> np.ndarray:
        """A score for each candidate of a group; the group may remember what was made of it on the way."""
        return self.predict(group.workload, group.target, group.candidates)

    @abstractmethod
    def embed(self, workload: Workload, target: Target, candidates: Sequence[Candidate]) -> np.ndarray:
        """What the model sees of each candidate: candidate x column, near where they seem alike."""

    def read(
        self, workload: Workload, target: Target, candidates: Sequence[Candidate]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores and embeddings at once."""
        return self.predict(workload, target, candidates), self.embed(workload, target, candidates)

    @property
    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Arguments that make an equal model, untrained."""

    @abstractmethod
    def state(self) -> State:
        """All that was learned, as arrays."""

    @abstractmethod
    def load_state(self, state: State) -> None:
        """Take over what another model of the same config learned."""

    @property
    def parameters(self) -> int:
        """How many numbers were learned."""
        return sum(array.size for array in self.state().values())

    @property
    def digest(self) -> str:
        """A name for what was learned: another for other numbers."""
        held = hashlib.sha256()
        for name, array in sorted(self.state().items()):
            held.update(name.encode() + array.tobytes())
        return held.hexdigest()[:16]
