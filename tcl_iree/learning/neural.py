"""Train a network to rank, and use it as a cost model."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tcl_iree.features.steps import Candidate
from tcl_iree.learning.cost_model import STOPPED_BY, CostModel, Epoch, FitOptions, State
from tcl_iree.learning.encoding import Arrays, Encoder, collate, rows, tensors
from tcl_iree.learning.groups import Group, fingerprint
from tcl_iree.learning.metrics import ranked, validation_figures
from tcl_iree.learning.network import Network
from tcl_iree.learning.ranking import lambda_rank
from tcl_iree.learning.recent import Recent
from tcl_iree.learning.unfinished import Progress, Unfinished
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
# Candidates of one workload on one target with a number for each: a label, or whatever the loss compares scores with.
List = tuple[Arrays, np.ndarray]
# What is added to the loss of a network.
Penalty = Callable[[Network], Tensor]

_PREDICTED_AT_ONCE = 4096


@dataclass(frozen=True)
class TrainingRecipe:
    """Numbers that training depends on.

    Attributes:
        rate: of learning at the start; it falls to a tenth along a cosine.
        decay: share of each weight that a step takes away, times the rate.
        group: candidates of one workload that are ranked together.
        groups: so many of them in one step.
        clip: gradients longer than this are shortened.
        average: the weights that are judged and kept are a running mean of those of the steps; this much of it stays at
            each, less at the first.
        update_rate, update_steps: for learning from a few more measurements.
    """

    rate: float = 5e-3
    decay: float = 0.05
    clip: float = 0.5
    average: float = 0.995
    group: int = 64
    groups: int = 4
    update_rate: float = 1e-3
    update_steps: int = 40


class NeuralModel(CostModel):
    """A network trained to rank groups that are one workload on one target.

    Args:
        loss: of scores, labels and which of them count, each group x candidate.
    """

    def __init__(self, network: Network, recipe: TrainingRecipe | None = None, loss: Loss = lambda_rank) -> None:
        self.network, self.recipe, self._loss = network.eval(), recipe or TrainingRecipe(), loss
        self._encoders: Recent[Encoder] = Recent(network.encoder)
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.network.to(self._device)
        self._fitted = copy.deepcopy(self.network.state_dict())

    @property
    def name(self) -> str:
        """The network's name."""
        return self.network.name

    @property
    def config(self) -> dict[str, Any]:
        """The network's, and how fast it learns."""
        return self.network.config | {"rate": self.recipe.rate}

    def fit(self, training: Sequence[Group], validation: Sequence[Group], options: FitOptions) -> list[Epoch]:
        """See `CostModel`."""
        torch.manual_seed(options.seed)
        lists = self.lists(training)
        self.network.load_state_dict(self.network.untrained().state_dict())
        self.network.prepare([part for part, _ in lists])
        settings = (self.name, self.config, self.recipe, options.seed, options.epochs, len(training), STOPPED_BY)
        return self._train(lists, validation, options, fingerprint(settings, [*training, *validation]))

    def go_on(
        self,
        lists: Sequence[List],
        validation: Sequence[Group],
        options: FitOptions,
        run: str = "",
        penalty: Penalty | None = None,
        keep_start: bool = True,
    ) -> list[Epoch]:
        """Learn from where the weights are.

        Args:
            lists: what to learn from, as `lists` makes them or with other numbers.
            run: names the run in the file that an unfinished one is kept in.
            penalty: added to the loss.
            keep_start: let the weights stay as they are if validation is never better; not for untrained ones.
        """
        torch.manual_seed(options.seed)
        start = self.validated(validation) if keep_start else Progress.best_score
        return self._train(lists, validation, options, run, penalty, start)

    def validated(self, groups: Sequence[Group]) -> float:
        """The score that training goes by, of the weights as they are."""
        return Epoch(0, 0.0, *self._validate(groups, [self.encode(group) for group in groups])).score

    def lists(self, groups: Sequence[Group]) -> list[List]:
        """Groups with their labels, to learn from."""
        return [(self.encode(group), group.labels) for group in groups]

    def _train(
        self,
        lists: Sequence[List],
        validation: Sequence[Group],
        options: FitOptions,
        run: str,
        penalty: Penalty | None = None,
        start: float = Progress.best_score,
    ) -> list[Epoch]:
        """Train and keep the best weights, those of the start among them if their score is given."""
        held = [self.encode(group) for group in validation]
        rng = np.random.default_rng(options.seed)
        learner = copy.deepcopy(self.network)
        optimizer = self._optimizer(learner, self.recipe.rate)
        kept = Unfinished(options.resume, run, {"now": learner, "mean": self.network}, optimizer, rng)
        progress = kept.restore(start)
        best = progress.best or copy.deepcopy(self.network.state_dict())
        for number in range(len(progress.epochs), options.epochs):
            if progress.stale >= options.patience:
                break
            share = 0.5 * (1.0 + np.cos(np.pi * number / max(1, options.epochs)))
            for parameters in optimizer.param_groups:
                parameters["lr"] = self.recipe.rate * (0.1 + 0.9 * share)
            loss = self._epoch(learner, lists, optimizer, rng, penalty)
            epoch = Epoch(number, loss, *self._validate(validation, held))
            progress = progress.after(epoch)
            if progress.keep:
                best = copy.deepcopy(self.network.state_dict())
            kept.keep(progress, best)
            options.say(epoch)
        self.network.load_state_dict(best)
        self.network.eval()
        self._fitted = copy.deepcopy(best)
        return list(progress.epochs)

    def update(self, groups: Sequence[Group]) -> None:
        """From the fitted weights on, whatever earlier updates did."""
        self.network.load_state_dict(self._fitted)
        lists = self.lists([group for group in groups if len(group) > 1])
        optimizer, rng = self._optimizer(self.network, self.recipe.update_rate), np.random.default_rng(0)
        done = 0
        while lists and done < self.recipe.update_steps:
            for batch in self._batches(lists, rng):
                self._step(self.network, batch, optimizer)
                done += 1
        self.network.eval()

    def predict(self, workload: Workload, target: Target, candidates: Sequence[Candidate]) -> np.ndarray:
        """See `CostModel`."""
        if not candidates:
            return np.zeros(0)
        return self._in_parts(self._encoders.of(workload, target)(candidates), scores=True)

    def score(self, group: Group) -> np.ndarray:
        """See `CostModel`."""
        return self._in_parts(self.encode(group), scores=True)

    def embed(self, workload: Workload, target: Target, candidates: Sequence[Candidate]) -> np.ndarray:
        """See `CostModel`."""
        return self._in_parts(self._encoders.of(workload, target)(candidates), scores=False)

    @torch.no_grad()
    def read(
        self, workload: Workload, target: Target, candidates: Sequence[Candidate]
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `CostModel`; candidates are encoded once."""
        arrays = self._encoders.of(workload, target)(candidates)
        embeddings = self._in_parts(arrays, scores=False)
        batch = tensors(arrays, self._device)
        scores = self.network.score(torch.from_numpy(embeddings).to(self._device), batch).cpu().numpy()
        return scores, embeddings

    def embed_group(self, group: Group) -> np.ndarray:
        """Embeddings of a group's candidates; the group may remember what was made of it on the way."""
        return self._in_parts(self.encode(group), scores=False)

    def state(self) -> State:
        """The network's weights."""
        return {name: value.detach().cpu().numpy() for name, value in self.network.state_dict().items()}

    def load_state(self, state: State) -> None:
        """See `CostModel`."""
        self.network.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in state.items()})
        self.network.eval()
        self._fitted = copy.deepcopy(self.network.state_dict())

    def _optimizer(self, network: Network, rate: float) -> torch.optim.Optimizer:
        return torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=self.recipe.decay, fused=True)

    def encode(self, group: Group) -> Arrays:
        """A group's candidates as the network reads them; the group remembers them."""
        if group.source:
            whole, positions = group.source
            return rows(self.encode(whole), positions)
        encode = self._encoders.of
        return group.once(type(self.network).encoder, lambda: encode(group.workload, group.target)(group.candidates))

    @torch.no_grad()
    def _in_parts(self, arrays: Arrays, scores: bool) -> np.ndarray:
        self.network.eval()
        run = self.network if scores else self.network.embedding
        count = len(next(iter(arrays.values())))
        parts = [
            run(tensors(rows(arrays, slice(start, start + _PREDICTED_AT_ONCE)), self._device)).cpu().numpy()
            for start in range(0, count, _PREDICTED_AT_ONCE)
        ]
        return np.concatenate(parts)

    def _epoch(
        self,
        learner: Network,
        given: Sequence[List],
        optimizer: torch.optim.Optimizer,
        rng: np.random.Generator,
        penalty: Penalty | None,
    ) -> float:
        """One pass over the data; the model's own weights follow the learner's as their running mean."""
        losses = []
        for batch in self._batches(given, rng):
            losses.append(self._step(learner, batch, optimizer, penalty))
            # The untrained weights must not outweigh the first steps, which may be all there are.
            steps = max(int(state["step"]) for state in optimizer.state.values())
            stays = min(self.recipe.average, steps / (steps + 9))
            with torch.no_grad():
                for mean, value in zip(self.network.parameters(), learner.parameters(), strict=True):
                    mean.lerp_(value, 1.0 - stays)
                for kept, value in zip(self.network.buffers(), learner.buffers(), strict=True):
                    kept.copy_(value)
        return float(np.mean(losses))

    def _batches(self, given: Sequence[List], rng: np.random.Generator) -> Iterator[list[List]]:
        """Every candidate once, in lists of one group each, shuffled."""
        lists = short_lists(given, self.recipe.group, rng)
        shuffled = [lists[index] for index in rng.permutation(len(lists))]
        for start in range(0, len(shuffled), self.recipe.groups):
            yield shuffled[start : start + self.recipe.groups]

    def _step(
        self, network: Network, batch: list[List], optimizer: torch.optim.Optimizer, penalty: Penalty | None = None
    ) -> float:
        network.train()
        longest = max(len(labels) for _, labels in batch)
        scores = network(tensors(collate([arrays for arrays, _ in batch]), self._device)).cpu()
        parts = scores.split([len(labels) for _, labels in batch])
        listed = torch.stack([torch.nn.functional.pad(part, (0, longest - len(part))) for part in parts])
        labels = torch.from_numpy(np.stack([np.pad(given, (0, longest - len(given))) for _, given in batch]))
        valid = torch.arange(longest)[None] < torch.tensor([len(given) for _, given in batch])[:, None]
        loss = self._loss(listed, labels, valid)
        if penalty:
            loss = loss + penalty(network)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), self.recipe.clip)
        optimizer.step()
        return float(loss.detach())

    def _validate(self, groups: Sequence[Group], encoded: Sequence[Arrays]) -> tuple[float, float, float]:
        pools = [
            ranked(group, self._in_parts(arrays, scores=True)) for group, arrays in zip(groups, encoded, strict=True)
        ]
        return validation_figures(pools)


def short_lists(given: Sequence[List], size: int, rng: np.random.Generator) -> list[List]:
    """Every candidate once, in lists of about `size` of one group each, shuffled within groups."""
    lists = []
    for arrays, labels in given:
        order = rng.permutation(len(labels))
        count = max(1, round(len(order) / size))
        lists += [(rows(arrays, part), labels[part]) for part in np.array_split(order, count)]
    return lists
