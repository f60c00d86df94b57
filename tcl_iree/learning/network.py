"""What the networks of cost models have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from torch import Tensor, nn

from tcl_iree.learning.encoding import Arrays, Batch, Encoder
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload


class Network(nn.Module):
    """From encoded candidates to an embedding, and from that to a score."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Arguments that make an equal network."""

    @abstractmethod
    def encoder(self, workload: Workload, target: Target) -> Encoder:
        """What turns candidates into this network's input."""

    @abstractmethod
    def embedding(self, batch: Batch) -> Tensor:
        """Candidate x column."""

    @abstractmethod
    def score(self, embedding: Tensor, batch: Batch) -> Tensor:
        """One number a candidate, higher is thought faster."""

    def forward(self, batch: Batch) -> Tensor:
        """The score of each candidate."""
        return self.score(self.embedding(batch), batch)

    def untrained(self) -> Network:
        """A network like this one with weights to start from."""
        return type(self)(**self.config)

    def prepare(self, training: list[Arrays]) -> None:
        """Look at the training data once before learning, to scale inputs; most networks have no need."""
