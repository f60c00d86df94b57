"""Which cost model ranks schedules of unseen workloads best, and how fast?

Every model is trained on the training part of the one split, three seeds each; how fast it learns is chosen on
validation with the first seed, from as many values for each model. Then all rank the same pools of test workloads. Speed is on one core,
from schedules to scores, making the models' inputs included.

    python -m benchmarks.cost_models --data benchmarks/data/
    python -m benchmarks.cost_models --data benchmarks/data/ --models mamba xgboost --seeds 0 --no-save
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from benchmarks.common import measured_here, recorded, save
from benchmarks.pools import LEAST_POOL, searched_pools
from benchmarks.training import FLOORS, Trainer
from tcl_iree.learning.checkpoint import Checkpoint
from tcl_iree.learning.cost_model import CostModel
from tcl_iree.learning.evaluation import FIGURES, PAIRS, ahead, evaluate, figure_name, guesses, interval, rank
from tcl_iree.learning.groups import Group, candidates_in, fingerprint
from tcl_iree.learning.metrics import Ranked
from tcl_iree.learning.models import MODELS
from tcl_iree.learning.split import TEST, TRAIN, VALIDATION, load_split
from tcl_iree.report.tables import console, table
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workflows.data import Programs

_RANKED = 4096


def main() -> None:
    """Train, rank, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", type=Path, required=True, help="measured programs, as for tcl-iree train")
    parser.add_argument("--platform", help="only programs of this target's key, or its beginning")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument(
        "--output", type=Path, default=Path("out/cost_models"), help="checkpoints go there, and are used"
    )
    parser.add_argument("--trained", action="store_true", help="train nothing: rank with the seeds that are there")
    parser.add_argument("--no-save", action="store_true", help="leave the recorded result as it is")
    arguments = parser.parse_args()
    split = load_split()
    with Programs(arguments.data) as programs:
        groups = programs.groups(arguments.platform)
    parts = split.divide(groups)
    learning = [*parts[TRAIN], *parts[VALIDATION]]
    test = searched_pools(parts[TEST])
    if not test:
        raise SystemExit(f"no test workload has {LEAST_POOL} measured programs; collect more")
    trainer = Trainer(learning, arguments.seeds, arguments.epochs, arguments.output)
    run = fingerprint(trainer.run, test)
    before = {} if arguments.no_save else recorded("cost_models")
    before = before if before.get("run") == run else {}  # figures of other data stand beside nothing
    known = before.get("models", {})
    pools: dict[str, list[list[Ranked]]] = {}
    for name in arguments.models:
        seeds = arguments.seeds if name not in FLOORS else [0]
        if arguments.trained and name not in FLOORS:
            seeds = [seed for seed in seeds if trainer.trained(name, seed)]
        if not seeds:
            continue
        made = [trainer.checkpoint(name, seed) for seed in seeds]
        for checkpoint in made:
            split.refuse_overlap(checkpoint.training_keys, test)
        pools[name] = [rank(checkpoint.model, test, split) for checkpoint in made]
        if name == "random":
            pools[name] = guesses(pools[name][0])
        known[name] = _figures(made, pools[name], test) | measured_here()
        print(
            f"{name}: top-1 {known[name]['top_1']:.3f}, top-5 {known[name]['top_5']:.3f}", file=sys.stderr, flush=True
        )
    sizes = {
        "platforms": sorted({group.platform for group in groups}),
        "programs": {part: candidates_in(held) for part, held in parts.items()},
        "workloads": {part: len(held) for part, held in parts.items()},
        "test_pools": [len(group) - 1 for group in test],
        "seeds": arguments.seeds,
        "run": run,
    }
    differences = before.get("mamba_ahead_of", {}) | _differences(pools)
    if not arguments.no_save:
        save("cost_models", sizes | {"models": known, "mamba_ahead_of": differences})
    _print(known, sizes, differences)


def _figures(made: list[Checkpoint], pools: list[list[Ranked]], test: list[Group]) -> dict[str, Any]:
    found = [asdict(evaluate(held)) for held in pools]
    figures: dict[str, Any] = {name: float(np.mean([entry[name] for entry in found])) for name in found[0]}
    model = made[0].model
    return figures | {
        "each_seed": [{name: entry[name] for name in ("top_1", "top_5", "accuracy")} for entry in found],
        "top_1_interval": interval(pools, 1),
        "top_5_interval": interval(pools, 5),
        "accuracy_interval": interval(pools, PAIRS),
        "config": model.config,
        "parameters": model.parameters,
        "training_seconds": float(np.mean([checkpoint.metrics["training_seconds"] for checkpoint in made])),
        "candidates_per_second": _speed(model, max(test, key=lambda group: group.workload.flops)),
    }


def _speed(model: CostModel, group: Group) -> float:
    """Candidates ranked a second on one core, inputs made anew."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    schedules = list(islice(Space(group.workload, group.target).samples(Random(0)), _RANKED))
    model.predict(group.workload, group.target, schedules)
    taken = []
    for _ in range(5):
        started = time.perf_counter()
        model.predict(group.workload, group.target, schedules)
        taken.append(time.perf_counter() - started)
    torch.set_num_threads(threads)
    return len(schedules) / min(taken)


def _differences(pools: dict[str, list[list[Ranked]]]) -> dict[str, Any]:
    """95 % intervals of Mamba's lead in top-1, top-5 and pairs in order over each other model that learns."""
    if "mamba" not in pools:
        return {}
    others = [name for name in pools if name not in ("mamba", *FLOORS)]
    return {
        name: {figure_name(figure): ahead(pools["mamba"], pools[name], figure) for figure in FIGURES} for name in others
    }


def _print(models: dict[str, Any], sizes: dict[str, Any], differences: dict[str, Any]) -> None:
    rows = [
        [name, *(f"{entry[key]:.3f} ({entry[key + '_interval'][0]:.3f}-{entry[key + '_interval'][1]:.3f})" for key in ("top_1", "top_5", "accuracy")),
         str(entry["parameters"]), f"{entry['training_seconds']:.0f} s",
         f"{entry['candidates_per_second']:.0f}"]
        for name, entry in models.items()
    ]  # fmt: skip
    title = (
        f"{len(sizes['test_pools'])} test workloads, pools of {min(sizes['test_pools'])} to {max(sizes['test_pools'])}"
    )
    names = ["model", "top-1", "top-5", "pairs in order", "parameters", "training", "candidates/s"]
    console().print(table(title, names, rows, numeric=(1, 2, 3, 4, 5, 6)))
    for name, found in differences.items():
        text = ", ".join(
            f"{what.replace('_', '-')} {low:+.3f} to {high:+.3f}{' (ahead)' if low > 0 else ''}"
            for what, (low, high) in found.items()
        )
        console().print(f"mamba against {name}: {text}")


if __name__ == "__main__":
    main()
