"""A selective state-space block in plain torch, with the parameters of `mamba_ssm.Mamba`.

    h[t] = exp(delta[t] * A) * h[t-1] + delta[t] * B[t] * x[t]        y[t] = C[t] . h[t] + D * x[t]

`delta`, `B` and `C` depend on the input: that is what selects. Everything but the recurrence itself is done for all
steps at once; the recurrence is one fused multiply-add a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from tcl_iree.learning.native_code import BlockWeights, native_code

Scan = Callable[..., tuple[Tensor, Tensor]]

_DELTA_RANGE = (0.001, 0.1)
_LEAST_DELTA = 1e-4
# The compiled code works on so many columns at once.
VECTOR = 16


class Carried(NamedTuple):
    """What steps leave behind for those after them.

    Attributes:
        inputs: of the last steps, which the convolution still sees: batch x steps x channel.
        state: of the recurrence: batch x channel x state.
    """

    inputs: Tensor
    state: Tensor


@cache
def fused_scan() -> Scan | None:
    """mamba-ssm's fused kernel, where that package is installed."""
    try:
        from mamba_ssm.ops.selective_scan_interface import selective_scan_fn
    except ImportError:
        return None
    return selective_scan_fn


def scan_with(
    scan: Scan, x: Tensor, delta: Tensor, rates: Tensor, entering: Tensor, leaving: Tensor
) -> tuple[Tensor, Tensor]:
    """The recurrence by a function with mamba-ssm's signature, which has time last."""
    turned = (given.transpose(1, 2).contiguous() for given in (x, delta, entering, leaving))
    across, steps, in_, out = turned
    made, state = scan(across, steps, rates, in_, out, return_last_state=True)
    return made.transpose(1, 2), state


def scan_in_torch(
    x: Tensor, delta: Tensor, rates: Tensor, entering: Tensor, leaving: Tensor, state: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The recurrence in plain torch."""
    # Time comes first, so that each step of the recurrence is one contiguous block.
    steps, scaled = delta.transpose(0, 1), (delta * x).transpose(0, 1)
    decay = torch.exp(steps.unsqueeze(-1) * rates)
    added = scaled.unsqueeze(-1) * entering.transpose(0, 1).unsqueeze(-2)
    if state is not None:
        added = torch.cat([added[:1] + decay[:1] * state, added[1:]])
    states = _Recurrence.apply(decay, added)
    return torch.einsum("tbcs,bts->btc", states, leaving), states[-1]


class _NativeBlock(torch.autograd.Function):
    """A whole block by compiled code."""

    @staticmethod
    def forward(context: Any, inputs: Tensor, *weights: Tensor) -> Tensor:
        native = native_code()
        assert native
        given = inputs.contiguous()
        context.save_for_backward(given, *weights)
        return native.block(given, BlockWeights(*weights))

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        native = native_code()
        assert native
        inputs, *weights = context.saved_tensors
        slopes, summed = native.block_backward(gradients[0].contiguous(), inputs, BlockWeights(*weights))
        return slopes, *summed


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
        whole = all(count % VECTOR == 0 for count in (inputs.shape[-1], len(self.D)))
        if whole and not inputs.is_cuda and native_code():
            return _NativeBlock.apply(inputs, *self.weights())
        return self.advance(inputs, None)[0]

    def advance(self, inputs: Tensor, before: Carried | None) -> tuple[Tensor, Carried]:
        """Go on from where earlier steps have led; from nothing if there were none."""
        x, gate = self.in_proj(inputs).chunk(2, dim=-1)
        earlier = before.inputs.expand(len(x), -1, -1) if before else x.new_zeros(len(x), self._kernel - 1, x.shape[-1])
        window = torch.cat([earlier, x], dim=1)
        x = functional.silu(self._convolve(window, x.shape[1]))
        delta, entering, leaving = self.x_proj(x).split([self._rank, self._states, self._states], dim=-1)
        delta = functional.softplus(self.dt_proj(delta))
        y, state = self._scan(x, delta, entering, leaving, before.state if before else None)
        y = torch.addcmul(y, self.D, x)
        return self.out_proj(y * functional.silu(gate)), Carried(window[:, window.shape[1] - self._kernel + 1 :], state)

    def weights(self) -> BlockWeights:
        """For compiled code."""
        mixed = self.x_proj.weight.T
        arrays = (
            self.in_proj.weight.T,
            self.conv1d.weight[:, 0].T,
            self.conv1d.bias,
            functional.pad(mixed, (0, -mixed.shape[1] % VECTOR)),
            self.dt_proj.weight.T,
            self.dt_proj.bias,
            -torch.exp(self.A_log).T / math.log(2.0),
            self.D,
            self.out_proj.weight.T,
        )
        return BlockWeights(*(array.contiguous() for array in arrays))

    def _convolve(self, window: Tensor, length: int) -> Tensor:
        """The causal convolution of each channel: a few long sums beat a general convolution on a CPU."""
        taps = self.conv1d.weight[:, 0]
        made = torch.addcmul(self.conv1d.bias, window[:, :length], taps[:, 0])
        for tap in range(1, self._kernel):
            made = torch.addcmul(made, window[:, tap : tap + length], taps[:, tap])
        return made

    def _scan(
        self, x: Tensor, delta: Tensor, entering: Tensor, leaving: Tensor, state: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        rates = -torch.exp(self.A_log)
        if state is None and x.is_cuda and (fused := fused_scan()):
            return scan_with(fused, x, delta, rates, entering, leaving)
        return scan_in_torch(x, delta, rates, entering, leaving, state)
