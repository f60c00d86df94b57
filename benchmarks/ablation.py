"""What each part of the Mamba cost model brings, on validation: every variant trained alike, three seeds.

All but two learn from labels alone, without a council, which takes a fraction of the time.

python -m benchmarks.ablation --data benchmarks/data/
python -m benchmarks.ablation --data benchmarks/data/ --variants whole 'no order' --seeds 0 --no-save
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.common import measured_here, recorded, save
from benchmarks.training import LEARNED_BY
from tcl_iree.features.statements import FEATURES, StatementEncoder
from tcl_iree.features.steps import Candidate
from tcl_iree.features.vocabulary import KINDS
from tcl_iree.learning.cost_model import CostModel, FitOptions
from tcl_iree.learning.council import CouncilModel
from tcl_iree.learning.encoding import Arrays, Batch, Encoder, tensors
from tcl_iree.learning.evaluation import evaluate, rank
from tcl_iree.learning.groups import fingerprint
from tcl_iree.learning.mamba import MambaNetwork
from tcl_iree.learning.models import make_model
from tcl_iree.learning.neural import NeuralModel
from tcl_iree.learning.ranking import lambda_rank
from tcl_iree.learning.split import TRAIN, VALIDATION, load_split
from tcl_iree.report.tables import console, table
from tcl_iree.target import Target
from tcl_iree.workflows.data import Programs
from tcl_iree.workload.model import Workload

_TARGET_ROWS = np.array([kind.startswith("target:") for kind in KINDS])
_NEST_ROWS = np.array([kind.startswith("nest:") for kind in KINDS])
_WORKLOAD_ROWS = np.array([kind.startswith("op:") or kind in ("loop", "operand") for kind in KINDS])


class _Changed(MambaNetwork):
    """The model with its input changed before it is read."""

    @staticmethod
    def change(arrays: Arrays) -> Arrays:
        """What the variant sees."""
        raise NotImplementedError

    def embedding(self, batch: Batch) -> Tensor:
        """Of the changed input; what was shared at the front need no longer be."""
        changed = self.change({name: value.numpy() for name, value in batch.items()})
        return super().embedding(tensors(changed | {"shared": np.zeros_like(changed["lengths"])}))


def _blank(arrays: Arrays, rows: np.ndarray) -> Arrays:
    """Rows of some kinds emptied, so that nothing but their number is left."""
    hidden = rows[arrays["kinds"]]
    return arrays | {
        "kinds": np.where(hidden, KINDS.index("<unknown>"), arrays["kinds"]),
        "roles": np.where(hidden, 0, arrays["roles"]),
        "numbers": np.where(hidden[..., None], 0.0, arrays["numbers"]).astype(np.float32),
    }


class NoTarget(_Changed):
    """Without the target's row."""

    change = staticmethod(lambda arrays: _blank(arrays, _TARGET_ROWS))


class NoWorkload(_Changed):
    """Without the workload's rows."""

    change = staticmethod(lambda arrays: _blank(arrays, _WORKLOAD_ROWS))


class NoNests(_Changed):
    """Without the rows behind the script, which say what it leaves."""

    @staticmethod
    def change(arrays: Arrays) -> Arrays:
        """They are the last ones: padding takes their place."""
        hidden = _NEST_ROWS[arrays["kinds"]]
        return arrays | {
            "kinds": np.where(hidden, 0, arrays["kinds"]),
            "roles": np.where(hidden, 0, arrays["roles"]),
            "numbers": np.where(hidden[..., None], 0.0, arrays["numbers"]).astype(np.float32),
            "lengths": arrays["lengths"] - hidden.sum(1),
        }


class RawNumbers(_Changed):
    """Sizes and extents as they are: no logarithms, trips, remainders or vectors."""

    @staticmethod
    def change(arrays: Arrays) -> Arrays:
        """Undo the logarithms of script rows; leave what stands before and behind them as it is."""
        numbers = arrays["numbers"].copy()
        script = ~(_TARGET_ROWS | _WORKLOAD_ROWS | _NEST_ROWS)[arrays["kinds"]]
        sizes = np.where(numbers[..., :2] != 0, 2.0 ** (8.0 * numbers[..., :2]), 0.0)
        numbers[..., :2] = np.where(script[..., None], sizes, numbers[..., :2])
        numbers[..., 2:5] = np.where(script[..., None], 0.0, numbers[..., 2:5])
        return arrays | {"numbers": numbers}


class NoOrder(_Changed):
    """Rows sorted by kind: what is done, not in which order."""

    @staticmethod
    def change(arrays: Arrays) -> Arrays:
        """Padding stays at the end."""
        keys = np.where(arrays["kinds"] == 0, len(KINDS), arrays["kinds"])
        order = np.argsort(keys, axis=1, kind="stable")
        numbers = np.take_along_axis(arrays["numbers"], order[..., None], 1)
        sorted_ = {name: np.take_along_axis(arrays[name], order, 1) for name in ("kinds", "roles")}
        return arrays | sorted_ | {"numbers": numbers}


class NoMask(MambaNetwork):
    """The mean and the end of the padded sequence."""

    def embedding(self, batch: Batch) -> Tensor:
        """Without a mask."""
        rows = self.read(batch, batch["kinds"].shape[1])
        return torch.cat([rows[:, -1], rows.mean(1)], dim=-1)


