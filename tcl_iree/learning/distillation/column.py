"""The Hardware Active Column: a network for one new platform that looks at the Knowledge Base and leaves it alone.

After every block the base's rows at the same depth are added to the column's, through a small bottleneck:

    rows[d] += U[d] relu(V[d] base_rows[d] + c[d])

and the column's score is added to a share of the base's.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from tcl_iree.learning.distillation.options import Distillation
from tcl_iree.learning.encoding import Batch
from tcl_iree.learning.mamba import MambaNetwork


class Lateral(nn.Module):
    """Brings rows of the base into the column; nothing at first."""

    def __init__(self, width: int, bottleneck: int) -> None:
        super().__init__()
        self.squeeze = nn.Linear(width, bottleneck)
        self.widen = nn.Linear(bottleneck, width, bias=False)
        nn.init.zeros_(self.widen.weight)

    def forward(self, rows: Tensor) -> Tensor:
        """See the module."""
        return self.widen(torch.relu(self.squeeze(rows)))


class ColumnNetwork(MambaNetwork):
    """A second network of the base's shape, connected to it; only what is its own learns.

    Args:
        base: stays as it is.
        digest: a name for its weights.
    """

    name: ClassVar[str] = "column"

    def __init__(self, base: MambaNetwork, options: Distillation, digest: str = "") -> None:
        super().__init__(**base.config)
        width = base.config["width"]
        self._options, self._digest = options, digest
        self.base = type(base)(**base.config)
        self.base.load_state_dict(base.state_dict())
        self.base.requires_grad_(False).eval()
        count = len(base.blocks) if options.lateral else 0
        self.laterals = nn.ModuleList(Lateral(width, options.bottleneck) for _ in range(count))
        if options.residual:
            self.share = nn.Parameter(torch.ones(()))
            nn.init.zeros_(self.head[-1].weight)
            nn.init.zeros_(self.head[-1].bias)

    @property
    def config(self) -> dict[str, Any]:
        """With the base's name; the column is no model that is kept."""
        return super().config | {"base": self._digest, "options": self._options}

    def untrained(self) -> ColumnNetwork:
        """Beside the same base."""
        return ColumnNetwork(self.base, self._options, self._digest)

    def train(self, mode: bool = True) -> ColumnNetwork:
        """The base does not learn."""
        super().train(mode)
        self.base.eval()
        return self

    def embedding(self, batch: Batch) -> Tensor:
        """The column's, then the base's."""
        last, mean = self._by_length(batch).chunk(2, dim=-1)
        (own, others), (own_mean, others_mean) = last.chunk(2, dim=-1), mean.chunk(2, dim=-1)
        return torch.cat([own, own_mean, others, others_mean], dim=-1)

    def score(self, embedding: Tensor, batch: Batch) -> Tensor:
        """The column's, and a share of the base's."""
        own, others = embedding.chunk(2, dim=-1)
        made = super().score(own, batch)
        return made + self.share * self.base.score(others, batch) if self._options.residual else made

    def read(self, batch: Batch, count: int) -> Tensor:
        """Rows of the column beside those of the base."""
        part = slice(0, count)
        rows = self.embedded(batch, part)
        with torch.no_grad():
            others = self.base.embedded(batch, part)
        for number in range(len(self.blocks)):
            rows = self.after(number, rows)
            with torch.no_grad():
                others = self.base.after(number, others)
            if self._options.lateral:
                rows = rows + self.laterals[number](others)
        return torch.cat([rows, others], dim=-1)
