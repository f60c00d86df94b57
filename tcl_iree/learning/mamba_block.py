"""A selective state-space block in plain torch, with the parameters of `mamba_ssm.Mamba`.

    h[t] = exp(delta[t] * A) * h[t-1] + delta[t] * B[t] * x[t]        y[t] = C[t] . h[t] + D * x[t]

`delta`, `B` and `C` depend on the input: that is what selects. Everything but the recurrence itself is done for all
steps at once; the recurrence is one fused multiply-add a step.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

_DELTA_RANGE = (0.001, 0.1)
_LEAST_DELTA = 1e-4


class _Recurrence(torch.autograd.Function):
    """`h[t] = a[t] * h[t-1] + b[t]` along the first dimension."""

    @staticmethod
    def forward(context: Any, decay: Tensor, added: Tensor) -> Tensor:
        states = torch.empty_like(added)
        state = torch.zeros_like(added[0])
        for step in range(len(added)):
            state = torch.addcmul(added[step], decay[step], state, out=states[step])
        context.save_for_backward(decay, states)
        return states

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (gradient,) = gradients
        decay, states = context.saved_tensors
        added = torch.empty_like(gradient)
        carried = added[-1].copy_(gradient[-1])
        for step in range(len(gradient) - 2, -1, -1):
            carried = torch.addcmul(gradient[step], decay[step + 1], carried, out=added[step])
        decayed = torch.zeros_like(added)
        torch.mul(added[1:], states[:-1], out=decayed[1:])
        return decayed, added


class MambaBlock(nn.Module):
    """One block; input and output are (batch, length, width).

    Args:
        width: of the input.
        states: numbers of state kept for each channel.
        kernel: length of the causal convolution.
        expand: channels for each input column.
    """

    def __init__(self, width: int, states: int = 16, kernel: int = 4, expand: int = 2) -> None:
        super().__init__()
        channels, rank = expand * width, math.ceil(width / 16)
        self._states, self._rank, self._kernel = states, rank, kernel
        self.in_proj = nn.Linear(width, 2 * channels, bias=False)
        self.conv1d = nn.Conv1d(channels, channels, kernel, groups=channels, padding=kernel - 1)
        self.x_proj = nn.Linear(channels, rank + 2 * states, bias=False)
        self.dt_proj = nn.Linear(rank, channels)
        self.A_log = nn.Parameter(torch.log(torch.arange(1.0, states + 1)).repeat(channels, 1))
        self.D = nn.Parameter(torch.ones(channels))
        self.out_proj = nn.Linear(channels, width, bias=False)
        self._start_delta(channels)

    def _start_delta(self, channels: int) -> None:
        """Steps start spread evenly, on a logarithmic scale, over a range that neither forgets nor ignores."""
        low, high = (math.log(bound) for bound in _DELTA_RANGE)
        delta = torch.exp(torch.rand(channels) * (high - low) + low).clamp(min=_LEAST_DELTA)
        with torch.no_grad():
            nn.init.uniform_(self.dt_proj.weight, -(self._rank**-0.5), self._rank**-0.5)
            self.dt_proj.bias.copy_(delta + torch.log(-torch.expm1(-delta)))  # the inverse of softplus

    def forward(self, inputs: Tensor) -> Tensor:
        """See the class."""
        length = inputs.shape[1]
        x, gate = self.in_proj(inputs).chunk(2, dim=-1)
        x = functional.silu(self.conv1d(x.transpose(1, 2))[..., :length].transpose(1, 2))
        delta, entering, leaving = self.x_proj(x).split([self._rank, self._states, self._states], dim=-1)
        delta = functional.softplus(self.dt_proj(delta))
        y = self._scan(x, delta, entering, leaving) + self.D * x
        return self.out_proj(y * functional.silu(gate))

    def _scan(self, x: Tensor, delta: Tensor, entering: Tensor, leaving: Tensor) -> Tensor:
        # Time comes first, so that each step of the recurrence is one contiguous block.
        steps, scaled = delta.transpose(0, 1), (delta * x).transpose(0, 1)
        decay = torch.exp(steps.unsqueeze(-1) * -torch.exp(self.A_log))
        added = scaled.unsqueeze(-1) * entering.transpose(0, 1).unsqueeze(-2)
        states = _Recurrence.apply(decay, added)
        return torch.einsum("tbcs,bts->btc", states, leaving)
