"""The pieces cost models are made of, against plain definitions of the same things."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from tcl_iree.learning.mamba_block import MambaBlock
from tcl_iree.learning.metrics import Ranked, pairwise_accuracy, random_top_k, regret, top_k
from tcl_iree.learning.native_code import native_code
from tcl_iree.learning.ranking import lambda_rank


def plain_mamba(block: MambaBlock, inputs: torch.Tensor) -> torch.Tensor:
    """The block's definition, one number of state and one step at a time."""
    rank, states = block.dt_proj.in_features, block.A_log.shape[1]
    x, gate = (inputs @ block.in_proj.weight.T).chunk(2, dim=-1)
    kernel = block.conv1d.weight.shape[-1]
    padded = torch.nn.functional.pad(x, (0, 0, kernel - 1, 0))
    x = sum(padded[:, tap : tap + x.shape[1]] * block.conv1d.weight[:, 0, tap] for tap in range(kernel))
    x = torch.nn.functional.silu(x + block.conv1d.bias)
    projected = x @ block.x_proj.weight.T
    delta = torch.nn.functional.softplus(projected[..., :rank] @ block.dt_proj.weight.T + block.dt_proj.bias)
    entering, leaving = projected[..., rank : rank + states], projected[..., rank + states :]
    state = torch.zeros(inputs.shape[0], x.shape[-1], states)
    outputs = []
    for step in range(inputs.shape[1]):
        decay = torch.exp(delta[:, step, :, None] * -torch.exp(block.A_log))
        state = decay * state + (delta[:, step] * x[:, step])[..., None] * entering[:, step, None, :]
        outputs.append((state * leaving[:, step, None, :]).sum(-1) + block.D * x[:, step])
    return (torch.stack(outputs, 1) * torch.nn.functional.silu(gate)) @ block.out_proj.weight.T


