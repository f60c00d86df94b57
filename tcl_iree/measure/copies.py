"""Buffers that are not in the nearest cache: so many copies of each that the next has left it when its turn comes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcl_iree.workload.model import Binding, Workload

# Each copy begins on a page of its own.
_PAGE = 4096
# With two, a kernel and the one beside it would always take the same one of them.
_LEAST_COPIES = 3


def spacing(binding: Binding) -> int:
    """Bytes from one copy to the next."""
    return -(-binding.size_bytes // _PAGE) * _PAGE


def copies(workload: Workload) -> dict[int, int]:
    """How many copies there are of each binding that has more than one."""
    return {
        index: max(_LEAST_COPIES, -(-span // workload.bindings[index].size_bytes))
        for index, span in enumerate(workload.spans)
        if span
    }


def with_copies(workload: Workload, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One array a binding, as timing wants them: bytes of all copies for those that have several."""
    made = list(arrays)
    for index, count in copies(workload).items():
        held = np.zeros((count, spacing(workload.bindings[index])), np.uint8)
        held[:, : arrays[index].nbytes] = np.ascontiguousarray(arrays[index]).reshape(-1).view(np.uint8)
        made[index] = held.view(np.int8)
    return made
