"""Batch norms of torch models become part of the convolutions before them."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from tcl_iree.frontend import extract, load_model
from tcl_iree.frontend.batch_norms import fold_batch_norms
from tcl_iree.target import Target


def lively(module: nn.Module) -> nn.Module:
    """With statistics as if it had been trained."""
    torch.manual_seed(0)
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2.0)
            if part.affine:
                nn.init.normal_(part.weight)
                nn.init.normal_(part.bias)
    return module.eval()


class ReadTwice(nn.Module):
    """What the norm reads is a result as well."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)

    def forward(self, image: Tensor) -> Tensor:
        made = self.conv(image)
        return made + self.norm(made)


class SharedFilters(nn.Module):
    """One convolution before two norms."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.one, self.other = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.BatchNorm2d(8)

    def forward(self, image: Tensor) -> Tensor:
        return self.one(self.conv(image)) + self.other(self.conv(2.0 * image))


CASES = [
    pytest.param(nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8)), (1, 3, 9, 9), 1, id="no bias"),
    pytest.param(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()), (2, 3, 9, 9), 1, id="bias"),
    pytest.param(
        nn.Sequential(nn.Conv2d(4, 8, 3, 2, padding="valid", groups=4), nn.BatchNorm2d(8)), (1, 4, 9, 9), 1, id="groups"
    ),
    pytest.param(nn.Sequential(nn.Conv1d(3, 8, 3), nn.BatchNorm1d(8)), (1, 3, 9), 1, id="one dimension"),
    pytest.param(
        nn.Sequential(nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8)), (1, 3, 9, 9), 2,
        id="two",
    ),
    pytest.param(nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 8, 3)), (1, 3, 9, 9), 0, id="before"),
    pytest.param(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8, affine=False)), (1, 3, 9, 9), 0, id="no affine"),
    pytest.param(nn.Sequential(nn.ConvTranspose2d(3, 8, 3), nn.BatchNorm2d(8)), (1, 3, 9, 9), 0, id="transposed"),
    pytest.param(ReadTwice(), (1, 3, 9, 9), 0, id="read twice"),
    pytest.param(SharedFilters(), (1, 3, 9, 9), 0, id="shared filters"),
]  # fmt: skip


NORMS = (torch.ops.aten.batch_norm.default, torch.ops.aten._native_batch_norm_legit_no_training.default)


@pytest.mark.parametrize("decomposed", [False, True], ids=["as exported", "as AOT autograd writes it"])
@pytest.mark.parametrize(("module", "shape", "folded"), CASES)
def test_folding_changes_no_result(module: nn.Module, shape: tuple[int, ...], folded: int, decomposed: bool) -> None:
    module = lively(module)
    before = copy.deepcopy(module.state_dict())
    image = torch.randn(*shape)
    program = torch.export.export(module, (image,))
    if decomposed:
        program = program.run_decompositions()
    assert fold_batch_norms(program) == folded
    norms = [node for node in program.graph.nodes if node.target in NORMS]
    assert len(norms) == sum(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in module.modules()) - folded
    with torch.no_grad():
        torch.testing.assert_close(program.module()(image), module(image), rtol=1e-5, atol=1e-5)
    for name, value in module.state_dict().items():  # the user's own module is as it was
        assert torch.equal(value, before[name])


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        pytest.param(
            nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm1d(8)), (3, 10, 9), id="no batch: channels are rows"
        ),
        pytest.param(nn.Sequential(nn.Conv2d(3, 8, 3).bfloat16(), nn.BatchNorm2d(8)), (1, 3, 9, 9), id="two types"),
    ],
)
def test_a_norm_of_something_else_is_left_alone(module: nn.Module, shape: tuple[int, ...]) -> None:
    module = lively(module)
    image = torch.randn(*shape, dtype=module[0].weight.dtype)
    program = torch.export.export(module, (image,))
    assert fold_batch_norms(program) == 0
    with torch.no_grad():
        torch.testing.assert_close(program.module()(image), module(image))


def test_filters_that_want_gradients_keep_wanting_them() -> None:
    module = lively(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)))
    program = torch.export.export(module, (torch.randn(1, 3, 9, 9),))
    wanting = {name for name, value in program.state_dict.items() if value.requires_grad}
    assert fold_batch_norms(program) == 1
    assert {name for name, value in program.state_dict.items() if value.requires_grad} == wanting
    assert all(value.grad_fn is None for value in program.state_dict.values())


def test_a_dispatch_adds_one_bias_and_nothing_else(target: Target) -> None:
    module = lively(nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU()))
    (dispatch,) = extract(load_model(module, (torch.randn(1, 3, 9, 9),)), target).dispatches
    assert dispatch.workload.payload.count("dense<") == 1
    assert not {"arith.subf", "arith.divf", "math.rsqrt"} & set(dispatch.workload.payload.split())
