"""The cost model of this project: scripts as sequences, read by a small selective state-space network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from tcl_iree.features.steps import Candidate
from tcl_iree.features.tokens import Tokenizer
from tcl_iree.features.vocabulary import COLUMNS, KINDS, ROLES
from tcl_iree.learning.encoding import Arrays, Batch, Encoder, by_length
from tcl_iree.learning.mamba_block import VECTOR, Carried, MambaBlock
from tcl_iree.learning.native_code import GoingOn, SequenceWeights, native_code
from tcl_iree.learning.network import Network
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

_CHUNK = 64


class MambaNetwork(Network):
    """Embeds each row, reads the sequence with a few Mamba blocks, scores its end and its mean.

    Args:
        width: columns of a row's embedding.
        depth: Mamba blocks, one after the other.
        states: numbers of state each channel keeps.
        dropout: share of the embedding's columns left out, at random, while learning.
    """

    name: ClassVar[str] = "mamba"

    def __init__(self, width: int = 32, depth: int = 2, states: int = 8, dropout: float = 0.1) -> None:
        super().__init__()
        self._config = {"width": width, "depth": depth, "states": states, "dropout": dropout}
        self.kind = nn.Embedding(len(KINDS), width, padding_idx=0)
        self.role = nn.Embedding(len(ROLES), width, padding_idx=0)
        self.number = nn.Linear(COLUMNS, width)
        self.blocks = nn.ModuleList(MambaBlock(width, states) for _ in range(depth))
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(depth))
        self.dropout = nn.Dropout(dropout)
        self.out_norm = nn.RMSNorm(2 * width)
        self.head = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, 1))
        for table in (self.kind, self.role):
            nn.init.normal_(table.weight, std=0.5)
            with torch.no_grad():
                table.weight[0].zero_()

    @property
    def config(self) -> dict[str, Any]:
        """See `Network`."""
        return dict(self._config)

    def encoder(self, workload: Workload, target: Target) -> Encoder:
        """Sequences, with how many of their first rows all candidates share."""
        tokenizer = Tokenizer(workload, target)

        def encode(candidates: Sequence[Candidate]) -> Arrays:
            made = tokenizer.sequences(candidates)
            shared = np.full(len(made), tokenizer.prefix_length, np.int64)
            return {
                "kinds": made.kinds,
                "roles": made.roles,
                "numbers": made.numbers,
                "lengths": made.lengths,
                "shared": shared,
            }

        return encode

    def embedding(self, batch: Batch) -> Tensor:
        """The sequence's end, and the mean over its rows."""
        if self.training or torch.is_grad_enabled():
            return self._by_length(batch)
        return self._quickly(batch)

    def score(self, embedding: Tensor, batch: Batch) -> Tensor:
        """See `Network`."""
        return self.head(self.out_norm(self.dropout(embedding))).squeeze(-1)

    def embedded(self, batch: Batch, part: slice) -> Tensor:
        """Rows as the first block gets them."""
        rows = self.number(batch["numbers"][:, part])
        return rows + self.kind(batch["kinds"][:, part]) + self.role(batch["roles"][:, part])

    def _read(self, batch: Batch, part: slice, before: list[Carried] | None) -> tuple[Tensor, list[Carried]]:
        """Rows of a part of the sequences, given what the rows before it left behind."""
        rows = self.embedded(batch, part)
        left = []
        for number in range(len(self.blocks)):
            rows, carried = self.advance(number, rows, before[number] if before else None)
            left.append(carried)
        return rows, left

    def advance(self, number: int, rows: Tensor, before: Carried | None) -> tuple[Tensor, Carried]:
        """Rows after one of the blocks, and what is left behind for rows after them."""
        made, carried = self.blocks[number].advance(self.norms[number](rows), before)
        return rows + made, carried

    def after(self, number: int, rows: Tensor) -> Tensor:
        """Whole sequences after one of the blocks."""
        return rows + self.blocks[number](self.norms[number](rows))

    def read(self, batch: Batch, count: int) -> Tensor:
        """The first rows of sequences after all blocks."""
        rows = self.embedded(batch, slice(0, count))
        for number in range(len(self.blocks)):
            rows = self.after(number, rows)
        return rows

    @staticmethod
    def _pool(rows: Tensor, lengths: Tensor) -> Tensor:
        places = torch.arange(rows.shape[1], device=rows.device)
        mask = (places[None] < lengths[:, None]).unsqueeze(-1)
        mean = (rows * mask).sum(1) / lengths[:, None]
        last = rows[torch.arange(len(rows), device=rows.device), lengths - 1]
        return torch.cat([last, mean], dim=-1)

    def _by_length(self, batch: Batch) -> Tensor:
        lengths = batch["lengths"]
        return by_length(batch, lengths, len(lengths) if lengths.is_cuda else _CHUNK, self._of_rows)

    def _of_rows(self, batch: Batch, count: int) -> Tensor:
        """From the first rows of sequences that are no longer."""
        return self._pool(self.read(batch, count), batch["lengths"])

    def _quickly(self, batch: Batch) -> Tensor:
        """The same without gradients: what all candidates share at the front is read once."""
        shared = int(batch["shared"].min())
        if any(bool((batch[name][:, :shared] != batch[name][:1, :shared]).any()) for name in ("kinds", "numbers")):
            shared = 0
        if shared == 0:
            return torch.cat(
                [self._pool(self.read(part, part["kinds"].shape[1]), part["lengths"]) for part in _chunks(batch)]
            )
        front, carried = self._read({name: value[:1] for name, value in batch.items()}, slice(0, shared), None)
        native = native_code() if not front.is_cuda else None
        if native and front.shape[-1] % VECTOR == 0:
            kinds, roles, numbers, lengths = (batch[name] for name in ("kinds", "roles", "numbers", "lengths"))
            return native.read_sequences(kinds, roles, numbers, lengths, shared, self._weights(front[0], carried))
        made = []
        for part in _chunks(batch):
            whole = front.expand(len(part["lengths"]), -1, -1)
            if part["numbers"].shape[1] > shared:
                whole = torch.cat([whole, self._read(part, slice(shared, None), carried)[0]], dim=1)
            made.append(self._pool(whole, part["lengths"]))
        return torch.cat(made)

    def _weights(self, front: Tensor, carried: list[Carried]) -> SequenceWeights:
        epsilon = self.norms[0].eps
        return SequenceWeights(
            self.kind.weight.detach(),
            self.role.weight.detach(),
            self.number.weight.detach().T.contiguous(),
            self.number.bias.detach(),
            torch.finfo(torch.float32).eps if epsilon is None else epsilon,
            front[-1].contiguous(),
            front.sum(0),
            tuple(
                (
                    block.weights(),
                    GoingOn(norm.weight.detach(), before.inputs[0].contiguous(), before.state[0].T.contiguous()),
                )
                for block, norm, before in zip(self.blocks, self.norms, carried, strict=True)
            ),
        )


def _chunks(batch: Batch) -> list[Batch]:
    """Few candidates at once, so that what torch needs for them stays small."""
    count = len(batch["lengths"])
    return [{name: value[start : start + _CHUNK] for name, value in batch.items()} for start in range(0, count, _CHUNK)]
