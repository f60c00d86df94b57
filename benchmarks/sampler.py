"""Does measuring a chosen tenth of the programs train as good a model as measuring all of them?

The pool is the training part of the split, without labels. A sampler chooses a share of it, a Mamba model learns from
what was chosen, and chooses the next share; all rank the same pools of test workloads. Shares count attempts, failures
included. IREE's default of every workload is known to all: nothing is measured without it. Validation only says when
to stop training, the same for all.

    python -m benchmarks.sampler --data benchmarks/data/
    python -m benchmarks.sampler --data benchmarks/data/ --samplers rdu random --seeds 0 --no-save
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.common import measured_here, recorded, save
from tcl_iree.learning.cost_model import FitOptions
from tcl_iree.learning.evaluation import ahead, evaluate, interval, rank
from tcl_iree.learning.groups import Group, candidates_in, fingerprint
from tcl_iree.learning.mamba import MambaNetwork
from tcl_iree.learning.metrics import Ranked
from tcl_iree.learning.neural import NeuralModel
from tcl_iree.learning.sampling import SAMPLERS, make_sampler
from tcl_iree.learning.sampling.programs import ProgramList, without_bred
from tcl_iree.learning.split import TEST, TRAIN, VALIDATION, load_split
from tcl_iree.report.tables import console, table
from tcl_iree.workflows.data import Programs

_LEAST_POOL = 100
_EVERYTHING = "everything"


def main() -> None:
    """Choose, train, rank, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", type=Path, required=True, help="measured programs, as for tcl-iree train")
    parser.add_argument("--platform", help="only programs of this target's key, or its beginning")
    parser.add_argument("--samplers", nargs="+", default=list(SAMPLERS), choices=list(SAMPLERS))
    parser.add_argument("--shares", nargs="+", type=float, default=[0.02, 0.05, 0.1, 0.2])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument("--no-save", action="store_true", help="leave the recorded result as it is")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with Programs(arguments.data) as files:
        parts = load_split().divide(files.groups(arguments.platform))
    test = [group for group in parts[TEST] if len(group) > _LEAST_POOL]
    random_ones = [without_bred(group) for group in parts[TRAIN]]
    training = ProgramList.of([group for group in random_ones if len(group) > 1])
    run = fingerprint((arguments.epochs, arguments.shares), [*training.groups, *parts[VALIDATION], *test])
    before = {} if arguments.no_save else recorded("sampler")
    results: dict[str, Any] = before.get("results", {}) if before.get("run") == run else {}
    pools: dict[str, dict[int, list[Ranked]]] = {}
    for seed in arguments.seeds:
        for name in (*arguments.samplers, _EVERYTHING):
            for label, ranked, spent in _campaign(name, training, parts[VALIDATION], test, seed, arguments):
                pools.setdefault(label, {})[seed] = ranked
                found = asdict(evaluate(ranked))
                print(f"{label}, seed {seed}: top-1 {found['top_1']:.3f}, top-5 {found['top_5']:.3f}, pairs {found['accuracy']:.3f} ({spent:.0f} s)", file=sys.stderr, flush=True)  # fmt: skip
                results.setdefault(label, {})[str(seed)] = {
                    name: found[name] for name in ("top_1", "top_5", "accuracy")
                }
        if not arguments.no_save:
            sizes = {"programs": len(training), "test_workloads": len(test), "test": candidates_in(test)}
            save("sampler", sizes | {"run": run, "results": results, **measured_here()})
    _print(pools)


def _campaign(
    name: str,
    training: ProgramList,
    validation: Sequence[Group],
    test: Sequence[Group],
    seed: int,
    arguments: argparse.Namespace,
) -> list[tuple[str, list[Ranked], float]]:
    """Choose share after share; what is chosen stays chosen."""
    split = load_split()
    total = len(training)
    torch.manual_seed(seed)
    model = NeuralModel(MambaNetwork())
    taken = np.zeros(0, np.int64)
    found = []
    shares = [1.0] if name == _EVERYTHING else arguments.shares
    for share in shares:
        started = time.monotonic()
        if name == _EVERYTHING:
            taken = np.arange(total)
        else:
            pool = training.pool(model, taken)
            more = make_sampler(name).choose(pool, round(share * total) - len(taken), taken, seed)
            taken = np.concatenate([taken, more])
        model = NeuralModel(MambaNetwork())
        model.fit(training.chosen(taken), validation, FitOptions(arguments.epochs, seed=seed))
        label = name if name == _EVERYTHING else f"{name} {share:.0%}"
        found.append((label, rank(model, test, split), time.monotonic() - started))
    return found


def _print(pools: dict[str, dict[int, list[Ranked]]]) -> None:
    rows = []
    for label, held in pools.items():
        seeds = list(held.values())
        cells = []
        for count in (1, 5):
            mean = np.mean([getattr(evaluate(ranked), f"top_{count}") for ranked in seeds])
            low, high = interval(seeds, count)
            cells.append(f"{mean:.3f} ({low:.3f}-{high:.3f})")
        other = pools.get(label.replace("rdu", "random"), {}) if label.startswith("rdu") else {}
        beside = ahead(seeds, [other[seed] for seed in held], 1) if set(other) >= set(held) else None
        rows.append([label, *cells, f"{beside[0]:+.3f} to {beside[1]:+.3f}" if beside else ""])
    names = ["measured", "top-1", "top-5", "top-1 against random"]
    console().print(table("models trained on a share of the pool", names, rows, numeric=(1, 2, 3)))


if __name__ == "__main__":
    main()
