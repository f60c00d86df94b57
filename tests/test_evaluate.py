"""IREE's default code, our numpy evaluation and torch must agree on the named ops."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from tcl_iree.frontend import extract, load_model
from tcl_iree.measure.builder import Builder
from tcl_iree.measure.inputs import make_buffers, to_float
from tcl_iree.measure.runner import Runner
from tcl_iree.target import Target
from tcl_iree.workflows.trials import check_reference
from tcl_iree.workload.evaluate import evaluate
from tcl_iree.workload.model import Workload


class Op(torch.nn.Module):
    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(*inputs)


F = torch.nn.functional
CASES: dict[str, tuple[Callable[..., torch.Tensor], list[tuple[int, ...]]]] = {
    "matmul": (torch.matmul, [(33, 20), (20, 47)]),
    "matmul_transposed": (lambda a, b: a @ b.T, [(33, 20), (47, 20)]),
    "batch_matmul": (torch.bmm, [(3, 17, 20), (3, 20, 31)]),
    "linear_gelu": (lambda x, w, b: F.gelu(F.linear(x, w, b)), [(16, 24), (40, 24), (40,)]),
    "conv": (lambda x, w: F.conv2d(x, w), [(1, 5, 12, 12), (7, 5, 3, 3)]),
    "conv_strided": (lambda x, w: F.relu(F.conv2d(x, w, stride=2)), [(2, 5, 13, 13), (7, 5, 3, 3)]),
    "conv_dilated": (lambda x, w: F.conv2d(x, w, dilation=2), [(1, 4, 14, 14), (6, 4, 3, 3)]),
    "depthwise": (lambda x, w: F.conv2d(x, w, groups=8), [(1, 8, 12, 12), (8, 1, 3, 3)]),
    "conv_1x1_stride2": (lambda x, w: F.conv2d(x, w, stride=2), [(1, 16, 14, 14), (24, 16, 1, 1)]),
    "max_pool": (lambda x: F.max_pool2d(x, 3, 2), [(1, 8, 15, 15)]),
    "avg_pool": (lambda x: F.avg_pool2d(x, 2), [(1, 8, 16, 16)]),
    "softmax": (lambda x: torch.softmax(x, -1), [(12, 50)]),
    "layer_norm": (lambda x, g, b: F.layer_norm(x, (64,), g, b), [(10, 64), (64,), (64,)]),
    "sum": (lambda x: x.sum(-1), [(30, 77)]),
    "transpose_add": (lambda x, y: x.T + y, [(20, 30), (30, 20)]),
    "attention": (F.scaled_dot_product_attention, [(1, 2, 16, 8), (1, 2, 16, 8), (1, 2, 16, 8)]),
    "tanh_exp": (lambda x: torch.tanh(x) * torch.exp(-x), [(9, 33)]),
}  # fmt: skip


def dispatches(name: str, target: Target) -> list[Workload]:
    function, shapes = CASES[name]
    generator = torch.Generator().manual_seed(0)
    inputs = tuple(torch.randn(shape, generator=generator) for shape in shapes)
    return [entry.workload for entry in extract(load_model(Op(function), inputs), target).dispatches]


@pytest.mark.parametrize("name", CASES)
def test_iree_agrees_with_numpy(name: str, target: Target, builder: Builder, runner: Runner) -> None:
    found = dispatches(name, target)
    assert found
    for workload in found:
        artifact = builder.build_default(workload).artifact
        assert artifact
        check = check_reference(workload, artifact, runner)
        assert check.status == "confirmed", (workload.label, check)


def test_numpy_agrees_with_torch_on_a_single_dispatch(target: Target) -> None:
    (workload,) = dispatches("matmul", target)
    buffers = [to_float(array, "f32") for array in make_buffers(workload, 1)]
    ((_, result),) = evaluate(workload, buffers).items()
    by_shape = {array.shape: array for array in buffers}
    np.testing.assert_allclose(result, (torch.tensor(by_shape[33, 20]) @ torch.tensor(by_shape[20, 47])).numpy())


def test_a_wrong_default_would_be_noticed(target: Target, builder: Builder, runner: Runner, tmp_path: Path) -> None:
    (workload,) = dispatches("matmul", target)
    (other,) = dispatches("matmul_transposed", target)
    artifact = builder.build_default(other).artifact
    assert artifact
    assert check_reference(workload, artifact, runner).status == "wrong"
