"""Chains of platforms for `benchmarks.transfer`: learn one after the other, and keep how every platform is ranked."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pools import halves, large_pools
from tcl_iree.learning.checkpoint import Checkpoint, load_checkpoint
from tcl_iree.learning.cost_model import CostModel, FitOptions
from tcl_iree.learning.distillation.learner import Learned, Size, bytes_of
from tcl_iree.learning.distillation.lesson import Lesson
from tcl_iree.learning.distillation.names import LEARNERS, make_learner
from tcl_iree.learning.distillation.options import Distillation
from tcl_iree.learning.groups import Group, fingerprint
from tcl_iree.learning.mamba import MambaNetwork
from tcl_iree.learning.metrics import Ranked, ranked
from tcl_iree.learning.network import Network
from tcl_iree.learning.neural import NeuralModel, TrainingRecipe
from tcl_iree.learning.sampling import make_sampler
from tcl_iree.learning.sampling.programs import ProgramList, without_bred
from tcl_iree.learning.split import TEST, TRAIN, VALIDATION, Split, load_split
from tcl_iree.learning.tlp import TlpNetwork

ZERO_SHOT = "zero-shot"
# The rate that `benchmarks.cost_models` chose on validation, where it is not the usual one.
_RECIPES = {TlpNetwork.name: TrainingRecipe(rate=7e-4)}


@dataclass(frozen=True)
class Platform:
    """One platform's measured programs.

    Attributes:
        pool: those that could be labelled.
        judged: those that are ranked.
    """

    key: str
    pool: list[Group]
    validation: list[Group]
    judged: list[Group]

    @staticmethod
    def of(key: str, groups: Sequence[Group], part: str) -> Platform | None:
        """By the split; None if a part is missing."""
        parts = load_split().divide(groups)
        pool = [group for group in map(without_bred, parts[TRAIN]) if len(group) > 1]
        if part == TEST:
            split, stopping = load_split(), parts[VALIDATION]
            judged = [group for group in large_pools(parts[TEST]) if split.occurrences(group.workload.key)]
        else:
            stopping, judged = halves(parts[VALIDATION])
        return Platform(key, pool, stopping, judged) if pool and stopping and judged else None

    @cached_property
    def programs(self) -> list[Group]:
        """Those that could be labelled, without their times."""
        return [group.hidden() for group in self.pool]


@dataclass(frozen=True)
class Chain:
    """One run.

    Attributes:
        share: of the training part of every platform but the first that is labelled.
        variant: names the settings where they are not the usual ones.
    """

    order: tuple[str, ...]
    method: str
    share: float
    seed: int
    variant: str = ""
    options: Distillation = field(default_factory=Distillation)
    sampler: str = "rdu"

    @property
    def name(self) -> str:
        """What its figures stand under."""
        return self.variant or self.method

    def by(self, method: str) -> Chain:
        """The same labels learned by another method, with the usual settings."""
        return replace(self, method=method, variant="", options=Distillation())

    def __str__(self) -> str:
        return f"{' > '.join(self.order)}, {self.share:.1%}, {self.name}, seed {self.seed}"

    @property
    def file(self) -> str:
        """A name for what is kept of it."""
        name = f"{'+'.join(self.order)} {self.method} {self.variant} {self.sampler} {self.share:g} {self.seed}"
        return f"{name} {fingerprint(self.options, [])[:8]}".replace(" ", "_")


@dataclass(frozen=True)
class Outcome:
    """What came of a chain.

    Attributes:
        after: (number of platforms learned, platform) -> its pools as ranked then.
    """

    after: dict[tuple[int, str], list[Ranked]]
    size: Size
    teachers: tuple[str, ...]
    seconds: float


class Chains:
    """Runs chains; those that were run before are read.

    Args:
        split: says which networks run a workload and how often; None counts each workload alike.
        place: directory that outcomes and first models are kept in.
    """

    def __init__(self, platforms: dict[str, Platform], split: Split | None, place: Path, epochs: int) -> None:
        self._platforms, self._split, self._place, self._epochs = platforms, split, place, epochs
        self._labelled: dict[tuple[str, str, float, int, str], list[Group]] = {}

    def run(self, chain: Chain) -> Outcome:
        """Learn and rank."""
        path = self._place / f"{chain.file}.npz"
        if not path.exists():
            scores, about = self._learn(chain)
            self._place.mkdir(parents=True, exist_ok=True)
            waiting = path.with_suffix(".new.npz")
            arrays: dict[str, Any] = {"about": np.array(json.dumps(about)), **scores}
            np.savez_compressed(waiting, **arrays)
            waiting.replace(path)
        return self._read(path)

    def _learn(self, chain: Chain) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        started = time.monotonic()
        # Passes over few labels are short: patience that suits many would stop them before they learn.
        fit = FitOptions(self._epochs, patience=self._epochs, seed=chain.seed)
        first = chain.order[0]
        scores: dict[str, np.ndarray] = {}
        if chain.method == ZERO_SHOT:
            model = self._first(MambaNetwork, first, chain.seed)
            for platform in chain.order:
                scores |= self._scores(model, len(chain.order), platform)
            size = Size(model.parameters, bytes_of(model.state()))
            return scores, {"size": asdict(size), "teachers": [], "seconds": time.monotonic() - started}
        network = LEARNERS[chain.method].network
        learner = make_learner(chain.method, chain.options, self._first(network, first, chain.seed))
        learned: list[Learned] = []
        for count, platform in enumerate(chain.order, 1):
            learned.append(learner.learn(self._lesson(chain, platform), fit))
            for seen in chain.order[:count]:
                scores |= self._scores(learner.model(seen), count, seen)
        return scores, {
            "size": asdict(learner.size),
            "teachers": [entry.teacher for entry in learned],
            "seconds": time.monotonic() - started,
        }

    def _lesson(self, chain: Chain, platform: str) -> Lesson:
        held = self._platforms[platform]
        labelled = held.pool if platform == chain.order[0] else self._chosen(chain, platform)
        return Lesson(platform, labelled, held.validation, held.programs)

    def _chosen(self, chain: Chain, platform: str) -> list[Group]:
        key = (chain.order[0], platform, chain.share, chain.seed, chain.sampler)
        if key not in self._labelled:
            listed, none = ProgramList.of(self._platforms[platform].pool), np.zeros(0, np.int64)
            pool = listed.pool(self._first(MambaNetwork, chain.order[0], chain.seed), none)
            count = max(1, round(chain.share * len(listed)))
            self._labelled[key] = listed.chosen(make_sampler(chain.sampler).choose(pool, count, none, chain.seed))
        return self._labelled[key]

    def _first(self, network: type[Network], platform: str, seed: int) -> NeuralModel:
        """A model of the first platform, trained once for all methods that can use it."""
        path = self._place / f"first-{network.name}-{platform}-{seed}"
        if not path.with_name(f"{path.name}.json").exists():
            held, fresh = self._platforms[platform], NeuralModel(network(), _RECIPES.get(network.name))
            fresh.fit(held.pool, held.validation, FitOptions(self._epochs, seed=seed))
            Checkpoint(fresh, (platform,), (), {}).save(path)
        model = load_checkpoint(path).model
        assert isinstance(model, NeuralModel)
        return model

    def _scores(self, model: CostModel, count: int, platform: str) -> dict[str, np.ndarray]:
        groups = self._platforms[platform].judged
        return {f"{count}|{platform}|{number}": model.score(group) for number, group in enumerate(groups)}

    def _read(self, path: Path) -> Outcome:
        after: dict[tuple[int, str], list[Ranked]] = {}
        with np.load(path) as file:
            about = json.loads(str(file["about"]))
            for name in file.files:
                if name != "about":
                    count, platform, number = name.split("|")
                    group = self._platforms[platform].judged[int(number)]
                    pools = after.setdefault((int(count), platform), [])
                    pools += self._ranked(platform, group, file[name])
        return Outcome(after, Size(**about["size"]), tuple(about["teachers"]), about["seconds"])

    def _ranked(self, platform: str, group: Group, scores: np.ndarray) -> list[Ranked]:
        """One for each network; those of different platforms are different networks."""
        places = Split.places(self._split, group.workload.key)
        return [ranked(group, scores, f"{platform} {name}", count) for name, count in places]
