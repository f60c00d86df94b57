"""Batch norms of an exported torch model become part of the convolutions before them.

    y = conv(x, W) + b                 y = conv(x, s W) + (s (b - mean) + beta)
    z = s (y - mean) + beta      =>
    with s = gamma / sqrt(var + eps)

Their statistics are constants, so this can be done once. IREE folds no batch norm itself: it would subtract, multiply
twice and add for every element of every image.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch

_aten = torch.ops.aten
_CONVOLUTIONS = {
    getattr(op, overload) for op in (_aten.conv1d, _aten.conv2d, _aten.conv3d) for overload in ("default", "padding")
}


@dataclass(frozen=True)
class _Norm:
    """A batch norm in a graph; gamma and beta may be missing."""

    result: torch.fx.Node
    image: torch.fx.Node
    gamma: torch.fx.Node | None
    beta: torch.fx.Node | None
    mean: torch.fx.Node
    variance: torch.fx.Node
    epsilon: float


def fold_batch_norms(program: torch.export.ExportedProgram) -> int:
    """Fold every batch norm whose input is a convolution that nothing else reads; returns how many.

    The module that was exported keeps its weights: the program gets new ones.
    """
    graph = program.graph_module.graph
    folded = 0
    for node in list(graph.nodes):
        if (norm := _norm(node)) and _is_convolution(norm.image) and _fold(norm, program):
            folded += 1
    if folded:
        graph.eliminate_dead_code()
        program.graph_module.recompile()
    return folded


def _norm(node: torch.fx.Node) -> _Norm | None:
    """The batch norm that a node is the result of, as torch.export or as AOT autograd writes it."""
    if node.target == _aten.batch_norm.default:
        image, gamma, beta, mean, variance, training, _, epsilon, *_ = node.args
        return None if training else _Norm(node, image, gamma, beta, mean, variance, epsilon)
    if node.target == operator.getitem and node.args[1] == 0:
        several = node.args[0]
        if several.target == _aten._native_batch_norm_legit_no_training.default:
            image, gamma, beta, mean, variance, _, epsilon = several.args
            return _Norm(node, image, gamma, beta, mean, variance, epsilon)
    return None


def _is_convolution(node: torch.fx.Node) -> bool:
    """Whether it is one whose filters lie by output channel."""
    if node.target == _aten.convolution.default:
        transposed = node.args[6]
        return not transposed
    return node.target in _CONVOLUTIONS


@torch.no_grad()
def _fold(norm: _Norm, program: torch.export.ExportedProgram) -> bool:
    convolution, gamma, beta, mean, variance = norm.image, norm.gamma, norm.beta, norm.mean, norm.variance
    weight, bias = convolution.args[1], convolution.args[2] if len(convolution.args) > 2 else None
    nodes = [node for node in (weight, bias, gamma, beta, mean, variance) if node is not None]
    known = {node: value for node in nodes if (value := _value(node, program)) is not None}
    # What others read too must stay as it is; the new bias takes the place of the norm's.
    own = [convolution, weight, beta]
    if len(known) < len(set(nodes)) or any(node is None or len(node.users) != 1 for node in own):
        return False
    filters = known[weight]
    # A norm may keep another type than its convolution, and without a batch the norm's channels are image rows.
    if len({value.dtype for value in known.values()}) > 1 or filters.dim() != convolution.meta["val"].dim():
        return False
    scale = torch.rsqrt(known[variance].double() + norm.epsilon)
    if gamma is not None:
        scale = scale * known[gamma].double()
    before = known[bias].double() if bias is not None else 0.0
    _replace(weight, filters.double() * scale.reshape(-1, *[1] * (filters.dim() - 1)), program)
    _replace(beta, scale * (before - known[mean].double()) + known[beta].double(), program)
    convolution.args = (*convolution.args[:2], beta, *convolution.args[3:])
    norm.result.replace_all_uses_with(convolution)
    norm.result.graph.erase_node(norm.result)
    return True


def _value(node: Any, program: torch.export.ExportedProgram) -> torch.Tensor | None:
    """The constant that a node stands for; None if it is computed or given."""
    name = _state_name(node, program)
    return program.state_dict.get(name) if name else None


def _replace(node: Any, value: torch.Tensor, program: torch.export.ExportedProgram) -> None:
    name = _state_name(node, program)
    assert name is not None
    before = program.state_dict[name]
    made: torch.Tensor = value.to(before.dtype)
    program.state_dict[name] = torch.nn.Parameter(made, before.requires_grad) if _is_parameter(before) else made


def _state_name(node: Any, program: torch.export.ExportedProgram) -> str | None:
    signature = program.graph_signature
    return signature.inputs_to_parameters.get(node.name) or signature.inputs_to_buffers.get(node.name)


def _is_parameter(value: torch.Tensor) -> bool:
    return isinstance(value, torch.nn.Parameter)
