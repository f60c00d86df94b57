"""What a student's scores are held to: its teacher's, of which only those of one group can be compared."""

from __future__ import annotations

import torch
from torch import Tensor

from tcl_iree.learning.distillation.options import LISTWISE, Distillation
from tcl_iree.learning.neural import Loss


def distillation_loss(options: Distillation) -> Loss:
    """The loss asked for, with its weight."""

    def weighted(scores: Tensor, wanted: Tensor, valid: Tensor) -> Tensor:
        if options.loss == LISTWISE:
            return options.distillation * listwise(scores, wanted, valid, options.temperature)
        return options.distillation * squares(scores, wanted, valid)

    return weighted


def listwise(scores: Tensor, wanted: Tensor, valid: Tensor, temperature: float) -> Tensor:
    """Kullback-Leibler divergence between chances of being a group's best, mean over groups.

    Args:
        scores, wanted: the student's and the teacher's, group x candidate.
        valid: group x candidate; the rest is padding.
    """
    student = _log_chances(scores, valid, temperature)
    teacher = _log_chances(wanted, valid, temperature)
    apart = (teacher.exp() * (teacher - student)).masked_fill(~valid, 0.0)
    return temperature**2 * apart.sum(1).mean()


def squares(scores: Tensor, wanted: Tensor, valid: Tensor) -> Tensor:
    """Squared difference, after what a group's scores have in common is taken away: it means nothing."""
    return ((_centred(scores, valid) - _centred(wanted, valid)) ** 2)[valid].mean()


def _log_chances(scores: Tensor, valid: Tensor, temperature: float) -> Tensor:
    # A large negative number, since infinities would meet zeros and give no number.
    return torch.log_softmax((scores / temperature).masked_fill(~valid, -1e4), dim=1)


def _centred(scores: Tensor, valid: Tensor) -> Tensor:
    held = scores.masked_fill(~valid, 0.0)
    return held - held.sum(1, keepdim=True) / valid.sum(1, keepdim=True)
