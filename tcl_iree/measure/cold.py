"""Constants that come from memory: so many copies of them that none is in a cache any more when its turn comes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcl_iree.workload.model import Binding, Workload

# Copies take so many bytes together, and twice what the cache holds.
_LEAST_BYTES = 64 << 20
# Each begins on a page of its own.
_PAGE = 4096


def spacing(binding: Binding) -> int:
    """Bytes from one copy to the next."""
    return -(-binding.size_bytes // _PAGE) * _PAGE


def copies(workload: Workload) -> int:
    """How many copies there are of each cold binding."""
    size = sum(workload.bindings[index].size_bytes for index in workload.cold)
    return max(2, -(-max(_LEAST_BYTES, 2 * workload.cache_bytes) // size)) if size else 1


def with_copies(workload: Workload, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One array a binding, as timing wants them: bytes of all copies for those that are cold."""
    made = list(arrays)
    for index in workload.cold:
        held = np.zeros((copies(workload), spacing(workload.bindings[index])), np.uint8)
        held[:, : arrays[index].nbytes] = np.ascontiguousarray(arrays[index]).reshape(-1).view(np.uint8)
        made[index] = held.view(np.int8)
    return made
