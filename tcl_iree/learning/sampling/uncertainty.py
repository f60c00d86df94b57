"""How unsure a model is of programs, by three estimates that cost little.

- the posterior of its last layer: how far an embedding is from the span of the measured ones. One model, no labels;
- an ensemble: how far models that learned from other seeds disagree;
- dropout: how far one model disagrees with itself when columns of the embedding are left out.
"""

from __future__ import annotations

import numpy as np
import torch

from tcl_iree.learning.neural import NeuralModel


def posterior(embeddings: np.ndarray, measured: np.ndarray, ridge: float = 1.0) -> np.ndarray:
    """Standard deviation of a linear score of each embedding, after seeing those that were measured.

    Embeddings are what sets a program apart from its workload's default, whose score is known to be zero.

    Args:
        embeddings: program x column.
        measured: program x column; none may have been.
        ridge: how much is known before, in programs.
    """
    both = np.concatenate([embeddings, measured]).astype(np.float64)
    scale = np.maximum(np.sqrt((both * both).mean(0)), 1e-9)
    seen = measured / scale
    columns = seen.shape[1]
    factor = np.linalg.cholesky(seen.T @ seen / columns + ridge * np.eye(columns))
    solved = np.linalg.solve(factor, (embeddings / scale).T)
    return np.sqrt((solved * solved).sum(0) / columns)


def spread(scores: np.ndarray, workloads: np.ndarray) -> np.ndarray:
    """How far several opinions of each program lie apart, each on its own scale within a workload.

    Args:
        scores: opinion x program.
        workloads: which workload each program is of.
    """
    made = np.zeros(scores.shape[1])
    for workload in np.unique(workloads):
        members = np.flatnonzero(workloads == workload)
        mine = scores[:, members]
        mine = (mine - mine.mean(1, keepdims=True)) / np.maximum(mine.std(1, keepdims=True), 1e-9)
        made[members] = mine.std(0)
    return made


@torch.no_grad()
def dropout_scores(
    model: NeuralModel, embeddings: np.ndarray, opinions: int = 8, share: float = 0.1, seed: int = 0
) -> np.ndarray:
    """Opinion x program: the model's scores of embeddings, each time with another `share` of the columns left out.

    Args:
        model: of a network that scores an embedding as it is, as Mamba's does.
    """
    given = torch.from_numpy(embeddings.astype(np.float32))
    rng = np.random.default_rng(seed)
    kept = rng.random((opinions, given.shape[1])) >= share
    masks = torch.from_numpy(kept.astype(np.float32) / (1.0 - share))
    return np.stack([model.network.score(given * mask, {}).numpy() for mask in masks])