@pytest.fixture(params=["native", "torch"])
def scan(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to run the recurrence; a C++ compiler is part of what the tests need."""
    if request.param == "torch":
        monkeypatch.setattr("tcl_iree.learning.mamba_block.native_code", lambda: None)
    else:
        assert native_code(), "the compiled scan must be there"
    return request.param


@pytest.mark.usefixtures("scan")
@pytest.mark.parametrize(("width", "states", "length"), [(16, 4, 7), (24, 8, 1), (32, 16, 33)])
def test_the_block_is_its_definition_and_so_are_its_gradients(width: int, states: int, length: int) -> None:
    torch.manual_seed(0)
    block = MambaBlock(width, states)
    inputs = torch.randn(3, length, width, requires_grad=True)
    weights = torch.randn(3, length, width)
    found = []
    for forward in (block, lambda given: plain_mamba(block, given)):
        block.zero_grad()
        inputs.grad = None
        outputs = forward(inputs)
        (outputs * weights).sum().backward()
        found.append((outputs.detach(), inputs.grad, [parameter.grad.clone() for parameter in block.parameters()]))
    (ours, ours_input, ours_all), (plain, plain_input, plain_all) = found
    assert torch.allclose(ours, plain, atol=1e-5)
    assert torch.allclose(ours_input, plain_input, atol=1e-5)
    assert all(torch.allclose(one, other, atol=1e-4) for one, other in zip(ours_all, plain_all, strict=True))


def test_without_a_compiler_there_is_no_native_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TCL_IREE_CACHE", str(tmp_path))
    for compiler in ("/nonexistent/c++", "/bin/false"):
        monkeypatch.setenv("CXX", compiler)
        native_code.cache_clear()
        assert native_code() is None
    native_code.cache_clear()


@pytest.mark.usefixtures("scan")
def test_later_steps_do_not_change_earlier_ones() -> None:
    torch.manual_seed(0)
    block = MambaBlock(16)
    inputs = torch.randn(2, 9, 16)
    changed = inputs.clone()
    changed[:, 5:] += 1.0
    assert torch.equal(block(inputs)[:, :5], block(changed)[:, :5])
    assert not torch.equal(block(inputs)[:, 5:], block(changed)[:, 5:])


def test_ranking_loss_falls_as_the_order_gets_right() -> None:
    labels = torch.tensor([[1.0, 0.6, 0.3, 0.0]])
    valid = torch.ones(1, 4, dtype=torch.bool)
    right, wrong = (lambda_rank(torch.tensor([scores]), labels, valid) for scores in ([3.0, 2, 1, 0], [0.0, 1, 2, 3]))
    assert right < wrong


def test_ranking_loss_is_that_of_its_formula() -> None:
    scores, labels = [0.3, -0.2, 0.9], [0.2, 1.0, 0.5]
    order = sorted(range(3), key=lambda index: -scores[index])
    discount = {index: 1 / math.log2(1 + place) for place, index in enumerate(order, 1)}
    best = sum((2**label - 1) / math.log2(1 + place) for place, label in enumerate(sorted(labels)[::-1], 1))
    wanted = 0.0
    for i in range(3):
        for j in range(3):
            if labels[i] > labels[j]:
                weight = abs(discount[i] - discount[j]) * abs(2 ** labels[i] - 2 ** labels[j]) / best
                wanted += weight * math.log(1 + math.exp(scores[j] - scores[i]))
    found = lambda_rank(torch.tensor([scores]), torch.tensor([labels]), torch.ones(1, 3, dtype=torch.bool))
    assert found.item() == pytest.approx(wanted, rel=1e-5)


def test_padding_does_not_change_the_ranking_loss_and_gradients_are_finite() -> None:
    torch.manual_seed(1)
    scores, labels = torch.randn(2, 5), torch.rand(2, 5)
    valid = torch.ones(2, 5, dtype=torch.bool)
    padded = torch.cat([scores, torch.full((2, 3), 9.0)], 1).requires_grad_()
    more = torch.cat([labels, torch.ones(2, 3)], 1)
    mask = torch.cat([valid, torch.zeros(2, 3, dtype=torch.bool)], 1)
    loss = lambda_rank(padded, more, mask)
    assert loss.item() == pytest.approx(lambda_rank(scores, labels, valid).item(), rel=1e-5)
    loss.backward()
    assert padded.grad is not None
    assert torch.isfinite(padded.grad).all()
    assert not padded.grad[:, 5:].any()


def pool(seconds: list[float], scores: list[float], network: str = "a", weight: float = 1.0) -> Ranked:
    return Ranked("w", network, weight, 8.0, np.array(seconds), np.array(scores, float))


def test_top_k_in_both_forms() -> None:
    pools = [pool([4, 2, 1], [0, 2, 1], "a", 2.0), pool([10, 5], [1, 0], "b")]
    assert top_k(pools, 1) == {"mean": pytest.approx((0.5 + 0.5) / 2), "sums": pytest.approx((2 + 5) / (4 + 10))}
    assert top_k(pools, 3) == {"mean": 1.0, "sums": 1.0}


def test_a_picked_failure_costs_what_the_default_does() -> None:
    failed = pool([4, float("nan"), 2], [0, 5, 1])
    assert failed.best_of_first(1) == 8
    assert regret(failed) == pytest.approx(3.0)
    assert top_k([failed], 1)["sums"] == pytest.approx(0.25)
    assert pool([float("nan")], [1]).best() == 8
    slow = pool([10, float("nan")], [0, 1])
    assert top_k([slow], 1)["sums"] == 1.0, "no failure is better than the best candidate"
    assert regret(slow) == 0.0


def test_pairs_in_order() -> None:
    assert pairwise_accuracy(pool([3, 2, 1], [1, 2, 3])) == 1.0
    assert pairwise_accuracy(pool([3, 2, 1], [3, 2, 1])) == 0.0
    assert pairwise_accuracy(pool([3, 2, 1], [0, 0, 0])) == 0.5


def test_random_choice_is_worse_than_a_right_ranking() -> None:
    right = [pool([5, 4, 3, 2, 1], [1, 2, 3, 4, 5])]
    assert random_top_k(right, 1, np.random.default_rng(0))["sums"] < top_k(right, 1)["sums"] == 1.0
