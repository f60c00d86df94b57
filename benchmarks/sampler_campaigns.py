"""Campaigns of `benchmarks.sampler`: choose a share of the programs, train on it, choose the next share."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.kept import file_name, kept
from tcl_iree.learning.cost_model import FitOptions
from tcl_iree.learning.groups import Group
from tcl_iree.learning.mamba import MambaNetwork
from tcl_iree.learning.metrics import Ranked, ranked
from tcl_iree.learning.neural import NeuralModel
from tcl_iree.learning.sampling import Pool, Sampler
from tcl_iree.learning.sampling.programs import POSTERIOR, ProgramList
from tcl_iree.learning.split import Split

ENSEMBLE = "ensemble"
_MEMBERS = 3


@dataclass(frozen=True)
class Plan:
    """How programs are chosen.

    Attributes:
        sampler: None to take everything.
        estimate: of uncertainty: `posterior`, `dropout` or `ensemble`.
    """

    name: str
    sampler: Sampler | None
    estimate: str = POSTERIOR


@dataclass(frozen=True)
class Step:
    """What came of one share.

    Attributes:
        label: the plan and the share.
        hours: that building and running the chosen programs and all defaults took when they were recorded.
    """

    label: str
    programs: int
    hours: float
    pools: list[Ranked]
    seconds: float


def label_of(plan: Plan, share: float) -> str:
    """What the figures of a plan and a share are kept under."""
    return f"{plan.name} {100 * share:g}%" if plan.sampler else plan.name


class Campaigns:
    """Runs campaigns; those that were run before are read.

    Args:
        judged: what models rank.
        split: says which networks run a workload and how often; None counts each workload alike.
        place: directory that outcomes are kept in.
    """

    def __init__(
        self,
        training: ProgramList,
        validation: Sequence[Group],
        judged: Sequence[Group],
        split: Split | None,
        place: Path,
        epochs: int,
    ) -> None:
        self._training, self._validation, self._judged = training, validation, judged
        self._split, self._place, self._epochs = split, place, epochs

    def run(self, plan: Plan, shares: Sequence[float], seed: int) -> list[Step]:
        """Choose share after share; what is chosen stays chosen."""
        wanted = list(shares) if plan.sampler else [1.0]
        settings = repr(plan.sampler) if is_dataclass(plan.sampler) else ""
        steps = "+".join(f"{share:g}" for share in wanted)
        name = file_name(f"{plan.name} {settings} {plan.estimate} {steps} {seed}")
        found = kept(self._place / f"{name}.json", lambda: self._learn(plan, wanted, seed))
        return [self._step(plan, share, entry) for share, entry in zip(wanted, found, strict=True)]

    def _learn(self, plan: Plan, shares: Sequence[float], seed: int) -> list[dict[str, Any]]:
        total = len(self._training)
        torch.manual_seed(seed)
        models = [NeuralModel(MambaNetwork()) for _ in range(_MEMBERS if plan.estimate == ENSEMBLE else 1)]
        taken = np.zeros(0, np.int64)
        made = []
        for share in shares:
            started = time.monotonic()
            count = round(share * total) - len(taken)
            more = plan.sampler.choose(self._pool(plan, models, taken), count, taken, seed) if plan.sampler else None
            taken = np.arange(total) if more is None else np.concatenate([taken, more])
            chosen = self._training.chosen(taken)
            for number, model in enumerate(models):
                # Passes over few programs are short: patience that suits many would stop them before they learn.
                fit = FitOptions(self._epochs, patience=self._epochs, seed=seed + 1000 * number)
                model.fit(chosen, self._validation, fit)
            scores = [models[0].score(group).tolist() for group in self._judged]
            seconds = time.monotonic() - started
            made.append({"taken": taken.tolist(), "scores": scores, "seconds": seconds})
        return made

    def _pool(self, plan: Plan, models: Sequence[NeuralModel], taken: np.ndarray) -> Pool:
        if plan.estimate == ENSEMBLE:
            return self._training.pool_of_several(models)
        return self._training.pool(models[0], taken, plan.estimate)

    def _step(self, plan: Plan, share: float, entry: dict[str, Any]) -> Step:
        taken = np.array(entry["taken"])
        chosen = self._training.chosen(taken)
        defaults = sum(group.spent[0] for group in self._training.groups)
        spent = defaults + sum(sum(group.spent[1:]) for group in chosen)
        pools = [
            ranked(group, np.array(scores), network, weight)
            for group, scores in zip(self._judged, entry["scores"], strict=True)
            for network, weight in Split.places(self._split, group.workload.key)
        ]
        label = label_of(plan, share)
        return Step(label, len(taken), spent / 3600.0, pools, entry["seconds"])
