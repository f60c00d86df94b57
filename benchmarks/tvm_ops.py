"""Ops of `benchmarks.op_list` in words and numbers, for TVM's side of `benchmarks.versus_tvm`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from benchmarks.op_list import OPS, Op, build


def expressible() -> list[str]:
    """Ops that TVM is asked for: contractions and convolutions in f32."""
    return [name for name in OPS if (op := build(name)).form and op.group in ("contraction", "convolution")]


def description(op: Op) -> dict[str, Any]:
    """What an op computes; batch norm is part of the weights by then."""
    layer = op.module[0] if isinstance(op.module, torch.nn.Sequential) else op.module
    made: dict[str, Any] = {
        "form": op.form.replace("norm", "bias"),
        "inputs": [list(tensor.shape) for tensor in op.inputs],
    }
    if isinstance(layer, torch.nn.Conv2d):
        made |= {"stride": layer.stride[0], "padding": int(layer.padding[0]), "groups": layer.groups}
    return made


def weights(op: Op) -> dict[str, np.ndarray]:
    """Its weights, in the order TVM is given them."""
    if isinstance(op.module, torch.nn.Sequential):
        layer, norm = op.module[0], op.module[1]
        factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        shift = norm.bias - norm.running_mean * factor
        made = {"weight": layer.weight * factor[:, None, None, None], "bias": shift[None, :, None, None]}
    else:
        made = dict(op.module.named_parameters())
    return {name: tensor.detach().numpy() for name, tensor in made.items()}
