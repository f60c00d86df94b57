"""What does a tuned model cost to compile, and does it handle constants when it runs?

Each network is tuned by the cost model alone, with changed layouts: a library for every dispatch that has a schedule.
Then the whole model is compiled without and with it in turn, the latter by the command that `tune` prints, and the
dispatches of the latter are looked at: one that reads nothing but constants packs or copies them in every inference.

    python -m benchmarks.compiling
    python -m benchmarks.compiling --networks mobilenet-v2 --rounds 1
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.common import measured_here, recorded, save
from tcl_iree.frontend import Model, extract, load_model
from tcl_iree.frontend.iree_compile import compile_model
from tcl_iree.frontend.zoo import NETWORKS
from tcl_iree.processes import scratch_directory
from tcl_iree.report.progress import Step, progress
from tcl_iree.report.tables import console, table
from tcl_iree.target import Target
from tcl_iree.transform_dialect.graph_script import graph_text
from tcl_iree.transform_dialect.library import Library
from tcl_iree.transform_dialect.library_text import library_flags
from tcl_iree.workflows.layouts import CHANGE
from tcl_iree.workflows.tune import tune

_NETWORKS = (
    "resnet-50", "mobilenet-v2", "bert-base", "gpt2-small", "vit-base", "efficientnet-b0", "convnext-tiny",
)  # fmt: skip


def main() -> None:
    """Tune, compile, look, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", default=list(_NETWORKS), choices=list(NETWORKS), metavar="NAME")
    parser.add_argument("--target", default="cpu", metavar="T")
    parser.add_argument("--rounds", type=int, default=3, help="compiles of each, in turn")
    arguments = parser.parse_args()
    target = Target.parse(arguments.target)
    found = recorded("compiling").get("networks", {})
    for name in arguments.networks:
        with progress(1, f"tuning {name}") as say:
            found[name] = _network(load_model(f"zoo:{name}"), target, arguments.rounds, say) | measured_here()
        save("compiling", {"networks": found})
    rows = [
        [
            name,
            f"{entry['plain']:.1f} s",
            f"{entry['tuned']:.1f} s",
            f"{entry['tuned'] / entry['plain']:.2f}x",
            f"{entry['schedules']}",
            f"{entry['dispatches']}",
            ", ".join(entry["of_constants"]) or "none",
        ]
        for name, entry in found.items()
    ]
    names = ["network", "plain", "with schedules", "ratio", "schedules", "dispatches", "read constants alone"]
    console().print(table("whole models compiled without and with a library", names, rows, numeric=range(1, 6)))


def _network(model: Model, target: Target, rounds: int, say: Step) -> dict[str, Any]:
    library = tune(model, target=target, say=say, effort="none", layouts=CHANGE, again=True).library
    with scratch_directory("compiling") as scratch:
        taken = _compiled(model, library, Path(scratch), rounds, say)
    graph = graph_text(library.graph) if library.graph else ""
    held = extract(model, target, [*library.header.flags], graph)
    of_constants = [
        entry.workload.label
        for entry in held.dispatches
        if entry.constants
        and all(
            index in entry.constants
            for index, binding in enumerate(entry.workload.bindings)
            if binding.access == "readonly"
        )
    ]
    return {
        "plain": statistics.median(taken["plain"]),
        "tuned": statistics.median(taken["tuned"]),
        "rounds": taken,
        "schedules": len(library.entries),
        "dispatches": sum(entry.occurrences for entry in held.dispatches)
        + sum(entry.occurrences for entry in held.untunable),
        "of_constants": of_constants,
        "untunable": {entry.name: entry.reason for entry in held.untunable},
    }


def _compiled(model: Model, library: Library, directory: Path, rounds: int, say: Step) -> dict[str, list[float]]:
    """Seconds of every compile."""
    path = directory / "library.mlir"
    path.write_text(library.text())
    header = library.header
    ways: dict[str, Callable[[], str]] = {
        "plain": lambda: compile_model(model.path, header.target.compile_flags, directory / "plain.vmfb"),
        "tuned": lambda: compile_model(
            model.path, [*header.compile_flags, *library_flags(path)], directory / "tuned.vmfb"
        ),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    say("compiling in turn", total=rounds * len(ways))
    for _ in range(rounds):
        for name, compile_once in ways.items():
            started = time.perf_counter()
            compile_once()
            taken[name].append(time.perf_counter() - started)
            say("compiling in turn", 1)
    return taken


if __name__ == "__main__":
    main()
