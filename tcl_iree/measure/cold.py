"""Constants that come from memory: how many copies of them it takes that none is left in a cache."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcl_iree.workload.model import Binding, Workload

# Copies take so many bytes together, several times what the last cache of a core has for it.
_BYTES = 64 << 20
_MOST = 4096
# Each begins on a page of its own.
_PAGE = 4096


def spacing(binding: Binding) -> int:
    """Bytes from one copy to the next."""
    return -(-binding.size_bytes // _PAGE) * _PAGE


def copies(workload: Workload) -> int:
    """How many copies there are of each cold binding."""
    size = sum(spacing(workload.bindings[index]) for index in workload.cold)
    return min(_MOST, max(2, -(-_BYTES // size))) if workload.cold else 1


def with_copies(workload: Workload, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One array a binding, as the harness wants them: bytes of all copies for those that are cold."""
    made = list(arrays)
    for index in workload.cold:
        held = np.zeros((copies(workload), spacing(workload.bindings[index])), np.uint8)
        held[:, : arrays[index].nbytes] = np.ascontiguousarray(arrays[index]).reshape(-1).view(np.uint8)
        made[index] = held.view(np.int8)
    return made
