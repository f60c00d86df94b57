"""Run whole compiled models inside a worker's child: signatures, outputs, interleaved timing."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import iree.runtime as runtime
import numpy as np

from tcl_iree.measure.device import open_device, read_array

# Rounds after which, and after so many more each time, it is seen whether that is enough.
_SETTLED_AFTER = 32
_TENSOR = re.compile(r"(?:tensor|%\w+: tensor)<([^>]*)>")
_NUMPY = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i16": np.int16,
    "i8": np.int8, "i1": np.bool_,
}  # fmt: skip


class CompiledModel:
    """A model's public function, ready to call."""

    def __init__(self, device: runtime.HalDevice, path: str) -> None:
        config = runtime.Config(device=device)
        module = runtime.VmModule.mmap(config.vm_instance, path)
        context = runtime.SystemContext(vm_modules=[module], config=config)
        bound = context.modules[module.name]
        self.name = _entry(module)
        self._call = bound[self.name]
        self._context = context

    @property
    def inputs(self) -> list[tuple[tuple[int, ...], str]]:
        """Shape and element type of every input."""
        return _inputs(self._call.vm_function.reflection.get("iree.abi.declaration", ""))

    def __call__(self, inputs: list[Any]) -> list[Any]:
        """Call and wait; results stay on the device."""
        results = self._call(*inputs)
        return list(results) if isinstance(results, list | tuple) else [results]


def signature(path: str, device: str, flags: list[str]) -> tuple[str, list[tuple[tuple[int, ...], str]]]:
    """Name and inputs of a compiled model's public function."""
    model = CompiledModel(open_device(device, flags), path)
    return model.name, model.inputs


def outputs_of(path: str, device: str, flags: list[str], draws: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
    """What a model computes from each draw of inputs."""
    model = CompiledModel(opened := open_device(device, flags), path)
    results = []
    for draw in draws:
        arrays = [runtime.asdevicearray(opened, array) for array in draw]
        results.append([read_array(opened, output) for output in model(arrays)])
    return results


def interleave(
    paths: dict[str, str],
    device: str,
    flags: list[str],
    inputs: list[np.ndarray],
    seconds: float,
    min_rounds: int,
    enough: float,
) -> dict[str, list[float]]:
    """Latencies of several compiled models, one call each in turn, for about `seconds`.

    Args:
        enough: stop sooner if by then the standard error of each one's ratio to the first is no more; 0 never does.
    """
    opened = open_device(device, flags)
    arrays = [runtime.asdevicearray(opened, array) for array in inputs]
    models = {name: CompiledModel(opened, path) for name, path in paths.items()}
    for model in models.values():
        model(arrays)
    taken: dict[str, list[float]] = {name: [] for name in models}
    deadline = time.monotonic() + seconds
    rounds = 0
    while rounds < min_rounds or (time.monotonic() < deadline and rounds < 1000 and not settled(taken, enough)):
        rounds += 1
        for name, model in models.items():
            started = time.perf_counter()
            model(arrays)
            taken[name].append(time.perf_counter() - started)
    return taken


def settled(taken: dict[str, list[float]], enough: float) -> bool:
    """Whether enough rounds were timed for ratios to the first of this standard error; looked at now and then."""
    logs = np.log(np.array(list(taken.values())))
    rounds = logs.shape[1]
    if enough <= 0 or rounds < _SETTLED_AFTER or rounds % _SETTLED_AFTER:
        return False
    errors = (logs - logs[0]).std(axis=1, ddof=1) / np.sqrt(rounds)
    return bool(errors.max() <= enough)


def _entry(module: runtime.VmModule) -> str:
    names = [name for name in module.function_names if not name.startswith("__")]
    declared = [name for name in names if "$async" not in name]
    if "main" in declared or not declared:
        return "main"
    return declared[0]


def _inputs(declaration: str) -> list[tuple[tuple[int, ...], str]]:
    """Read `sync func @main(%input0: tensor<4x8xf32>) -> (%output0: tensor<4xf32>)`."""
    head = declaration.partition(" -> ")[0]
    found = []
    for inner in _TENSOR.findall(head):
        *sizes, dtype = inner.split("x")
        if not all(size.isdigit() for size in sizes) or dtype not in _NUMPY:
            raise ValueError(f"input tensor<{inner}> has no fixed shape and type; give example inputs")
        found.append((tuple(int(size) for size in sizes), dtype))
    return found


def random_inputs(inputs: list[tuple[tuple[int, ...], str]], seed: int) -> list[np.ndarray]:
    """Inputs for a model of which nothing but the types is known; integers stay small (they may be indices)."""
    rng = np.random.default_rng(seed)
    made: list[np.ndarray] = []
    for shape, dtype in inputs:
        kind = _NUMPY[dtype]
        if np.issubdtype(kind, np.floating):
            made.append(rng.standard_normal(shape).astype(kind))
        else:
            made.append(rng.integers(0, 2 if dtype == "i1" else 16, shape).astype(kind))
    return made


def redrawn(inputs: list[np.ndarray], seed: int) -> list[np.ndarray]:
    """Other inputs of the same kind as these examples; constant ones (masks) stay as they are."""
    rng = np.random.default_rng(seed)
    made: list[np.ndarray] = []
    for array in inputs:
        if array.size < 2 or (array == array.flat[0]).all() or array.dtype == np.bool_:
            made.append(array)
        elif np.issubdtype(array.dtype, np.floating):
            made.append((rng.standard_normal(array.shape) * array.std() + array.mean()).astype(array.dtype))
        else:
            made.append(rng.integers(array.min(), array.max(), array.shape, dtype=array.dtype, endpoint=True))
    return made


def job(task: str, **arguments: Any) -> Any:
    """Entry point of the model worker."""
    tasks: dict[str, Callable[..., Any]] = {"signature": signature, "outputs": outputs_of, "interleave": interleave}
    return tasks[task](**arguments)
