"""The ops of `benchmarks.ops`: each a tiny torch model whose dispatches are the ones real networks have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from tcl_iree.frontend import Model, load_model

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Op:
    """One op.

    Attributes:
        group: `contraction`, `convolution`, `other`, or `narrow` (f16 and i8, kept out of the means).
        module, inputs: what torch runs.
        numpy: the same with BLAS, where numpy has it.
        mlir: the model as text, where torch cannot export it.
        form: what it computes in words, for compilers that read neither torch nor MLIR; empty where none of them needs
            it. `norm` is batch norm as at inference.
    """

    group: str
    module: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]
    numpy: Callable[..., Any] | None = None
    mlir: str = ""
    form: str = ""


def model_of(op: Op, scratch: str) -> Model:
    """The op as a model; a file is written below `scratch` where it is given as text."""
    if not op.mlir:
        return load_model(op.module, op.inputs)
    path = Path(scratch) / "op.mlir"
    path.write_text(op.mlir)
    return Model("op", path, tuple(tensor.numpy() for tensor in op.inputs))


class Function(torch.nn.Module):
    """A function of tensors as a module; keyword tensors become parameters."""

    def __init__(self, function: Callable[..., torch.Tensor], **parameters: torch.Tensor) -> None:
        super().__init__()
        self._function = function
        self._names = tuple(parameters)
        for name, value in parameters.items():
            setattr(self, name, torch.nn.Parameter(value, requires_grad=False))

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Apply the function."""
        return self._function(*inputs, *(getattr(self, name) for name in self._names))


_I8 = """func.func @main(%a: tensor<{m}x{k}xi8>, %b: tensor<{k}x{n}xi8>) -> tensor<{m}x{n}xi32> {{
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<{m}x{n}xi32>
  %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<{m}x{n}xi32>) -> tensor<{m}x{n}xi32>
  %product = linalg.matmul ins(%a, %b : tensor<{m}x{k}xi8>, tensor<{k}x{n}xi8>) outs(%init : tensor<{m}x{n}xi32>) -> tensor<{m}x{n}xi32>
  return %product : tensor<{m}x{n}xi32>
}}
"""


def matmul(m: int, n: int, k: int) -> Op:
    """A plain product of two inputs."""
    return Op("contraction", Function(torch.matmul), (torch.randn(m, k), torch.randn(k, n)), np.matmul, form="matmul")


def matmul_bias_gelu(m: int, n: int, k: int) -> Op:
    """The first layer of a transformer's feed-forward block."""
    weights = {"weight": torch.randn(k, n) / k**0.5, "bias": torch.randn(n)}
    function = Function(lambda x, w, b: functional.gelu(x @ w + b), **weights)
    return Op("contraction", function, (torch.randn(m, k),), form="matmul, bias, gelu")


def batch_matmul(batch: int, m: int, n: int, k: int, transposed: bool) -> Op:
    """A product for each head; transposed: the right operand is stored (n, k), as keys are."""
    left = torch.randn(batch, m, k)
    if transposed:
        function = Function(lambda a, b: a @ b.transpose(1, 2))
        return Op(
            "contraction",
            function,
            (left, torch.randn(batch, n, k)),
            lambda a, b: a @ b.transpose(0, 2, 1),
            form="matmul, rhs transposed",
        )
    return Op("contraction", Function(torch.matmul), (left, torch.randn(batch, k, n)), np.matmul, form="matmul")


def attention(heads: int, length: int, size: int) -> Op:
    """Scaled dot-product attention."""
    inputs = tuple(torch.randn(1, heads, length, size) for _ in range(3))
    return Op("other", Function(functional.scaled_dot_product_attention), inputs)


def pointwise(inputs: int, outputs: int, size: int, stride: int = 1) -> Op:
    """A 1x1 convolution on a `size` x `size` image."""
    layer = torch.nn.Conv2d(inputs, outputs, 1, stride, bias=False)
    weight = layer.weight.detach().numpy().reshape(outputs, inputs)

    def in_numpy(image: np.ndarray) -> np.ndarray:
        return weight @ image[0, :, ::stride, ::stride].reshape(inputs, -1)

    return Op("convolution", layer, (torch.randn(1, inputs, size, size),), in_numpy, form="conv")


