"""Load artifacts into the IREE runtime and call them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

import iree.runtime as runtime
import numpy as np
from iree.runtime import flags as runtime_flags

_P = ParamSpec("_P")
_R = TypeVar("_R")

_WITH_WORKERS = "local-task"
# The scheduling class of threads that push no other thread off its core when they wake; Linux alone has it.
_BATCH = getattr(os, "SCHED_BATCH", None)


def open_device(name: str, flags: Sequence[str]) -> runtime.HalDevice:
    """Open a runtime device; flags take effect because this process has opened none before.

    It is to be called from this thread, which gives way to the device's workers for good: see `give_way`.

    The caching allocator keeps a model's results from being allocated and zeroed anew on every call.
    """
    device = _opened(name, flags)
    if name == _WITH_WORKERS:
        give_way()
    return device


def give_way() -> bool:
    """Let this thread push no worker off its core when it wakes; False if it stays as it was.

    The worker that ends a call wakes the caller and then has one more word to write, for which the caller spins. If
    the caller takes the worker's core on waking, it spins until the kernel's next tick, for milliseconds.
    """
    return _BATCH is not None and os.sched_getscheduler(0) == os.SCHED_OTHER and _into(_BATCH)


class SharedDevice:
    """A device for all of a process; a thread gives way to its workers while it calls, and only then.

    Args:
        name, flags: as for `open_device`.
    """

    def __init__(self, name: str, flags: Sequence[str]) -> None:
        self.device = _opened(name, flags)
        self._has_workers = name == _WITH_WORKERS

    def run(self, function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call a function that calls the device."""
        gives_way = self._has_workers and give_way()
        try:
            return function(*args, **kwargs)
        finally:
            if gives_way:
                _into(os.SCHED_OTHER)


def _opened(name: str, flags: Sequence[str]) -> runtime.HalDevice:
    runtime_flags.parse_flags(*flags)
    return runtime.get_driver(name).create_default_device(allocators=["caching"])


def _into(scheduling_class: int) -> bool:
    """Put this thread into a scheduling class; False where the system does not let it."""
    try:
        os.sched_setscheduler(0, scheduling_class, os.sched_param(0))
    except OSError:
        return False
    return True


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
