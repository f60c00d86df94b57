"""The project's block is mamba-ssm's: same parameters, same outputs, same gradients."""

from __future__ import annotations

import platform
import sys
import types
from typing import Any

import pytest
import torch

from tcl_iree.learning.mamba_block import MambaBlock, scan_with

SIZES = [(16, 4, 4, 2, 7), (32, 16, 4, 2, 33), (48, 8, 4, 2, 1), (24, 8, 3, 3, 12)]


@pytest.fixture(scope="module")
def mamba_simple() -> Any:
    """mamba-ssm's own module, with its reference scan in place of the kernel that needs a GPU."""
    sys.modules.setdefault("selective_scan_cuda", types.ModuleType("selective_scan_cuda"))
    try:
        from mamba_ssm.modules import mamba_simple as found
        from mamba_ssm.ops.selective_scan_interface import selective_scan_ref
    except ImportError as error:
        if sys.platform == "linux" and platform.machine() == "x86_64":
            pytest.fail(f"mamba-ssm is not installed ({error}); `make test` installs it")
        pytest.skip(f"mamba-ssm does not install here: {error}")
    found.selective_scan_fn = selective_scan_ref
    return found


@pytest.mark.parametrize(("width", "states", "kernel", "expand", "length"), SIZES)
def test_outputs_and_gradients_equal_mamba_ssm(
    mamba_simple: Any, width: int, states: int, kernel: int, expand: int, length: int
) -> None:
    torch.manual_seed(width)
    theirs = mamba_simple.Mamba(width, states, kernel, expand, use_fast_path=False)
    ours = MambaBlock(width, states, kernel, expand)
    ours.load_state_dict(theirs.state_dict())
    inputs, weights = torch.randn(3, length, width), torch.randn(3, length, width)
    found = []
    for block in (ours, theirs):
        given = inputs.clone().requires_grad_()
        outputs = block(given)
        (outputs * weights).sum().backward()
        assert given.grad is not None
        gradients = {name: parameter.grad for name, parameter in block.named_parameters()}
        found.append((outputs.detach(), gradients | {"inputs": given.grad}))
    (our_outputs, our_gradients), (their_outputs, their_gradients) = found
    assert (our_outputs - their_outputs).abs().max() <= 1e-5
    assert our_gradients.keys() == their_gradients.keys()
    for name, gradient in our_gradients.items():
        assert (gradient - their_gradients[name]).abs().max() <= 1e-5, name


def test_weights_load_both_ways(mamba_simple: Any) -> None:
    ours, theirs = MambaBlock(32, 8), mamba_simple.Mamba(32, 8, use_fast_path=False)
    theirs.load_state_dict(ours.state_dict())
    inputs = torch.randn(2, 9, 32)
    assert torch.allclose(ours(inputs), theirs(inputs), atol=1e-5)


def test_a_scan_of_mamba_ssms_signature_gives_the_same(mamba_simple: Any) -> None:
    """How its fused kernel is called on a GPU, shown with its reference of the same signature."""
    torch.manual_seed(0)
    block = MambaBlock(16, 4)
    x, delta = torch.randn(2, 9, 32), torch.rand(2, 9, 32)
    entering, leaving = torch.randn(2, 9, 4), torch.randn(2, 9, 4)
    plain, plain_state = block._scan(x, delta, entering, leaving, None)
    made, state = scan_with(mamba_simple.selective_scan_fn, x, delta, -torch.exp(block.A_log), entering, leaving)
    assert torch.allclose(made, plain, atol=1e-5)
    assert torch.allclose(state, plain_state, atol=1e-5)


def test_going_on_from_a_state_equals_reading_in_one_go() -> None:
    torch.manual_seed(0)
    block = MambaBlock(16, 4)
    inputs = torch.randn(1, 12, 16)
    whole = block(inputs)
    front, carried = block.advance(inputs[:, :5], None)
    rest, _ = block.advance(inputs[:, 5:].expand(3, -1, -1), carried)
    assert torch.allclose(front, whole[:, :5], atol=1e-6)
    assert torch.allclose(rest, whole[:, 5:].expand(3, -1, -1), atol=1e-5)