class WithGraph(MambaNetwork):
    """The root statement's graph features beside the sequence."""

    def __init__(self, **config: int) -> None:
        super().__init__(**config)
        self.graph = nn.Linear(FEATURES, 2 * self.number.out_features)
        self.graph_norm = nn.BatchNorm1d(FEATURES)

    def encoder(self, workload: Workload, target: Target) -> Encoder:
        """The sequence and the features."""
        encode, statements = super().encoder(workload, target), StatementEncoder(workload, target)

        def both(candidates: Sequence[Candidate]) -> Arrays:
            return encode(candidates) | {"graph": statements.statements(candidates)[0][:, 0]}

        return both

    def embedding(self, batch: Batch) -> Tensor:
        """Their sum."""
        return super().embedding(batch) + self.graph(self.graph_norm(batch["graph"]))


def mean_squares(scores: Tensor, labels: Tensor, valid: Tensor) -> Tensor:
    """Labels as numbers to hit."""
    return ((scores - labels)[valid] ** 2).mean()


def pairwise(scores: Tensor, labels: Tensor, valid: Tensor) -> Tensor:
    """RankNet: every pair in the wrong order costs alike."""
    pairs = (labels[:, :, None] > labels[:, None, :]) & valid[:, :, None] & valid[:, None, :]
    apart = scores[:, :, None] - scores[:, None, :]
    return nn.functional.softplus(-apart)[pairs].sum() / pairs.sum().clamp(min=1)


VARIANTS: dict[str, Callable[[], CostModel]] = {
    "whole": lambda: NeuralModel(MambaNetwork()),
    "taught by a council": lambda: make_model("mamba"),
    "taught by four Mambas": lambda: CouncilModel(MambaNetwork(), teachers=[lambda: NeuralModel(MambaNetwork())] * 4),
    "no workload": lambda: NeuralModel(NoWorkload()),
    "no target": lambda: NeuralModel(NoTarget()),
    "no rows of what is left": lambda: NeuralModel(NoNests()),
    "raw numbers": lambda: NeuralModel(RawNumbers()),
    "no mask": lambda: NeuralModel(NoMask()),
    "no order": lambda: NeuralModel(NoOrder()),
    "with graph features": lambda: NeuralModel(WithGraph()),
    "depth 1": lambda: NeuralModel(MambaNetwork(depth=1)),
    "depth 3": lambda: NeuralModel(MambaNetwork(depth=3)),
    "width 16": lambda: NeuralModel(MambaNetwork(width=16)),
    "width 48": lambda: NeuralModel(MambaNetwork(width=48)),
    "no dropout": lambda: NeuralModel(MambaNetwork(dropout=0.0)),
    "4 states": lambda: NeuralModel(MambaNetwork(states=4)),
    "16 states": lambda: NeuralModel(MambaNetwork(states=16)),
    "mean squares": lambda: NeuralModel(MambaNetwork(), loss=mean_squares),
    "all pairs alike": lambda: NeuralModel(MambaNetwork(), loss=pairwise),
    "LambdaRank, lists of 16": lambda: NeuralModel(MambaNetwork(), loss=_in_short_lists),
}


def _in_short_lists(scores: Tensor, labels: Tensor, valid: Tensor) -> Tensor:
    width = 16
    short = [given[:, : given.shape[1] // width * width].reshape(-1, width) for given in (scores, labels, valid)]
    return lambda_rank(*short) if short[0].numel() else lambda_rank(scores, labels, valid)


def main() -> None:
    """Train every variant, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", type=Path, required=True, help="measured programs, as for tcl-iree train")
    parser.add_argument("--platform", help="only programs of this target's key, or its beginning")
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--no-save", action="store_true", help="leave the recorded result as it is")
    arguments = parser.parse_args()
    with Programs(arguments.data) as programs:
        parts = load_split().divide(programs.groups(arguments.platform))
    if not parts[TRAIN] or not parts[VALIDATION]:
        raise SystemExit("the data has no training or no validation workloads; collect some of both")
    run = fingerprint((arguments.epochs, LEARNED_BY), [*parts[TRAIN], *parts[VALIDATION]])
    before = {} if arguments.no_save else recorded("ablation")
    results = before["variants"] if before.get("run") == run else {}  # figures of other data stand beside nothing
    for name in arguments.variants:
        found = []
        for seed in arguments.seeds:
            model = VARIANTS[name]()
            torch.manual_seed(seed)
            model.fit(parts[TRAIN], parts[VALIDATION], FitOptions(arguments.epochs, seed=seed))
            found.append(evaluate(rank(model, parts[VALIDATION])))
        results[name] = {
            "top_1": [entry.top_1 for entry in found],
            "top_5": [entry.top_5 for entry in found],
            "accuracy": [entry.accuracy for entry in found],
            "parameters": model.parameters,
            "seeds": arguments.seeds,
            **measured_here(),
        }
        print(f"{name}: top-1 {np.mean(results[name]['top_1']):.3f}", file=sys.stderr, flush=True)
        if not arguments.no_save:
            save("ablation", {"run": run, "epochs": arguments.epochs, "variants": results})
    _print(results)


def _print(results: dict[str, Any]) -> None:
    def cell(values: list[float]) -> str:
        return f"{np.mean(values):.3f} ({min(values):.3f}-{max(values):.3f})"

    rows = [
        [name, cell(entry["top_1"]), cell(entry["top_5"]), cell(entry["accuracy"]), str(entry["parameters"])]
        for name, entry in results.items()
    ]
    names = ["variant", "top-1", "top-5", "pairs in order", "parameters"]
    console().print(table("on validation, mean and range over seeds", names, rows, numeric=(1, 2, 3, 4)))


if __name__ == "__main__":
    main()
