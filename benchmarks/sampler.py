"""Does measuring a chosen tenth of the programs train as good a model as measuring all of them?

The pool is the training part of the split, without labels. A sampler chooses a share of it, a Mamba model learns from
what was chosen, and chooses the next share; all rank the same pools of test workloads. Shares count attempts, failures
included. IREE's default of every workload is known to all: nothing is measured without it. Validation only says when
to stop training, the same for all. Hours are those that building and running the chosen programs took when they were
recorded, defaults included.

With --ablation, RDU without each of its parts and with other estimates of uncertainty rank one half of the validation
workloads; the other half says when to stop.
What was ranked is kept below --output, and a run that was cut off goes on where it stopped.

    python -m benchmarks.sampler --data benchmarks/data/avx512-1-thread-*.parquet
    python -m benchmarks.sampler --data benchmarks/data/ --samplers rdu random --seeds 0 --no-save
    python -m benchmarks.sampler --data benchmarks/data/avx512-1-thread-*.parquet --ablation --shares 0.05 0.1
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.common import measured_here, platform_of, recorded, save
from benchmarks.line_chart import write_line_chart
from benchmarks.pools import halves, searched_pools
from benchmarks.sampler_campaigns import ENSEMBLE, Campaigns, Plan, Step, label_of
from benchmarks.training import LEARNED_BY
from tcl_iree.learning.evaluation import FIGURES, PAIRS, ahead, evaluate, figure_name, interval
from tcl_iree.learning.groups import candidates_in, fingerprint
from tcl_iree.learning.sampling import SAMPLERS, make_sampler
from tcl_iree.learning.sampling.greedy import RduSampler
from tcl_iree.learning.sampling.programs import DROPOUT, ProgramList, without_bred
from tcl_iree.learning.split import TEST, TRAIN, VALIDATION, load_split
from tcl_iree.report.tables import console, table
from tcl_iree.workflows.data import Programs

_OURS, _EVERYTHING = "rdu", "everything"
_ABLATION = [
    Plan(_OURS, RduSampler()),
    Plan("representativeness 0", RduSampler(representativeness=0.0)),
    Plan("diversity 0", RduSampler(diversity=0.0)),
    Plan("uncertainty 0", RduSampler(uncertainty=0.0)),
    Plan("diversity alone", RduSampler(representativeness=0.0, uncertainty=0.0)),
    Plan("one of a workload", RduSampler(together=1)),
    Plan("representativeness 0.5", RduSampler(representativeness=0.5)),
    Plan("uncertainty 0.5", RduSampler(uncertainty=0.5)),
    Plan("random", make_sampler("random")),
    Plan("badge", make_sampler("badge")),
    Plan("uncertainty by dropout", RduSampler(), DROPOUT),
    Plan("uncertainty by an ensemble", RduSampler(), ENSEMBLE),
]
# Plan and share -> one step a seed.
Found = dict[str, list[Step]]


def main() -> None:
    """Choose, train, rank, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", type=Path, required=True, help="measured programs, as for tcl-iree train")
    parser.add_argument("--platform", help="only programs of this target's key, or its beginning")
    parser.add_argument("--samplers", nargs="+", default=list(SAMPLERS), choices=list(SAMPLERS))
    parser.add_argument("--shares", nargs="+", type=float, default=[0.02, 0.05, 0.1, 0.2])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--ablation", action="store_true", help="parts of RDU instead of samplers, on validation")
    parser.add_argument("--output", type=Path, default=Path("out/sampler"))
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="write a chart of top-1 against the share as SVG")
    parser.add_argument("--no-save", action="store_true", help="leave the recorded result as it is")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    split = load_split()
    with Programs(arguments.data) as files:
        parts = split.divide(files.groups(arguments.platform))
    validation = parts[VALIDATION]
    stopping, judged = halves(validation) if arguments.ablation else (validation, searched_pools(parts[TEST]))
    random_ones = [without_bred(group) for group in parts[TRAIN]]
    training = ProgramList.of([group for group in random_ones if len(group) > 1])
    run = fingerprint((arguments.epochs, LEARNED_BY), [*training.groups, *stopping, *judged])
    campaigns = Campaigns(
        training,
        stopping,
        judged,
        None if arguments.ablation else split,
        arguments.output / run,
        arguments.epochs,
    )
    plans = _ABLATION if arguments.ablation else [Plan(name, make_sampler(name)) for name in arguments.samplers]
    found: Found = {}
    for seed in arguments.seeds:
        for plan in (*plans, Plan(_EVERYTHING, None)):
            for step in campaigns.run(plan, arguments.shares, seed):
                found.setdefault(step.label, []).append(step)
                seen = evaluate(step.pools)
                print(f"{step.label}, seed {seed}: top-1 {seen.top_1:.3f}, top-5 {seen.top_5:.3f}, pairs {seen.accuracy:.3f} ({step.seconds:.0f} s)", file=sys.stderr, flush=True)  # fmt: skip
    figures = {label: _figures(found, label) for label in found}
    platforms = "+".join(sorted({platform_of(group.platform) for group in training.groups}))
    if not arguments.no_save:
        sizes = {
            "programs": len(training),
            "workloads": len(training.groups),
            "judged": candidates_in(judged),
            "judged_workloads": len(judged),
        }
        entry = sizes | {"seeds": arguments.seeds, "run": run, "figures": figures, **measured_here()}
        before = recorded("sampler")
        name = "ablation" if arguments.ablation else "platforms"
        others: dict[str, Any] = {key: before[key] for key in ("ablation", "platforms") if key in before}
        save("sampler", others | {name: others.get(name, {}) | {platforms: entry}})
    if arguments.chart:
        _draw(arguments.chart, plans, arguments.shares, figures)
    _print(figures)


