"""A compiled model's function, called with as little around it as the runtime's binding allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import iree.runtime as runtime
import numpy as np

from tcl_iree.measure.device import read_array


class IreeModule:
    """The function `main` of a compiled module on an open device."""

    def __init__(self, device: runtime.HalDevice, path: str) -> None:
        instance = runtime.VmInstance()
        module = runtime.VmModule.mmap(instance, path)
        self._context = runtime.VmContext(instance, [runtime.create_hal_module(instance, device), module])
        self._function = module.lookup_function("main")
        self._device = device

    def bind(self, arrays: Sequence[np.ndarray]) -> Callable[[], Any]:
        """A call with these inputs, which are on the device already; it waits for the results and leaves them there."""
        inputs = [runtime.asdevicearray(self._device, array) for array in arrays]

        def call() -> runtime.VmVariantList:
            arguments, results = runtime.VmVariantList(len(inputs)), runtime.VmVariantList(1)
            for array in inputs:
                arguments.push_ref(array._buffer_view)
            self._context.invoke(self._function, arguments, results)
            return results

        return call

    def read(self, results: Any) -> list[np.ndarray]:
        """The results of a call, on the host."""
        views = [results.get_as_object(index, runtime.HalBufferView) for index in range(len(results))]
        return [read_array(self._device, runtime.DeviceArray(self._device, view)) for view in views]
