"""How should a convolution's filters lie, and which loop should go through them?

The 3x3 convolutions of ResNet-50 with batch norm and relu, channels last, filters from memory as inside the model. Filters
lie whole or in panels of two vectors; `convolution` goes through all of them for every image row, `filter_panels` through
all rows for every panel. Random schedules of the four ways are measured in turn; the best of each counts.

    python -m benchmarks.filters
    python -m benchmarks.filters --channels 512 --schedules 8 --target cpu,threads=1
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import product
from random import Random
from typing import Any

import torch

from benchmarks.common import measured_here, recorded, save
from benchmarks.op_list import conv_norm_relu
from tcl_iree.frontend import extract, load_model
from tcl_iree.frontend.model_ops import model_ops
from tcl_iree.measure.builder import Builder, Candidate
from tcl_iree.measure.results import Artifact
from tcl_iree.measure.runner import Runner
from tcl_iree.measure.timing import TimingPolicy
from tcl_iree.report.progress import Step, progress
from tcl_iree.report.tables import console, table
from tcl_iree.target import Target
from tcl_iree.transform_dialect.cpu_limits import STACK_FLAG
from tcl_iree.transform_dialect.families import family_of
from tcl_iree.transform_dialect.graph_layouts import Layouts
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.workload.model import Workload

# Channels, and the size of their images.
_SIZES = {64: 56, 128: 28, 256: 14, 512: 7}
_FAMILIES = ("convolution", "filter_panels")
_FROM_MEMORY = 64 << 20
_TIMING = TimingPolicy(round_seconds=0.02, max_rounds=12, precision=0.02, patience=0.7, give_up_at=1.4)


@dataclass
class _Way:
    """A layout and a family: its programs, and the seconds of those that were measured."""

    workload: Workload
    reference: Artifact
    programs: list[tuple[Schedule, Artifact]]
    taken: list[tuple[float, str]] = field(default_factory=list)


def main() -> None:
    """Measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--channels", nargs="+", type=int, default=list(_SIZES), choices=list(_SIZES), metavar="C")
    parser.add_argument("--schedules", type=int, default=16, help="of each way (default %(default)s)")
    parser.add_argument("--target", default="cpu", metavar="T")
    arguments = parser.parse_args()
    target = Target.parse(arguments.target)
    found = recorded("filters").get("convolutions", {})
    for channels in arguments.channels:
        with progress(1, f"{channels} channels") as say:
            ways = _measured(channels, target, arguments.schedules, say)
        found[f"{channels} at {_SIZES[channels]}, {target}"] = {"ways": ways, **measured_here()}
        save("filters", {"convolutions": found})
    names = ["convolution", "filters", "family", "best", "second", "median", "of the first", "schedule"]
    rows = []
    for name, entry in found.items():
        first = next(iter(entry["ways"].values()))["seconds"][0]
        for way, figures in entry["ways"].items():
            best, second, median = (figures["seconds"][at] for at in (0, 1, len(figures["seconds"]) // 2))
            times = [f"{1e3 * seconds:.2f} ms" for seconds in (best, second, median)]
            rows.append([name, *way.split(", "), *times, f"{first / best:.2f}x", figures["schedule"]])
    console().print(table("filters from memory, two ways to lie and two to be read", names, rows, numeric=range(3, 7)))


def _measured(channels: int, target: Target, count: int, say: Step) -> dict[str, Any]:
    """Seconds of random schedules of each way, ascending, and the fastest schedule."""
    torch.manual_seed(0)
    op = conv_norm_relu(channels, channels, _SIZES[channels])
    model = load_model(op.module.eval(), list(op.inputs))
    layouts = Layouts(model_ops(model, target), target)
    with ExitStack() as stack:
        builder = stack.enter_context(Builder(target, flags=(STACK_FLAG,)))
        runner = stack.enter_context(Runner(target, _TIMING))
        ways = {}
        for cut, family in product((False, True), _FAMILIES):
            say(f"building {family}")
            extraction = extract(model, target, [STACK_FLAG], layouts.script(layouts.usual(cut=cut)))
            dispatch = max(extraction.dispatches, key=lambda entry: entry.workload.flops)
            sizes = [binding.size_bytes for binding in dispatch.workload.bindings]
            filters = max(dispatch.constants, key=lambda index: sizes[index])
            spans = tuple(_FROM_MEMORY * (index == filters) for index in range(len(sizes)))
            workload = replace(dispatch.workload, spans=spans)
            ways[f"{'in panels' if cut else 'whole'}, {family}"] = _built(workload, family, builder, count)
        say("measuring in turn", total=sum(len(way.programs) for way in ways.values()))
        for number in range(count):
            for name, way in ways.items():
                for schedule, artifact in way.programs[number : number + 1]:
                    result = runner.measure(way.workload, artifact, way.reference)
                    if result.timing:
                        way.taken.append((result.timing.p50, str(schedule)))
                    say(f"measuring {name} in turn", 1)
    return {
        name: {"seconds": [seconds for seconds, _ in sorted(way.taken)], "schedule": min(way.taken)[1]}
        for name, way in ways.items()
    }


def _built(workload: Workload, family: str, builder: Builder, count: int) -> _Way:
    """Random schedules of a family that compile."""
    made, rng = family_of(family), Random(0)
    drawn = (made.sample(workload, builder.target, rng) for _ in range(8 * count))
    schedules = list(dict.fromkeys(schedule for schedule in drawn if schedule))[:count]
    scripts = [Candidate(made.script(schedule, workload, builder.target)) for schedule in schedules]
    built = zip(schedules, builder.build_many(workload, scripts), strict=True)
    reference = builder.build_default(workload).artifact
    assert reference
    return _Way(workload, reference, [(schedule, result.artifact) for schedule, result in built if result.artifact])


if __name__ == "__main__":
    main()