def conv_norm_relu(inputs: int, outputs: int, size: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> Op:
    """A convolution with batch norm and relu; `size` is that of the input image."""
    norm = torch.nn.BatchNorm2d(outputs)
    torch.nn.init.uniform_(norm.running_mean, -0.1, 0.1)
    torch.nn.init.uniform_(norm.running_var, 0.8, 1.2)
    layer = torch.nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    module = torch.nn.Sequential(layer, norm, torch.nn.ReLU())
    return Op("convolution", module, (torch.randn(1, inputs, size, size),), form="conv, norm, relu")


def softmax(rows: int, columns: int) -> Op:
    """Softmax over rows."""

    def in_numpy(x: np.ndarray) -> np.ndarray:
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    return Op("other", Function(lambda x: torch.softmax(x, -1)), (torch.randn(rows, columns),), in_numpy)


def layer_norm(rows: int, columns: int) -> Op:
    """Layer norm over rows."""
    return Op("other", torch.nn.LayerNorm(columns), (torch.randn(rows, columns),))


def max_pool(channels: int, size: int) -> Op:
    """ResNet's pooling after the stem."""
    return Op("other", torch.nn.MaxPool2d(3, 2, 1), (torch.randn(1, channels, size, size),))


def matmul_f16(m: int, n: int, k: int) -> Op:
    """A product of halves."""
    return Op("narrow", Function(torch.matmul), (torch.randn(m, k).half(), torch.randn(k, n).half()))


def matmul_i8(m: int, n: int, k: int) -> Op:
    """A product of bytes, summed in 32 bits."""
    inputs = tuple(torch.randint(-8, 8, shape, dtype=torch.int8) for shape in ((m, k), (k, n)))
    return Op("narrow", Function(torch._int_mm), inputs, mlir=_I8.format(m=m, n=n, k=k))


# Products are named m x n x k; images by the size of the input.
OPS: dict[str, Callable[[], Op]] = {
    "matmul 512x512x512": lambda: matmul(512, 512, 512),
    "matmul 500x500x500": lambda: matmul(500, 500, 500),
    "matmul 1024x1024x1024": lambda: matmul(1024, 1024, 1024),
    "matmul 128x3072x768 + bias + gelu": lambda: matmul_bias_gelu(128, 3072, 768),
    "matmul 197x768x768": lambda: matmul(197, 768, 768),
    "matmul 127x250x300": lambda: matmul(127, 250, 300),
    "matmul 1x4096x1024": lambda: matmul(1, 4096, 1024),
    "batch matmul 12x128x128x64": lambda: batch_matmul(12, 128, 128, 64, transposed=False),
    "batch matmul 12x128x128x64, rhs transposed": lambda: batch_matmul(12, 128, 128, 64, transposed=True),
    "attention 12 heads 128x64": lambda: attention(12, 128, 64),
    "conv 1x1 64->256 at 56": lambda: pointwise(64, 256, 56),
    "conv 1x1 1024->256 at 14": lambda: pointwise(1024, 256, 14),
    "conv 1x1 2048->512 at 7": lambda: pointwise(2048, 512, 7),
    "conv 1x1 256->512 at 56 stride 2": lambda: pointwise(256, 512, 56, 2),
    "conv 1x1 512->1024 at 28 stride 2": lambda: pointwise(512, 1024, 28, 2),
    "conv 1x1 1024->2048 at 14 stride 2": lambda: pointwise(1024, 2048, 14, 2),
    "conv 3x3 64 at 56 + bn + relu": lambda: conv_norm_relu(64, 64, 56),
    "conv 3x3 128 at 56 stride 2 + bn + relu": lambda: conv_norm_relu(128, 128, 56, stride=2),
    "conv 3x3 512 at 7 + bn + relu": lambda: conv_norm_relu(512, 512, 7),
    "conv 7x7 3->64 at 224 stride 2 + bn + relu": lambda: conv_norm_relu(3, 64, 224, 7, 2),
    "depthwise 3x3 144 at 56 + bn + relu": lambda: conv_norm_relu(144, 144, 56, groups=144),
    "depthwise 3x3 144 at 56 stride 2 + bn + relu": lambda: conv_norm_relu(144, 144, 56, stride=2, groups=144),
    "softmax 1536x128": lambda: softmax(1536, 128),
    "layer norm 128x768": lambda: layer_norm(128, 768),
    "max pool 3x3 stride 2, 64 at 112": lambda: max_pool(64, 112),
    "matmul f16 512x512x512": lambda: matmul_f16(512, 512, 512),
    "matmul i8 512x512x512": lambda: matmul_i8(512, 512, 512),
}


def build(name: str) -> Op:
    """An op with weights and inputs that are the same every time."""
    torch.manual_seed(0)
    made = OPS[name]()
    made.module.eval()
    return made
