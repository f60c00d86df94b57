"""Programs of many groups in one row after the other, so that a sampler can choose among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tcl_iree.learning.groups import Group
from tcl_iree.learning.neural import NeuralModel
from tcl_iree.learning.sampling.pool import Pool
from tcl_iree.learning.sampling.uncertainty import dropout_scores, posterior, spread

POSTERIOR, DROPOUT = "posterior", "dropout"


@dataclass(frozen=True)
class ProgramList:
    """The programs of groups, defaults left out.

    Attributes:
        group, place: where each is.
    """

    groups: Sequence[Group]
    group: np.ndarray
    place: np.ndarray

    @staticmethod
    def of(groups: Sequence[Group]) -> ProgramList:
        """All programs."""
        group = np.concatenate([np.full(len(held) - 1, number) for number, held in enumerate(groups)])
        place = np.concatenate([np.arange(1, len(held)) for held in groups])
        return ProgramList(groups, group, place)

    def __len__(self) -> int:
        return len(self.group)

    def chosen(self, positions: np.ndarray) -> list[Group]:
        """Groups of some of the programs only."""
        return [
            self.groups[number].part(self.place[positions[self.group[positions] == number]])
            for number in np.unique(self.group[positions])
        ]

    def by_chance(self, count: int, seed: int) -> list[Group]:
        """Groups of so many of the programs, all if there are no more."""
        return self.chosen(np.random.default_rng(seed).permutation(len(self))[:count])

    def pool(self, model: NeuralModel, taken: np.ndarray, estimate: str = POSTERIOR) -> Pool:
        """The programs as a model sees them: what sets each apart from its workload's default.

        Args:
            taken: positions that were measured, or are being measured.
            estimate: of how unsure the model is: `posterior` or `dropout`.
        """
        whole = [model.embed_group(held) for held in self.groups]
        embeddings = np.concatenate([made[1:] for made in whole]).astype(np.float32)
        scores = np.concatenate([model.score(held)[1:] for held in self.groups])
        apart = np.concatenate([made[1:] - made[:1] for made in whole]).astype(np.float32)
        apart /= np.maximum(np.sqrt((apart * apart).mean(0)), 1e-9)
        if estimate == DROPOUT:
            unsure = spread(dropout_scores(model, embeddings), self.group)
        else:
            unsure = posterior(apart, apart[taken])
        return Pool(apart, self.group, scores, unsure)

    def pool_of_several(self, models: Sequence[NeuralModel]) -> Pool:
        """As the first of some models sees them; where the others disagree it is unsure."""
        first = self.pool(models[0], np.zeros(0, np.int64))
        opinions = [np.concatenate([model.score(held)[1:] for held in self.groups]) for model in models]
        return replace(first, uncertainty=spread(np.stack(opinions), self.group))


def without_bred(group: Group) -> Group:
    """Without programs that were bred from measured ones: which these are could not be known without labels."""
    free = [place for place, origin in enumerate(group.origins) if place and origin in ("", "random")]
    return group.part(np.array(free, np.int64)) if len(free) < len(group) - 1 else group
