"""Load artifacts into the IREE runtime and call them."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

import iree.runtime as runtime
import numpy as np
from iree.runtime import flags as runtime_flags

_P = ParamSpec("_P")
_R = TypeVar("_R")

_WITH_WORKERS = "local-task"
# How much lower the priority of a thread is that calls such a device.
_LOWER = 10


def open_device(name: str, flags: Sequence[str]) -> runtime.HalDevice:
    """Open a runtime device; flags take effect because this process has opened none before.

    It is to be called from this thread, whose priority is lowered for good if the device has workers: whoever waits for
    them spins, and on a core that one of them wants the kernel would let it do so for milliseconds.

    The caching allocator keeps a model's results from being allocated and zeroed anew on every call.
    """
    runtime_flags.parse_flags(*flags)
    device = runtime.get_driver(name).create_default_device(allocators=["caching"])
    if name == _WITH_WORKERS and sys.platform == "linux":  # elsewhere a thread has no priority of its own
        own = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, own, os.getpriority(os.PRIO_PROCESS, own) + _LOWER)
    return device


class SharedDevice:
    """A device for all of a process, whose threads keep their priority: one with workers gets a thread to call it.

    Args:
        name, flags: as for `open_device`.
    """

    def __init__(self, name: str, flags: Sequence[str]) -> None:
        self._thread = ThreadPoolExecutor(1, "tcl-iree") if name == _WITH_WORKERS else None
        self.device = self.run(open_device, name, flags)

    def run(self, function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call a function from the thread that may call the device."""
        if self._thread is None:
            return function(*args, **kwargs)
        try:
            asked = self._thread.submit(function, *args, **kwargs)
        except RuntimeError:  # the interpreter is about to end, and takes nothing new
            return function(*args, **kwargs)
        return asked.result()


class Buffers:
    """Device buffers that live as long as the measurement.

    Args:
        turns: how many turns there are, each with the next copies of what has several; 1 has all take the only ones,
            and None is for kernels whose buffers have no copies.
    """

    def __init__(self, device: runtime.HalDevice, arrays: Sequence[np.ndarray], turns: int | None = None) -> None:
        self._device, self._turns, self._turn = device, turns, 0
        self._arrays = [runtime.asdevicearray(device, array) for array in arrays]

    def next_turn(self, times: int) -> int | None:
        """Whose turn the next of so many dispatches begins with, whatever kernel it is of; None if there are none."""
        if self._turns is None:
            return None
        turn = self._turn
        self._turn = (turn + times) % self._turns
        return turn

    @property
    def views(self) -> list[runtime.HalBufferView]:
        """The buffers as call arguments."""
        return [array._buffer_view for array in self._arrays]

    def read(self, index: int) -> np.ndarray:
        """A copy of one buffer."""
        return read_array(self._device, self._arrays[index])


def read_array(device: runtime.HalDevice, array: runtime.DeviceArray) -> np.ndarray:
    """Copy a device array to the host."""
    try:
        return np.array(array.to_host())
    except ValueError:
        # Vulkan wants page-aligned host memory, which the binding does not give it: go through a staging buffer.
        source = array._buffer_view.get_buffer()
        staging = device.allocator.allocate_buffer(
            memory_type=int(runtime.MemoryType.HOST_LOCAL | runtime.MemoryType.DEVICE_VISIBLE),
            allowed_usage=int(runtime.BufferUsage.TRANSFER_TARGET | runtime.BufferUsage.MAPPING_SCOPED),
            allocation_size=source.byte_length(),
        )
        done = device.create_semaphore(0)
        device.queue_copy(
            source,
            staging,
            wait_semaphores=runtime.HalFence.create_at(done, 0),
            signal_semaphores=runtime.HalFence.create_at(done, 1),
        )
        runtime.HalFence.create_at(done, 1).wait()
        return np.array(staging.map().asarray(array.shape, array.dtype))


class Kernel:
    """A compiled dispatch, callable `times` times in one submission."""

    def __init__(self, device: runtime.HalDevice, vmfb: bytes) -> None:
        instance = runtime.VmInstance()
        module = runtime.VmModule.copy_buffer(instance, vmfb)
        hal = runtime.create_hal_module(instance, device)
        self._context = runtime.VmContext(instance, [hal, module])
        self._function = module.lookup_function("run")

    def __call__(self, buffers: Buffers, times: int = 1) -> float:
        """Dispatch `times` times and wait; returns seconds."""
        views = buffers.views
        arguments = runtime.VmVariantList(2 + len(views))
        arguments.push_int(times)
        first = buffers.next_turn(times)
        if first is not None:
            arguments.push_int(first)
        for view in views:
            arguments.push_ref(view)
        results = runtime.VmVariantList(0)
        started = time.perf_counter()
        self._context.invoke(self._function, arguments, results)
        return time.perf_counter() - started
