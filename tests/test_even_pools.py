"""Adaptive average pools of torch models become plain ones where their windows are alike."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tcl_iree.frontend import extract, load_model
from tcl_iree.frontend.even_pools import even_pools
from tcl_iree.target import Target

CASES = {
    "even": ((4, 4), (1, 3, 16, 24), 1),
    "one number for both": (5, (2, 3, 10, 15), 1),
    "no batch": ((2, 2), (3, 8, 8), 1),
    "nothing to do": ((7, 7), (1, 3, 7, 7), 1),
    "rows as they are": ((None, 2), (1, 3, 7, 8), 1),
    "one row": ((1, 4), (1, 3, 6, 8), 1),
    "the whole image": ((1, 1), (1, 3, 6, 8), 0),
    "uneven": ((4, 4), (1, 3, 16, 18), 0),
    "larger than the image": ((8, 8), (1, 3, 4, 4), 0),
}


@pytest.mark.parametrize("decomposed", [False, True], ids=["exported", "decomposed"])
@pytest.mark.parametrize(("wanted", "shape", "replaced"), CASES.values(), ids=CASES)
def test_replacing_changes_no_result(wanted: object, shape: tuple[int, ...], replaced: int, decomposed: bool) -> None:
    module, image = nn.AdaptiveAvgPool2d(wanted), torch.randn(shape)  # type: ignore[arg-type]
    program = torch.export.export(module, (image,))
    program = program.run_decompositions({}) if decomposed else program
    assert even_pools(program) == replaced
    torch.testing.assert_close(program.module()(image), module(image))


def test_the_dispatch_is_a_pool(target: Target) -> None:
    model = load_model(nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.ReLU()), (torch.randn(1, 8, 16, 16),))
    kinds = [entry.workload.root.computes for entry in extract(model, target).dispatches]
    assert kinds == ["pool"]
