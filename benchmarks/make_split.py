"""Make the one split of workloads that every benchmark of learning uses: tcl_iree/learning/split.json.

Test: five networks and the operators of `benchmarks.ops`. Whatever has a root op and loop sizes that occur there is
test data too, wherever else it occurs. Dispatches are formed under several of IREE's flag sets, and with other layouts,
since these change them.

    python -m benchmarks.make_split
    python -m benchmarks.make_split --add large-operators-6

With `--add`, networks are added to the validation part of the split there is, and nothing else changes: what was tested
on stays what is tested on, though IREE or the layouts may form other dispatches by now.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.op_list import OPS, build, model_of
from tcl_iree.errors import ModelError
from tcl_iree.frontend import Model, extract, load_model
from tcl_iree.frontend.model_ops import model_ops
from tcl_iree.learning.split import BUNDLED, TEST, TRAIN, VALIDATION, Split, load_split, make_split
from tcl_iree.report.progress import progress
from tcl_iree.target import Target
from tcl_iree.transform_dialect.graph_layouts import Layouts
from tcl_iree.workflows.base_flags import choose_base
from tcl_iree.workload.model import Workload

NETWORKS = {
    TEST: ("resnet-50", "mobilenet-v2", "bert-base", "gpt2-small", "vit-base"),
    VALIDATION: ("segformer-b0", "bert-small", "large-operators-6", "large-operators-7"),
    TRAIN: (
        "bert-mini", "bert-large", "gpt2-tiny", "deit-small", "resnet-18", "regnet-y", "convnext-tiny", "mobilenet-v1",
        "efficientnet-b0", "poolformer",
    ),
}  # fmt: skip
OPERATORS = "operators"
_BASES = ("plain", "im2col", "O2+im2col")

Held = list[tuple[Workload, int]]


def main() -> None:
    """Extract everything and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=BUNDLED)
    parser.add_argument("--add", nargs="+", choices=NETWORKS[VALIDATION], metavar="NETWORK")
    arguments = parser.parse_args()
    target = Target.parse("cpu,threads=1")
    split = _grown(arguments.add, target) if arguments.add else _made(target)
    arguments.output.write_text(split.to_json())
    for part, networks in split.members.items():
        print(
            f"{part}: {len({key for keys in networks.values() for key in keys})} workloads of {len(networks)} networks"
        )


def _grown(names: Sequence[str], target: Target) -> Split:
    split = load_split()
    with progress(len(names), "extracting") as step:
        for name in names:
            step(f"extracting {name}")
            split = split.with_validation(name, _workloads(load_model(f"zoo:{name}"), target, _BASES))
            step(f"extracted {name}", 1)
    return split


def _made(target: Target) -> Split:
    parts: dict[str, dict[str, Held]] = {}
    with progress(sum(map(len, NETWORKS.values())) + len(OPS), "extracting") as step:
        for part, names in NETWORKS.items():
            for name in names:
                step(f"extracting {name}")
                # Only what must not be learned from has to be known under every flag set.
                bases = _BASES[:1] if part == TRAIN else _BASES
                parts.setdefault(part, {})[name] = _workloads(load_model(f"zoo:{name}"), target, bases)
                step(f"extracted {name}", 1)
        held: Held = []
        for name in OPS:
            step(f"extracting {name}")
            held += _operator(name, target)
            step(f"extracted {name}", 1)
        parts[TEST][OPERATORS] = held
    return make_split(parts)


def _workloads(model: Model, target: Target, names: tuple[str, ...]) -> Held:
    bases = [choose_base(name, target, None) for name in names]
    extractions = [extract(model, target, base.flag_set.flags) for base in bases]
    if len(bases) > 1:
        extractions += [extract(model, target, bases[-1].flag_set.flags, graph) for graph in _graphs(model, target)]
    return [(entry.workload, entry.occurrences) for formed in extractions for entry in formed.dispatches]


def _graphs(model: Model, target: Target) -> list[str]:
    """Scripts of the layouts a model may be given: panels of every width, attention whole and taken apart."""
    family = Layouts(model_ops(model, target), target)
    usual, open_ones = family.usual(), {"conv_panel", "attention"}
    alike = [
        schedule
        for schedule in family.enumerate()
        if all(schedule[name] == value for name, value in usual.decisions if name not in open_ones)
    ]
    return [family.script(schedule) for schedule in alike]


def _operator(name: str, target: Target) -> Held:
    with tempfile.TemporaryDirectory() as scratch:
        try:
            return _workloads(model_of(build(name), scratch), target, _BASES)
        except ModelError as error:
            raise SystemExit(f"{name}: {error}") from None


if __name__ == "__main__":
    main()
