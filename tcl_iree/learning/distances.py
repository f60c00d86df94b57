"""Distances between points."""

from __future__ import annotations

import numpy as np


def squared_distances(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Point x other."""
    made = (points * points).sum(1)[:, None] - 2.0 * (points @ others.T) + (others * others).sum(1)[None]
    return np.maximum(made, 0.0)
