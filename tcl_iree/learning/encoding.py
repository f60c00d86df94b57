"""Candidates as arrays for a network: one row a candidate, whatever the columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from tcl_iree.features.steps import Candidate

Arrays = dict[str, np.ndarray]
Batch = dict[str, Tensor]
Encoder = Callable[[Sequence[Candidate]], Arrays]


def collate(parts: Sequence[Arrays]) -> Arrays:
    """Candidates of several groups as one batch; the second dimension is filled up with zeros where it differs."""
    made = {}
    for name in parts[0]:
        arrays = [part[name] for part in parts]
        if arrays[0].ndim > 1:
            longest = max(array.shape[1] for array in arrays)
            arrays = [
                np.pad(array, [(0, 0), (0, longest - array.shape[1])] + [(0, 0)] * (array.ndim - 2)) for array in arrays
            ]
        made[name] = np.concatenate(arrays)
    return made


def tensors(arrays: Arrays, device: torch.device | None = None) -> Batch:
    """The same as tensors, whole numbers as torch indexes with them."""
    return {
        name: torch.from_numpy(array.astype(np.float32 if array.dtype.kind == "f" else np.int64)).to(device)
        for name, array in arrays.items()
    }


def rows(arrays: Arrays, chosen: np.ndarray | slice) -> Arrays:
    """Some of the candidates."""
    return {name: array[chosen] for name, array in arrays.items()}


def by_length(batch: Batch, lengths: Tensor, size: int, run: Callable[[Batch, int], Tensor]) -> Tensor:
    """What `run` makes of a few candidates at a time, those of like length together: little padding is read.

    Args:
        lengths: rows of each candidate that are not padding.
        size: so many candidates at once.
        run: of candidates and the longest of their lengths; one row a candidate.
    """
    order = lengths.argsort()
    made = []
    for chosen in order.split(size):
        made.append(run({name: value[chosen] for name, value in batch.items()}, int(lengths[chosen[-1]])))
    return torch.cat(made)[order.argsort()]