def _figures(found: Found, label: str) -> dict[str, Any]:
    """Means over seeds with intervals, and the lead over random's choice of the same share and over everything."""
    steps = found[label]
    pools = [step.pools for step in steps]
    seen = [evaluate(held) for held in pools]
    made: dict[str, Any] = {
        "programs": steps[0].programs,
        "hours": float(np.mean([step.hours for step in steps])),
        "top_1": float(np.mean([entry.top_1 for entry in seen])),
        "top_5": float(np.mean([entry.top_5 for entry in seen])),
        "accuracy": float(np.mean([entry.accuracy for entry in seen])),
        "top_1_interval": interval(pools, 1),
        "top_5_interval": interval(pools, 5),
        "accuracy_interval": interval(pools, PAIRS),
        "each_seed": [{"top_1": entry.top_1, "top_5": entry.top_5, "accuracy": entry.accuracy} for entry in seen],
    }
    plan, _, share = label.rpartition(" ")
    for other in (f"random {share}", f"{_OURS} {share}", _EVERYTHING):
        if other in found and other != label and plan:
            beside = [step.pools for step in found[other]]
            made[f"ahead_of_{other}"] = {figure_name(figure): ahead(pools, beside, figure) for figure in FIGURES}
    return made


def _draw(path: Path, plans: Sequence[Plan], shares: Sequence[float], figures: Mapping[str, Any]) -> None:
    lines = {plan.name: [(100 * share, figures[label_of(plan, share)]["top_1"]) for share in shares] for plan in plans}
    lines[_EVERYTHING] = [(100 * share, figures[_EVERYTHING]["top_1"]) for share in shares]
    write_line_chart(path, "measured share of the pool, %", "top-1", lines)


def _print(figures: Mapping[str, Any]) -> None:
    rows = []
    for label, entry in figures.items():
        cells = [f"{entry['programs']}", f"{entry['hours']:.2f}"]
        cells += [
            f"{entry[form]:.3f} ({entry[form + '_interval'][0]:.3f}-{entry[form + '_interval'][1]:.3f})"
            for form in ("top_1", "top_5")
        ]
        leads: dict[str, Any] = next((entry[key] for key in entry if key.startswith("ahead_of_random")), {})
        spans = [f"{low:+.3f} to {high:+.3f}" for low, high in (leads[form] for form in ("top_1", PAIRS) if leads)]
        rows.append([label, *cells, f"{entry['accuracy']:.3f}", *(spans or ["", ""])])
    names = ["measured", "programs", "hours", "top-1", "top-5", "pairs in order"]
    names += ["top-1 against random", "pairs against random"]
    console().print(table("models trained on a share of the pool", names, rows, numeric=range(1, 8)))


if __name__ == "__main__":
    main()
