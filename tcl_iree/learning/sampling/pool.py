"""Programs to choose from, as a cost model sees them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tcl_iree.errors import OptionError


@dataclass(frozen=True)
class Pool:
    """Programs of any number of workloads; no label is in it.

    Attributes:
        embeddings: program x column, f32.
        workloads: which workload each is of, as a whole number.
        scores: what the model thinks of each; comparable within a workload.
        uncertainty: how unsure it is, at least 0.
    """

    embeddings: np.ndarray
    workloads: np.ndarray
    scores: np.ndarray
    uncertainty: np.ndarray

    def __post_init__(self) -> None:
        count = len(self.embeddings)
        others = {"workloads": self.workloads, "scores": self.scores, "uncertainty": self.uncertainty}
        for name, values in others.items():
            if values.shape != (count,):
                raise OptionError(f"a pool of {count} programs needs as many {name}, not {values.shape}")
        if self.embeddings.ndim != 2 or not np.isfinite(self.embeddings).all():
            raise OptionError("embeddings must be a finite number for each program and column")

    def __len__(self) -> int:
        return len(self.embeddings)

    @cached_property
    def doubt(self) -> np.ndarray:
        """Uncertainty beside a value that few exceed, from 0 to 1."""
        return np.clip(self.uncertainty / max(float(np.quantile(self.uncertainty, 0.95)), 1e-12), 0.0, 1.0)

    @cached_property
    def goodness(self) -> np.ndarray:
        """Each program's place among those of its workload by score: 1 for the best, near 0 for the worst."""
        order = np.lexsort((self.scores, self.workloads))
        workloads = self.workloads[order]
        starts = np.r_[0, np.flatnonzero(np.diff(workloads)) + 1]
        counts = np.diff(np.r_[starts, len(order)])
        places = np.arange(len(order)) - np.repeat(starts, counts) + 1
        made = np.empty(len(order))
        made[order] = places / np.repeat(counts, counts)
        return made
