"""The peers that models and ops are measured beside; each runs one of them in a process of its own.

Libraries are imported where they are used: a process has only those its peer needs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

Call = Callable[[], Any]


class Peer(Protocol):
    """One way to run a network.

    Attributes:
        about: the library with its version, and how it was asked to run.
    """

    about: str

    def bind(self, arrays: Sequence[np.ndarray]) -> Call:
        """A call with these inputs, as near to the library as its users get."""

    def read(self, result: Any) -> list[np.ndarray]:
        """What a call returned, as arrays."""


def network(name: str) -> tuple[Any, tuple[Any, ...]]:
    """A network of the zoo and its inputs, with weights that are the same in every process."""
    import torch

    from tcl_iree.frontend import zoo

    torch.manual_seed(0)
    return zoo.build(name)


class Iree:
    """A compiled module."""

    def __init__(self, path: str, device: str, flags: Sequence[str], about: str) -> None:
        from benchmarks.iree_module import IreeModule
        from tcl_iree.measure.device import open_device

        module = IreeModule(open_device(device, flags), path)
        self.about, self.bind, self.read = about, module.bind, module.read


class Torch:
    """Torch eager, with weights and images in one of its two memory layouts."""

    def __init__(self, name: str, threads: int, channels_last: bool) -> None:
        import torch

        torch.set_num_threads(threads)
        self._format = torch.channels_last if channels_last else torch.contiguous_format
        self._module = network(name)[0].to(memory_format=self._format)
        self.about = f"torch {torch.__version__}, {'channels last' if channels_last else 'contiguous'}"

    def bind(self, arrays: Sequence[np.ndarray]) -> Call:
        """A call of the module."""
        import torch

        tensors = [torch.from_numpy(array) for array in arrays]
        laid_out = [tensor.contiguous(memory_format=self._format) if tensor.ndim == 4 else tensor for tensor in tensors]

        def call() -> torch.Tensor:
            with torch.inference_mode():
                return self._module(*laid_out)

        return call

    def read(self, result: Any) -> list[np.ndarray]:
        """The tensors as arrays."""
        return _arrays(result)


class TorchOp:
    """Torch eager on one of the ops of `benchmarks.op_list`."""

    def __init__(self, name: str, threads: int) -> None:
        import torch

        from benchmarks.op_list import build

        torch.set_num_threads(threads)
        self._module = build(name).module
        self.about = f"torch {torch.__version__}"

    def bind(self, arrays: Sequence[np.ndarray]) -> Call:
        """A call of the module."""
        import torch

        tensors = [torch.from_numpy(array) for array in arrays]

        def call() -> torch.Tensor:
            with torch.inference_mode():
                return self._module(*tensors)

        return call

    def read(self, result: Any) -> list[np.ndarray]:
        """The tensors as arrays."""
        return _arrays(result)


class TorchCompile:
    """Torch's own compiler, weights frozen into the code: it packs them and chooses layouts itself."""

    def __init__(self, name: str, threads: int, mode: str, directory: str) -> None:
        # Kernels are compared anew in every run: what an earlier one found beside other load must not count.
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = directory
        import torch
        import torch._inductor.config as inductor

        torch.set_num_threads(threads)
        inductor.freezing = True
        self._module = torch.compile(network(name)[0], mode=mode)
        self.about = f"torch {torch.__version__}, inductor, frozen, mode {mode}"

    def bind(self, arrays: Sequence[np.ndarray]) -> Call:
        """A call of the compiled module; the first compiles."""
        import torch

        tensors = [torch.from_numpy(array) for array in arrays]

        def call() -> torch.Tensor:
            with torch.no_grad():  # what freezing asks for
                return self._module(*tensors)

        return call

    def read(self, result: Any) -> list[np.ndarray]:
        """The tensors as arrays."""
        return _arrays(result)


class OnnxRuntime:
    """onnxruntime's CPU provider."""

    def __init__(self, path: str, threads: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.about = f"onnxruntime {onnxruntime.__version__}"

    def bind(self, arrays: Sequence[np.ndarray]) -> Call:
        """A run of the session."""
        names = [entry.name for entry in self._session.get_inputs()]
        feed = dict(zip(names, arrays, strict=True))
        return lambda: self._session.run(None, feed)

    def read(self, result: Any) -> list[np.ndarray]:
        """They are arrays already."""
        return list(result)


class OpenVino:
    """openvino's CPU plugin, in f32 as all others: by itself it would take bf16 where the CPU has it."""

    def __init__(self, path: str, threads: int) -> None:
        import openvino

        wanted = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
        self._compiled = openvino.Core().compile_model(Path(path), "CPU", wanted)
        self.about = f"openvino {openvino.__version__.partition('-')[0]}"

    def bind(self, arrays: Sequence[np.ndarray]) -> Call:
        """A request that has its inputs."""
        import openvino

        request = self._compiled.create_infer_request()
        for index, array in enumerate(arrays):
            request.set_input_tensor(index, openvino.Tensor(array))
        return lambda: request.infer(share_outputs=True)

    def read(self, result: Any) -> list[np.ndarray]:
        """Copies: the request's own memory is written again by the next call."""
        return [np.array(result[index]) for index in range(len(result))]


class Tvm:
    """A module that TVM compiled; it needs an interpreter that has TVM.

    Args:
        path: the module.
        weights: its weights in order, in a file of numpy's; none if it has none.
    """

    def __init__(self, path: str, weights: str, about: str) -> None:
        import tvm
        from tvm import relax

        self._tensor = tvm.runtime.tensor
        machine = relax.VirtualMachine(tvm.runtime.load_module(path), tvm.cpu())
        self._main, self._packed, self.about = machine["main"], [], about
        if weights:  # packed once, as a model's are when it is loaded
            with np.load(weights) as held:
                plain = [self._tensor(held[name]) for name in held.files]
            self._packed = list(machine["main_transform_params"](plain))

    def bind(self, arrays: Sequence[np.ndarray]) -> Call:
        """A call of the virtual machine."""
        given = [*map(self._tensor, arrays), *self._packed]
        return lambda: self._main(*given)

    def read(self, result: Any) -> list[np.ndarray]:
        """The one result."""
        return [result.numpy()]


def _arrays(tensors: Any) -> list[np.ndarray]:
    return [tensor.contiguous().numpy() for tensor in (tensors if isinstance(tensors, tuple) else (tensors,))]


PEERS: dict[str, Callable[..., Peer]] = {
    "iree": Iree,
    "torch": Torch,
    "torch op": TorchOp,
    "torch.compile": TorchCompile,
    "onnxruntime": OnnxRuntime,
    "openvino": OpenVino,
    "tvm": Tvm,
}
