"""LambdaRank: a pair in the wrong order costs as much as putting it right would gain at the top of the list."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def lambda_rank(scores: Tensor, labels: Tensor, valid: Tensor) -> Tensor:
    """The loss of groups of candidates, each group the candidates of one workload on one target.

    Args:
        scores: group x candidate, higher is thought better.
        labels: group x candidate in 0..1, higher is better.
        valid: group x candidate; the rest is padding.

    Returns:
        The mean over groups.
    """
    scores = scores.masked_fill(~valid, -torch.inf)
    order = torch.argsort(scores, dim=1, descending=True)
    scores, labels = scores.gather(1, order), labels.gather(1, order)
    valid = valid.gather(1, order)
    places = torch.arange(1, scores.shape[1] + 1, device=scores.device, dtype=scores.dtype)
    discount = 1.0 / torch.log2(1.0 + places)
    gain = (2.0**labels - 1.0).masked_fill(~valid, 0.0)
    best = (gain.sort(dim=1, descending=True).values * discount).sum(1, keepdim=True).clamp(min=1e-6)
    gain = gain / best
    pairs = (labels[:, :, None] > labels[:, None, :]) & valid[:, :, None] & valid[:, None, :]
    weight = (discount[:, None] - discount[None, :]).abs() * (gain[:, :, None] - gain[:, None, :]).abs()
    finite = scores.masked_fill(~valid, 0.0)
    apart = finite[:, :, None] - finite[:, None, :]
    losses = functional.softplus(-apart) * weight * pairs
    return losses.sum(dim=(1, 2)).mean()
