"""Elastic weight consolidation, online: weights that earlier platforms need are held near where they were.

    penalty = strength / 2 * sum of keep * F * (weight - anchor)^2          F <- keep * F + F_new

`F` is the diagonal of the Fisher information: how much each weight matters for which candidate of a group is thought
the best. It needs no labels. Each platform's, as one vector, is brought to length 1 before it is added, so that all
count alike, whatever the scale of their scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tcl_iree.learning.cost_model import State
from tcl_iree.learning.distillation.options import Distillation
from tcl_iree.learning.encoding import tensors
from tcl_iree.learning.groups import Group
from tcl_iree.learning.network import Network
from tcl_iree.learning.neural import List, NeuralModel, Penalty, short_lists


@dataclass(frozen=True)
class Consolidation:
    """What earlier platforms need.

    Attributes:
        anchor: the weights after the latest platform, by name.
        fisher: how much each matters, by name.
    """

    anchor: State
    fisher: State

    def state(self) -> State:
        """For a file."""
        return {f"anchor/{name}": value for name, value in self.anchor.items()} | {
            f"fisher/{name}": value for name, value in self.fisher.items()
        }

    @staticmethod
    def from_state(state: State) -> Consolidation:
        """As it was written."""
        parts: dict[str, State] = {"anchor": {}, "fisher": {}}
        for name, value in state.items():
            part, _, weight = name.partition("/")
            parts[part][weight] = value
        return Consolidation(**parts)

    def penalty(self, strength: float, keep: float) -> Penalty:
        """What moving away from the anchor costs a network."""
        held = {
            name: (torch.from_numpy(self.anchor[name]), torch.from_numpy(self.fisher[name])) for name in self.fisher
        }

        def cost(network: Network) -> Tensor:
            parts = []
            for name, value in network.named_parameters():
                anchor, fisher = (given.to(value.device) for given in held[name])
                parts.append((fisher * (value - anchor) ** 2).sum())
            return 0.5 * strength * keep * torch.stack(parts).sum().cpu()

        return cost


def consolidate(
    before: Consolidation | None, model: NeuralModel, groups: Sequence[Group], options: Distillation, seed: int = 0
) -> Consolidation:
    """What is to be held after a model has learned a platform.

    Args:
        before: what was held for earlier platforms.
        groups: the new platform's programs; their times are not read.
    """
    lists = [(model.encode(group), group.seconds) for group in groups]
    found = fisher(model, lists, options.fisher_lists, seed)
    if before:
        found = {name: options.keep * before.fisher[name] + value for name, value in found.items()}
    anchor = model.state()
    return Consolidation({name: anchor[name].copy() for name in found}, found)


def fisher(model: NeuralModel, lists: Sequence[List], most: int, seed: int = 0) -> State:
    """The diagonal of the Fisher information of a network's weights, as one vector of length 1.

    The likelihood is that of a candidate being the best of its list: a softmax over scores. Which one it is is drawn
    from the model's own chances, as the definition wants.

    Args:
        most: lists that it is estimated from.
    """
    rng = np.random.default_rng(seed)
    cut = [entry for entry in short_lists(lists, model.recipe.group, rng) if len(entry[1]) > 1]
    network = model.network.eval()
    device = next(network.parameters()).device
    named = dict(network.named_parameters())
    total = {name: torch.zeros_like(value) for name, value in named.items()}
    with torch.enable_grad():
        for index in rng.permutation(len(cut))[:most]:
            chances = torch.log_softmax(network(tensors(cut[index][0], device)), dim=0)
            weights = chances.detach().exp().cpu().double().numpy()
            drawn = int(rng.choice(len(weights), p=weights / weights.sum()))
            for name, slope in zip(named, torch.autograd.grad(chances[drawn], list(named.values())), strict=True):
                total[name] += slope * slope
    length = torch.cat([value.flatten() for value in total.values()]).norm().clamp(min=1e-30)
    return {name: (value / length).cpu().numpy() for name, value in total.items()}
