"""`selective_scan.cpp`, compiled when first needed by whatever C++ compiler there is; without one, torch does it."""

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

_SOURCE = Path(__file__).with_name("selective_scan.cpp")
_FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fopenmp", "-shared", "-fPIC", "-std=c++17")
_SECONDS = 60
_LOG = logging.getLogger(__name__)


class BlockWeights(NamedTuple):
    """A block's weights, and the state it goes on from, as the compiled code wants them: input x output, states first.

    Attributes:
        mix: filled up with zeros to whole vectors.
        rates: in powers of two.
        earlier: inputs that the convolution still sees, step x channel.
        start: state x channel.
    """

    norm: Tensor
    into: Tensor
    taps: Tensor
    bias: Tensor
    mix: Tensor
    spread: Tensor
    spread_bias: Tensor
    rates: Tensor
    skip: Tensor
    out: Tensor
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
    blocks: tuple[BlockWeights, ...]


class _Block(ctypes.Structure):
    _fields_: ClassVar = [(name, ctypes.c_void_p) for name in BlockWeights._fields]


class _Shape(ctypes.Structure):
    _fields_: ClassVar = [
        *((name, ctypes.c_int64) for name in ("width", "channels", "rank", "mixed", "count", "kernel", "columns")),
        ("epsilon", ctypes.c_float),
    ]


class NativeScan:
    """The compiled functions, over tensors."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def forward(
        self, x: Tensor, delta: Tensor, rates: Tensor, entering: Tensor, leaving: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The scan's output, and its state after every step.

        Args:
            x, delta: batch x length x channel.
            rates: state x channel.
            entering, leaving: batch x length x state.
        """
        batch, length, channels = x.shape
        outputs = torch.empty_like(x)
        states = x.new_empty(batch, length, len(rates), channels)
        arrays = (x, delta, rates, entering, leaving, outputs, states)
        self._library.scan_forward(*map(_pointer, arrays), *_sizes(batch, length, channels, len(rates)), _threads())
        return outputs, states

    def backward(
        self,
        gradient: Tensor,
        x: Tensor,
        delta: Tensor,
        rates: Tensor,
        entering: Tensor,
        leaving: Tensor,
        states: Tensor,
    ) -> tuple[Tensor, ...]:
        """Gradients of x, delta, rates, entering and leaving."""
        batch, length, channels = x.shape
        made = [torch.empty_like(x), torch.empty_like(x), x.new_empty(batch, *rates.shape)]
        made += [torch.empty_like(entering), torch.empty_like(leaving)]
        arrays = (gradient, x, delta, rates, entering, leaving, states, *made)
        self._library.scan_backward(*map(_pointer, arrays), *_sizes(batch, length, channels, len(rates)), _threads())
        return made[0], made[1], made[2].sum(0), made[3], made[4]

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
        width, first = weights.kind.shape[1], weights.blocks[0]
        count, channels = first.rates.shape
        shape = _Shape(
            width, channels, len(first.spread), first.mix.shape[1], count, len(first.taps), columns, weights.epsilon
        )
        made = [_Block(*(_pointer(array).value for array in block)) for block in weights.blocks]
        blocks = (_Block * len(made))(*made)
        pooled = numbers.new_empty(batch, 2 * width)
        arrays = (numbers, weights.kind, weights.role, weights.number, weights.number_bias, weights.shared_last)
        given = [_pointer(array) for array in arrays]
        self._library.read_sequences(
            _whole(kinds), _whole(roles), given[0], _whole(lengths), *given[1:], _pointer(weights.shared_sum), blocks,
            ctypes.byref(shape), _pointer(pooled), *_sizes(batch, stride, shared, len(blocks)), _threads(),
        )  # fmt: skip
        return pooled


@cache
def native_scan() -> NativeScan | None:
    """The compiled functions; None where there is no C++ compiler, or `TCL_IREE_NATIVE` is 0."""
    if os.environ.get("TCL_IREE_NATIVE") == "0":
        return None
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        return None
    text = _SOURCE.read_text() + " ".join((compiler, *_FLAGS, host_cpu().fingerprint))
    path = default_cache_dir() / f"selective-scan-{hashlib.sha256(text.encode()).hexdigest()[:16]}.so"
    try:
        if not path.exists():
            _compile(compiler, path)
        return NativeScan(ctypes.CDLL(str(path)))
    except (OSError, subprocess.SubprocessError) as error:
        _LOG.warning("the fast scan cannot be compiled (%s); torch is used instead, which is slower", error)
        return None


def _compile(compiler: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        made = Path(scratch) / path.name
        command = [compiler, *_FLAGS, str(_SOURCE), "-o", str(made)]
        subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
        os.replace(made, path)


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
