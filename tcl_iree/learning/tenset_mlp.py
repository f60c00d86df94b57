"""TenSet's cost model: hand-made features of each statement, a small network over them, a sum over statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tcl_iree.features.statements import FEATURES, MOST_STATEMENTS, StatementEncoder
from tcl_iree.features.steps import Candidate
from tcl_iree.learning.encoding import Arrays, Batch, Encoder
from tcl_iree.learning.network import Network
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

_WIDTH = 256
_LEAST_SPREAD = 0.05
_FARTHEST = 8.0


class TensetNetwork(Network):
    """Linear to 256 twice for each statement, their sum, two residual layers, one number."""

    name: ClassVar[str] = "tenset-mlp"

    def __init__(self) -> None:
        super().__init__()
        self.statement = nn.Sequential(nn.Linear(FEATURES, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, _WIDTH), nn.ReLU())
        self.first, self.second = nn.Linear(_WIDTH, _WIDTH), nn.Linear(_WIDTH, _WIDTH)
        self.out = nn.Linear(_WIDTH, 1)
        self.register_buffer("mean", torch.zeros(FEATURES))
        self.register_buffer("spread", torch.ones(FEATURES))

    @property
    def config(self) -> dict[str, Any]:
        """See `Network`."""
        return {}

    def encoder(self, workload: Workload, target: Target) -> Encoder:
        """Statement features."""
        encoder = StatementEncoder(workload, target)

        def encode(candidates: Sequence[Candidate]) -> Arrays:
            features, counts = encoder.statements(candidates)
            return {"features": features, "counts": counts}

        return encode

    def prepare(self, training: list[Arrays]) -> None:
        """Features are scaled by their mean and spread over the training data."""
        used = [
            part["features"][np.arange(MOST_STATEMENTS)[None] < part["counts"][:, None]].reshape(-1, FEATURES)
            for part in training
        ]
        rows = np.concatenate(used)
        self.mean.copy_(torch.from_numpy(rows.mean(0)))
        # What hardly varies in training is left as it is: dividing by almost nothing would blow it up elsewhere.
        spread = rows.std(0)
        self.spread.copy_(torch.from_numpy(np.where(spread > _LEAST_SPREAD, spread, 1.0)))

    def embedding(self, batch: Batch) -> Tensor:
        """The sum over statements, after the residual layers."""
        rows = self.statement(((batch["features"] - self.mean) / self.spread).clamp(-_FARTHEST, _FARTHEST))
        mask = torch.arange(rows.shape[1], device=rows.device)[None] < batch["counts"][:, None]
        summed = (rows * mask.unsqueeze(-1)).sum(1)
        summed = functional.relu(self.first(summed)) + summed
        return functional.relu(self.second(summed)) + summed

    def score(self, embedding: Tensor, batch: Batch) -> Tensor:
        """See `Network`."""
        return self.out(embedding).squeeze(-1)
