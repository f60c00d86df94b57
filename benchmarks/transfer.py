"""How well does a cost model learn one platform after the other from few labels, and what does it forget?

Every distinct target of the data is a platform, the host's own CPU and its class being one. In a given order, the first is learned from its whole training part;
of each later one a share of the training part is labelled, chosen by RDU as the first platform's model sees it, the
same for every method. After each platform all platforms so far are ranked. Validation only says when to stop (and, for
distillation, which teacher to take); what is ranked on validation is one half of it, and the other half says that.

- average: top-k over all platforms after the last;
- forgetting: what top-k of earlier platforms has lost since they were learned;
- forward transfer: top-k of a later platform right after it was learned, beside that of training from scratch on the
  same labels;
- zero-shot: the first platform's model on all, with no labels of the others.

What was ranked is kept below --output, and a run that was cut off goes on where it stopped.

    python -m benchmarks.transfer --data benchmarks/data/ --shares 0.01 0.1
    python -m benchmarks.transfer --data benchmarks/data/ --orders cpu-avx2,cpu-avx512 --seeds 0 --no-save
    python -m benchmarks.transfer --data benchmarks/data/ --ablation --shares 0.1
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import measured_here, platform_of, recorded, save
from benchmarks.training import LEARNED_BY
from benchmarks.transfer_chains import ZERO_SHOT, Chain, Chains, Platform
from benchmarks.transfer_figures import FORMS, figures, leads
from tcl_iree.learning.distillation.names import LEARNERS
from tcl_iree.learning.distillation.options import SQUARES, Distillation
from tcl_iree.learning.evaluation import PAIRS
from tcl_iree.learning.groups import candidates_in, fingerprint
from tcl_iree.learning.split import TEST, VALIDATION, load_split
from tcl_iree.report.tables import console, table
from tcl_iree.workflows.data import Programs

OURS, ALONE = "continual-distillation", "from-scratch"
# Settings of the distillation, and the sampler.
ABLATION: dict[str, tuple[Distillation, str]] = {
    "whole": (Distillation(), "rdu"),
    "no lateral connections": (Distillation(lateral=False), "rdu"),
    "score starts at zero": (Distillation(residual=False), "rdu"),
    "one column": (Distillation(columns=1), "rdu"),
    "no gate": (Distillation(gate=False), "rdu"),
    "EWC 0": (Distillation(ewc=0.0), "rdu"),
    "EWC 2.5": (Distillation(ewc=2.5), "rdu"),
    "EWC 250": (Distillation(ewc=250.0), "rdu"),
    "nothing recalled": (Distillation(recall=0.0), "rdu"),
    "nothing recalled, EWC 0": (Distillation(recall=0.0, ewc=0.0), "rdu"),
    "squared differences": (Distillation(loss=SQUARES), "rdu"),
    "temperature 1": (Distillation(temperature=1.0), "rdu"),
    "random labels": (Distillation(), "random"),
}


def main() -> None:
    """Run every chain that was not run yet, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", type=Path, required=True, help="measured programs, as for tcl-iree train")
    parser.add_argument("--orders", nargs="+", default=[], metavar="KEY,KEY", help="platforms in order, by their keys or beginnings (default: all, both ways)")  # fmt: skip
    parser.add_argument("--methods", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--shares", nargs="+", type=float, default=[0.01, 0.1])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--part", choices=(TEST, VALIDATION), default=TEST, help="what is ranked (default %(default)s)")
    parser.add_argument("--ablation", action="store_true", help="settings of the distillation instead, on validation")
    parser.add_argument("--variants", nargs="+", default=list(ABLATION), choices=list(ABLATION), help="of the ablation")
    parser.add_argument("--output", type=Path, default=Path("out/transfer"))
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument("--no-save", action="store_true", help="leave the recorded result as it is")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    part = VALIDATION if arguments.ablation else arguments.part
    platforms = _platforms(arguments.data, part)
    orders = [_order(text, platforms) for text in arguments.orders] or [tuple(platforms), tuple(platforms)[::-1]]
    run = fingerprint(
        (arguments.epochs, part, Distillation(), LEARNED_BY),
        [group for held in platforms.values() for group in (*held.pool, *held.validation, *held.judged)],
    )
    chains = Chains(platforms, load_split() if part == TEST else None, arguments.output / run, arguments.epochs)
    name = "ablation" if arguments.ablation else part
    before = {} if arguments.no_save else recorded("transfer")
    kept = {key: before[key] for key in ("runs", "platforms", TEST, VALIDATION, "ablation") if key in before}
    runs = kept.get("runs", {})
    section: dict[str, Any] = kept.get(name, {}) if runs.get(name) == run else {}  # figures of other data go

    def keep() -> None:
        if not arguments.no_save:
            sizes = kept.get("platforms", {}) | {name: _sizes(platforms)}
            save("transfer", kept | {"platforms": sizes, "runs": runs | {name: run}, name: section})

    for wanted in _wanted(arguments, orders):
        first, found = wanted[0], [chains.run(chain) for chain in wanted]
        alone = [chains.run(chain.by(ALONE)) for chain in wanted] if first.share else None
        entry = figures(first.order, found, alone) | {"seeds": arguments.seeds, **measured_here()}
        _place(section, first.order, first.share)["methods"][first.name] = entry
        print(f"{first.name}, {' > '.join(first.order)}, {first.share:.1%}: average top-1 {entry['top_1']['average']:.3f}", file=sys.stderr, flush=True)  # fmt: skip
        keep()
    if not arguments.ablation and OURS in arguments.methods:
        for order in orders:
            for share in arguments.shares:
                held = {
                    method: [chains.run(Chain(order, method, share, seed)) for seed in arguments.seeds]
                    for method in arguments.methods
                }
                _place(section, order, share).setdefault("ahead_of", {}).update(leads(order, held, OURS))
        keep()
    _print(section)


