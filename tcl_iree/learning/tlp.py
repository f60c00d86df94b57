"""TLP: schedule primitives as a language, read by self-attention; and MTL-TLP, with one head a platform."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from tcl_iree.features.primitives import ARGUMENTS, PrimitiveEncoder
from tcl_iree.features.steps import Candidate
from tcl_iree.features.vocabulary import KINDS
from tcl_iree.hardware import host_cpu
from tcl_iree.learning.encoding import Arrays, Batch, Encoder, by_length
from tcl_iree.learning.network import Network
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

_HEADS = 8
_WIDTH = 256
_CHUNK = 64
# Kinds of platform a head can be for, in a fixed order. One thread and several are different platforms.
_CPUS = ("avx512", "avx2", "sse4", "neon")
_PLATFORMS = (*_CPUS, *(f"{isa} threads" for isa in _CPUS), "cuda", "vulkan", "other")


class _Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(_WIDTH, _WIDTH)

    def forward(self, inputs: Tensor) -> Tensor:
        return functional.relu(self.linear(inputs)) + inputs


def _head() -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(_WIDTH, 256),
        nn.ReLU(),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Linear(128, 64),
        nn.ReLU(),
        nn.Linear(64, 1),
    )


class TlpNetwork(Network):
    """One-hot kinds and raw arguments, up to 256 columns, attention over primitives, a head, a sum over primitives."""

    name: ClassVar[str] = "tlp"
    heads: ClassVar[int] = 1

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Sequential(
            nn.Linear(len(KINDS) + ARGUMENTS, 64), nn.ReLU(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, _WIDTH),
            nn.ReLU(), nn.Linear(_WIDTH, _WIDTH), nn.ReLU(),
        )  # fmt: skip
        self.attention = nn.MultiheadAttention(_WIDTH, _HEADS, batch_first=True)
        self.blocks = nn.Sequential(_Residual(), _Residual())
        self.decoders = nn.ModuleList(_head() for _ in range(self.heads))

    @property
    def config(self) -> dict[str, Any]:
        """See `Network`."""
        return {}

    def encoder(self, workload: Workload, target: Target) -> Encoder:
        """Primitives, and which platform they are for."""
        primitives, platform = PrimitiveEncoder(workload, target), _PLATFORMS.index(_platform(target))

        def encode(candidates: Sequence[Candidate]) -> Arrays:
            kinds, arguments = primitives.primitives(candidates)
            return {"kinds": kinds, "arguments": arguments, "platform": np.full(len(kinds), platform, np.int64)}

        return encode

    def embedding(self, batch: Batch) -> Tensor:
        """Primitives after attention; summed to one row a candidate."""
        return self._over_primitives(batch, lambda rows, part: rows)

    def score(self, embedding: Tensor, batch: Batch) -> Tensor:
        """Not from the summed embedding: as published, heads score primitives and scores are summed."""
        return self(batch)

    def forward(self, batch: Batch) -> Tensor:
        """See `Network`."""
        return self._over_primitives(batch, self._scores).squeeze(-1)

    def _over_primitives(self, batch: Batch, of: Callable[[Tensor, Batch], Tensor]) -> Tensor:
        """The sum over primitives of what a function makes of their rows, and of the rows that fill up short scripts.

        Those are all alike: one of them is read, and counts as often as there are.
        """
        kinds = batch["kinds"]
        total = kinds.shape[1]
        lengths = (kinds != 0).sum(1)

        def summed(part: Batch, longest: int) -> Tensor:
            read = min(longest + 1, total)
            counts = torch.ones(read, device=kinds.device)
            counts[-1] += total - read
            rows = self._rows(part["kinds"][:, :read], part["arguments"][:, :read], counts)
            return (of(rows, part) * counts[:, None]).sum(1)

        return by_length(batch, lengths, _CHUNK, summed)

    def _rows(self, kinds: Tensor, arguments: Tensor, counts: Tensor) -> Tensor:
        one_hot = functional.one_hot(kinds, len(KINDS)).float()
        one_hot[..., 0] = 0.0  # what fills up a short script is all zeros
        first, second = self.rows[:2], self.rows[2:]
        # Scripts are short: attention in tiles is made for long sequences, and slower here on the way back.
        with _narrow(self.training), sdpa_kernel(SDPBackend.MATH):
            with torch.autocast("cpu", enabled=False):  # raw arguments need all their digits
                rows = first(torch.cat([one_hot, arguments], dim=-1))
            return self._attended(second(rows), counts).float()

    def _attended(self, rows: Tensor, counts: Tensor) -> Tensor:
        as_often = counts.log().expand(len(counts), -1)
        attended, _ = self.attention(rows, rows, rows, need_weights=False, attn_mask=as_often)
        return self.blocks(attended + rows)

    def _scores(self, rows: Tensor, batch: Batch) -> Tensor:
        return self.decoders[0](rows)


class MtlTlpNetwork(TlpNetwork):
    """TLP with one head for each platform; a platform's labels train its own head and the body they share."""

    name: ClassVar[str] = "mtl-tlp"
    heads: ClassVar[int] = len(_PLATFORMS)

    def _scores(self, rows: Tensor, batch: Batch) -> Tensor:
        platforms = batch["platform"]
        scores = rows.new_zeros(*rows.shape[:2], 1)
        for platform in platforms.unique().tolist():
            mine = platforms == platform
            scores[mine] = self.decoders[platform](rows[mine])
        return scores


def _narrow(training: bool) -> torch.autocast:
    """Products of bfloat16 while learning, on CPUs that are several times as fast at them; scores are made in f32."""
    return torch.autocast("cpu", torch.bfloat16, enabled=training and "avx512_bf16" in host_cpu().flags)


def _platform(target: Target) -> str:
    name = target.kind
    if target.kind == "cpu":
        name = target.isa if target.threads == 1 else f"{target.isa} threads"
    return name if name in _PLATFORMS else "other"
