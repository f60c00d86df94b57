"""The C++ below `kernels/`, compiled when first needed by whatever compiler there is; without one, torch does it."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from tcl_iree.hardware import host_cpu
from tcl_iree.measure.cache import default_cache_dir

_KERNELS = Path(__file__).with_name("kernels")
_FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fopenmp", "-shared", "-fPIC", "-std=c++17")
_SECONDS = 60
_LOG = logging.getLogger(__name__)


class BlockWeights(NamedTuple):
    """A block's weights as the compiled code wants them: input x output, states first.

    Attributes:
        mix: filled up with zeros to whole vectors.
        rates: in powers of two.
    """

    into: Tensor
    taps: Tensor
    bias: Tensor
    mix: Tensor
    spread: Tensor
    spread_bias: Tensor
    rates: Tensor
    skip: Tensor
    out: Tensor


class GoingOn(NamedTuple):
    """What a block goes on from in the middle of a sequence, and the norm before it.

    Attributes:
        earlier: inputs that the convolution still sees, step x channel.
        start: state x channel.
    """

    norm: Tensor
    earlier: Tensor
    start: Tensor


class SequenceWeights(NamedTuple):
    """What turns rows of a sequence into numbers, and what the rows that all sequences share leave behind.

    Attributes:
        number: column x width.
        epsilon: of the norms.
        shared_last, shared_sum: over the rows at the front.
    """

    kind: Tensor
    role: Tensor
    number: Tensor
    number_bias: Tensor
    epsilon: float
    shared_last: Tensor
    shared_sum: Tensor
    blocks: tuple[tuple[BlockWeights, GoingOn], ...]


class _Block(ctypes.Structure):
    _fields_: ClassVar = [(name, ctypes.c_void_p) for name in (*BlockWeights._fields, *GoingOn._fields)]


class _Shape(ctypes.Structure):
    _fields_: ClassVar = [
        *((name, ctypes.c_int64) for name in ("width", "channels", "rank", "mixed", "count", "kernel", "columns")),
        ("epsilon", ctypes.c_float),
    ]


class NativeCode:
    """The compiled functions, over tensors."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def block(self, inputs: Tensor, weights: BlockWeights) -> Tensor:
        """What a block makes of whole sequences: batch x length x width."""
        outputs = torch.empty_like(inputs)
        self._library.block_forward(
            _pointer(inputs), _pointer(outputs), ctypes.byref(_block(weights)), ctypes.byref(_shape(weights)),
            *_sizes(*inputs.shape[:2]), _threads(),
        )  # fmt: skip
        return outputs

    def block_backward(self, gradient: Tensor, inputs: Tensor, weights: BlockWeights) -> tuple[Tensor, BlockWeights]:
        """Gradients of a block's inputs and weights, given that of its outputs."""
        slopes = torch.empty_like(inputs)
        room, threads = sum(weight.numel() for weight in weights), torch.get_num_threads()
        summed = inputs.new_zeros(threads, room)
        turned = [array.T.contiguous() for array in (weights.into, weights.mix, weights.out)]
        self._library.block_backward(
            _pointer(gradient), _pointer(inputs), ctypes.byref(_block(weights)), *map(_pointer, turned),
            _pointer(slopes), _pointer(summed), *_sizes(room), ctypes.byref(_shape(weights)),
            *_sizes(*inputs.shape[:2]), _threads(),
        )  # fmt: skip
        parts = summed.sum(0).split([weight.numel() for weight in weights])
        return slopes, BlockWeights(*(part.view_as(weight) for part, weight in zip(parts, weights, strict=True)))

    def read_sequences(
        self, kinds: Tensor, roles: Tensor, numbers: Tensor, lengths: Tensor, shared: int, weights: SequenceWeights
    ) -> Tensor:
        """The last row and the mean over all rows of each sequence; no gradients.

        Args:
            kinds, roles: batch x length; `numbers` has one more dimension.
            lengths: rows of each sequence that are not padding.
            shared: so many rows at the front are the same for all.
        """
        batch, stride, columns = numbers.shape
        width = weights.kind.shape[1]
        shape = _shape(weights.blocks[0][0], columns, weights.epsilon)
        blocks = (_Block * len(weights.blocks))(*(_block(*given) for given in weights.blocks))
        pooled = numbers.new_empty(batch, 2 * width)
        arrays = (numbers, weights.kind, weights.role, weights.number, weights.number_bias, weights.shared_last)
        given = [_pointer(array) for array in arrays]
        self._library.read_sequences(
            _whole(kinds), _whole(roles), given[0], _whole(lengths), *given[1:], _pointer(weights.shared_sum), blocks,
            ctypes.byref(shape), _pointer(pooled), *_sizes(batch, stride, shared, len(blocks)), _threads(),
        )  # fmt: skip
        return pooled


@cache
def native_code() -> NativeCode | None:
    """The compiled functions; None where there is no C++ compiler, or `TCL_IREE_NATIVE` is 0."""
    if os.environ.get("TCL_IREE_NATIVE") == "0":
        return None
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        return None
    texts = [path.read_text() for path in sorted(_KERNELS.iterdir())]
    text = "".join(texts) + " ".join((compiler, *_FLAGS, host_cpu().fingerprint))
    path = default_cache_dir() / f"kernels-{hashlib.sha256(text.encode()).hexdigest()[:16]}.so"
    try:
        if not path.exists():
            _compile(compiler, path)
        return NativeCode(ctypes.CDLL(str(path)))
    except (OSError, subprocess.SubprocessError) as error:
        _LOG.warning("the fast kernels cannot be compiled (%s); torch is used instead, which is slower", error)
        return None


def _compile(compiler: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        made = Path(scratch) / path.name
        command = [compiler, *_FLAGS, *map(str, sorted(_KERNELS.glob("*.cpp"))), "-o", str(made)]
        subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
        os.replace(made, path)


def _block(weights: BlockWeights, going_on: GoingOn | None = None) -> _Block:
    return _Block(*(_pointer(array).value for array in (*weights, *(going_on or ()))))


def _shape(weights: BlockWeights, columns: int = 0, epsilon: float = 0.0) -> _Shape:
    width, both = weights.into.shape
    rank, mixed, count, kernel = len(weights.spread), weights.mix.shape[1], len(weights.rates), len(weights.taps)
    return _Shape(width, both // 2, rank, mixed, count, kernel, columns, epsilon)


def _pointer(tensor: Tensor) -> Any:
    assert tensor.is_contiguous()
    assert tensor.dtype == torch.float32
    return ctypes.c_void_p(tensor.data_ptr())


def _whole(tensor: Tensor) -> Any:
    assert tensor.is_contiguous()
    assert tensor.dtype == torch.int64
    return ctypes.c_void_p(tensor.data_ptr())


def _sizes(*numbers: int) -> list[Any]:
    return [ctypes.c_int64(number) for number in numbers]


def _threads() -> Any:
    return ctypes.c_int(torch.get_num_threads())