def _place(section: dict[str, Any], order: Sequence[str], share: float) -> dict[str, Any]:
    """Where the figures of an order and a share are kept."""
    return section.setdefault(" > ".join(order), {}).setdefault(f"{share:g}", {"methods": {}})


def _platforms(data: Sequence[Path], part: str) -> dict[str, Platform]:
    with Programs(data) as programs:
        groups = programs.groups()
    made = {}
    for key in sorted({platform_of(group.platform) for group in groups}):
        held = Platform.of(key, [group for group in groups if platform_of(group.platform) == key], part)
        if held:
            made[key] = held
        else:
            print(f"{key} is left out: it has no workloads to learn from, to stop by or of {part}", file=sys.stderr)
    if not made:
        raise SystemExit(f"no platform of the data has training, validation and {part} workloads; collect some")
    return made


def _order(text: str, platforms: dict[str, Platform]) -> tuple[str, ...]:
    found = []
    for beginning in text.split(","):
        keys = [key for key in platforms if key.startswith(beginning)]
        if len(keys) != 1:
            raise SystemExit(
                f"{beginning!r} must be the beginning of one platform's key; there are {', '.join(platforms)}"
            )
        found += keys
    return tuple(found)


def _wanted(arguments: argparse.Namespace, orders: Sequence[tuple[str, ...]]) -> list[list[Chain]]:
    """Chains that differ only in their seed, together."""
    seeds = arguments.seeds
    if arguments.ablation:
        return [
            [Chain(order, OURS, share, seed, name, options, sampler) for seed in seeds]
            for order in orders
            for share in arguments.shares
            for name, (options, sampler) in ABLATION.items()
            if name in arguments.variants
        ]
    zero = [[Chain(order, ZERO_SHOT, 0.0, seed) for seed in seeds] for order in orders]
    return zero + [
        [Chain(order, method, share, seed) for seed in seeds]
        for order in orders
        for share in arguments.shares
        for method in arguments.methods
    ]


def _sizes(platforms: dict[str, Platform]) -> dict[str, Any]:
    return {
        key: {
            "target": str(held.pool[0].target),
            "programs": candidates_in(held.pool),
            "validation": candidates_in(held.validation),
            "ranked": candidates_in(held.judged),
            "ranked_workloads": len(held.judged),
        }
        for key, held in platforms.items()
    }


def _print(section: dict[str, Any]) -> None:
    names = [
        "method",
        "average top-1",
        "top-5",
        "pairs in order",
        "forgetting",
        "forward transfer",
        "parameters",
        "MB",
        "programs kept",
    ]
    for order, shares in section.items():
        for share, held in shares.items():
            rows = []
            for name, entry in held["methods"].items():
                low, high = entry["top_1"]["average_interval"]
                cells = [f"{entry['top_1']['average']:.3f} ({low:.3f}-{high:.3f})", f"{entry['top_5']['average']:.3f}"]
                cells.append(f"{entry[PAIRS]['average']:.3f}")
                cells += [f"{entry['top_1'][form]:+.3f}" if form in entry["top_1"] else "" for form in FORMS[1:]]
                size = entry["size"]
                rows.append(
                    [name, *cells, str(size["parameters"]), f"{size['bytes'] / 1e6:.2f}", str(size["programs"])]
                )
            title = f"{order}: {float(share):.1%} of later platforms labelled"
            console().print(table(title, names, rows, numeric=range(1, 9)))
            for method, found in held.get("ahead_of", {}).items():
                text = ", ".join(
                    f"{what.replace('_', '-')} {low:+.3f} to {high:+.3f}" for what, (low, high) in found.items()
                )
                console().print(f"{OURS} against {method}, all platforms: {text}")


if __name__ == "__main__":
    main()
