"""The replays of `benchmarks.time_to_quality`: every search on every pool, and the figures of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.curve import Curve
from benchmarks.kept import file_name, kept
from benchmarks.quality_figures import Task, bar, figures
from benchmarks.quality_report import show
from benchmarks.replay import PooledGuided, PoolSpace, UpdatedGuided, replay
from benchmarks.replay_pool import ReplayPool
from benchmarks.training import FLOORS, Trainer
from tcl_iree.learning.cost_model import CostModel
from tcl_iree.learning.groups import fingerprint
from tcl_iree.learning.models import make_model
from tcl_iree.learning.split import load_split
from tcl_iree.search import Strategy, make_strategy

RANDOM_SEARCH = "random-search"
MODELS = ("mamba", "tlp", "tenset-mlp", "xgboost", "random", RANDOM_SEARCH)
PRETRAINED, COLD = "pretrained", "cold"
_UPDATED = "-updated"
MODES = (PRETRAINED, COLD, PRETRAINED + _UPDATED, COLD + _UPDATED)


@dataclass(frozen=True)
class Searcher:
    """A cost model, and what it knows beforehand and learns on the way."""

    model: str
    mode: str = ""

    def __str__(self) -> str:
        return f"{self.model}, {self.mode}" if self.mode else self.model


OURS, YARDSTICK = Searcher("mamba", PRETRAINED), Searcher("tenset-mlp", PRETRAINED)


@dataclass(frozen=True)
class ReplayOptions:
    """What to replay.

    Attributes:
        trials: of a whole search.
        early: trials to look at the latency after.
        within: share of latency that counts as equal.
        output: replays are kept below this directory.
    """

    models: Sequence[str]
    modes: Sequence[str]
    seeds: Sequence[int]
    trials: int
    early: int
    within: float
    output: Path

    @property
    def searchers(self) -> list[Searcher]:
        """All searches; what learns nothing beforehand has no modes."""
        unlearned = (*FLOORS, RANDOM_SEARCH)
        return [
            Searcher(model, mode) for model in self.models for mode in (self.modes if model not in unlearned else [""])
        ]


def replayed(pools: Sequence[ReplayPool], trainer: Trainer, options: ReplayOptions) -> dict[str, Any]:
    """Replay every search that was not replayed yet, print the figures and return them."""
    named = {f"{pool.group.workload.key} {pool.group.platform}": pool for pool in pools}
    place = options.output / fingerprint((trainer.run, options.trials), [pool.group for pool in pools])
    runs = {str(searcher): _runs(searcher, named, trainer, options, place) for searcher in options.searchers}
    curves = {
        name: {key: [Curve.from_plain(run) for run in held] for key, held in entry.items()}
        for name, entry in runs.items()
    }
    tasks = {key: Task(pool.group.workload.label, options.trials, options.early) for key, pool in named.items()}
    rows = figures(curves, tasks, str(YARDSTICK), options.within)
    for name, found in rows.items():
        found["thinking_seconds"] = float(np.mean([run["thinking"] for held in runs[name].values() for run in held]))
        found["early_of_best"] = _of_best(curves[name], named, options.early)
        found["final_of_best"] = _of_best(curves[name], named, options.trials)
    title = f"{len(pools)} pools of {min(len(pool.programs) for pool in pools)} programs or more, replayed"
    show(title, rows, tasks, str(YARDSTICK), str(OURS), options.early)
    return {
        "trials": options.trials,
        "early": options.early,
        "within": options.within,
        "seeds": list(options.seeds),
        "headline": {what: rows.get(str(OURS), {}).get(f"gain_in_{what}") for what in ("seconds", "trials", "early")},
        "pools": {
            key: {
                "label": pool.group.workload.label,
                "programs": len(pool.programs),
                "default_seconds": pool.default_seconds,
                "best_seconds": pool.best_seconds,
                "bar_seconds": bar(curves[str(YARDSTICK)][key], options.within),
            }
            for key, pool in named.items()
        },
        "searches": rows,
    }


def _runs(
    searcher: Searcher, pools: Mapping[str, ReplayPool], trainer: Trainer, options: ReplayOptions, place: Path
) -> dict[str, list[dict[str, Any]]]:
    """The replays of one searcher, by pool, one for each seed."""
    runs: dict[str, list[dict[str, Any]]] = {key: [] for key in pools}
    for seed in options.seeds:
        for key, pool in pools.items():
            path = place / file_name(f"{searcher} {seed}") / f"{file_name(key)}.json"
            runs[key].append(kept(path, partial(_run, searcher, seed, pool, trainer, options.trials)))
        ends = [pool.best_seconds / Curve.from_plain(runs[key][-1]).final for key, pool in pools.items()]
        print(
            f"{searcher}, seed {seed}: ends at {min(ends):.3f} to {max(ends):.3f} of the pools' best",
            file=sys.stderr, flush=True,
        )  # fmt: skip
    return runs


def _run(searcher: Searcher, seed: int, pool: ReplayPool, trainer: Trainer, trials: int) -> dict[str, Any]:
    """One replay as plain data."""
    done = replay(pool, _strategy(searcher, seed, pool, trainer), trials)
    return done.curve.plain() | {"thinking": done.thinking}


def _strategy(searcher: Searcher, seed: int, pool: ReplayPool, trainer: Trainer) -> Strategy:
    space = PoolSpace(pool)
    if searcher.model == RANDOM_SEARCH:
        return make_strategy("random", space, seed)
    model = _model(searcher, seed, trainer)
    if searcher.mode.endswith(_UPDATED):
        return UpdatedGuided(space, seed, model, pool.default_seconds)
    return PooledGuided(space, seed, model)


@lru_cache(maxsize=1)
def _model(searcher: Searcher, seed: int, trainer: Trainer) -> CostModel:
    """Trained, or with weights as training would start from."""
    if searcher.mode.startswith(PRETRAINED):
        made = trainer.checkpoint(searcher.model, seed)
        load_split().refuse_overlap(made.training_keys)
        return made.model
    torch.manual_seed(seed)
    return make_model(searcher.model)


def _of_best(curves: Mapping[str, Sequence[Curve]], pools: Mapping[str, ReplayPool], trials: int) -> float:
    """Time of a pool's best program over that of the search's best, geometric mean over pools and seeds."""
    ratios = [pools[key].best_seconds / curve.after_trials(trials) for key, held in curves.items() for curve in held]
    return float(np.exp(np.mean(np.log(ratios))))
