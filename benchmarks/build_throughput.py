"""How many variants of one dispatch are compiled per second and core, against plain `iree-compile` calls?

The builder isolates every compile in a process with limits and proves that the schedule was applied; plain
`iree-compile` does neither. Both compile the same schedules of the same matmul, interleaved, one process at a time.

    python -m benchmarks.build_throughput
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from iree.compiler.tools.binaries import find_tool

from benchmarks.common import matmul_config, matmul_text, matmul_workload, save
from benchmarks.repeatability import SHAPE, VARIANTS
from tcl_iree.measure.builder import BUILD_FLAGS, Builder, Candidate
from tcl_iree.measure.harness import harness_module
from tcl_iree.report.progress import progress
from tcl_iree.report.tables import console, table
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload


def main() -> None:
    """Measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--rounds", type=int, default=2, help="times over all variants")
    arguments = parser.parse_args()
    target = Target.parse(arguments.target)
    workload = matmul_workload(*SHAPE, target)
    libraries = [matmul_config(*variant) for variant in VARIANTS] * arguments.rounds
    seconds: dict[str, list[float]] = {"builder": [], "iree-compile, dispatch": [], "iree-compile, model": []}
    with tempfile.TemporaryDirectory() as scratch, Builder(target, workers=1, cache=None) as builder:
        builder.build_default(workload)
        model, dispatch, library_path = (Path(scratch) / f"{name}.mlir" for name in ("model", "dispatch", "library"))
        model.write_text(matmul_text(*SHAPE))
        dispatch.write_text(harness_module(workload, builder._device_attribute()))
        with progress(len(libraries), "compiling") as step:
            for library in libraries:
                library_path.write_text(library.text)
                started = time.perf_counter()
                built = builder.build(workload, library)
                seconds["builder"].append(time.perf_counter() - started)
                if not built.artifact:
                    raise SystemExit(f"a schedule did not build: {built.failure}")
                flag = f"--iree-codegen-transform-dialect-library={library_path}"
                for name, command in {
                    "iree-compile, dispatch": [str(dispatch), "--compile-from=executable-sources"],
                    "iree-compile, model": [str(model)],
                }.items():
                    whole = [
                        find_tool("iree-compile"),
                        *command,
                        *target.compile_flags,
                        *BUILD_FLAGS,
                        flag,
                        "-o",
                        f"{scratch}/out.vmfb",
                    ]
                    started = time.perf_counter()
                    subprocess.run(whole, check=True, capture_output=True)
                    seconds[name].append(time.perf_counter() - started)
                step("compiling", advance=1)
        all_cores = _all_cores(target, workload, libraries)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    ratios = {
        name: statistics.median(other / ours for other, ours in zip(values, seconds["builder"], strict=True))
        for name, values in seconds.items()
    }
    rows = [
        [name, f"{1 / medians[name]:.2f}", f"{1000 * medians[name]:.0f} ms", f"{ratios[name]:.2f}x"] for name in medians
    ]
    title = f"compiled variants per second and core, {len(libraries)} builds ({all_cores:.1f} per second on all cores)"
    console().print(table(title, ["how", "variants / s", "one takes", "its time / builder's"], rows, numeric=(1, 2, 3)))
    print(
        save(
            "build_throughput",
            {"seconds": medians, "time_over_builder": ratios, "all_cores_per_second": all_cores},
        )
    )


def _all_cores(target: Target, workload: Workload, libraries: list[Candidate]) -> float:
    with Builder(target, cache=None) as builder:
        builder.build_many(workload, libraries[:2])
        started = time.perf_counter()
        builder.build_many(workload, libraries)
        return len(libraries) / (time.perf_counter() - started)


if __name__ == "__main__":
    main()
