"""GPU schedules: how many build for CUDA, and what they win on Vulkan.

CUDA: random schedules of seven dispatches are compiled for two architectures and assembled by `ptxas`; no GPU is needed.
Vulkan: the best of 64 random schedules of a matmul and of a convolution. Quick measurements beside IREE's default choose
four, a long one chooses among these, and the winner alone is timed beside the default once more. Only that last figure,
on which nothing was chosen, is reported, with its standard error; a gain counts if it is more than two of them.

    python -m benchmarks.gpu
    python -m benchmarks.gpu --part cuda --samples 8
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS, measured_here, save
from tcl_iree.database import Database
from tcl_iree.frontend import extract, load_model
from tcl_iree.measure.builder import Builder, Candidate
from tcl_iree.measure.runner import Runner
from tcl_iree.measure.timing import TimingPolicy
from tcl_iree.report.progress import progress
from tcl_iree.report.tables import console, table
from tcl_iree.target import Target
from tcl_iree.workflows.trials import TrialSession
from tcl_iree.workflows.unmeasured import sample_schedules
from tcl_iree.workload.model import Workload

ARCHITECTURES = ("cuda:sm_80", "cuda:sm_90")
SEARCH = TimingPolicy(slice_seconds=(0.005,), round_seconds=0.04, min_rounds=4, max_rounds=8, patience=0.5)
# The software rasteriser takes tens of milliseconds a dispatch and all cores: many rounds, and time for them.
FINAL = TimingPolicy(slice_seconds=(0.02,), round_seconds=0.15, min_rounds=20, max_rounds=60, patience=30.0)
FINAL_SECONDS = 240.0
FINALISTS = 4

_OP = """func.func @main(%a: tensor<{a}>, %b: tensor<{b}>) -> tensor<{c}> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{c}>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<{c}>) -> tensor<{c}>
  %result = linalg.{op} ins(%a, %b : tensor<{a}>, tensor<{b}>) outs(%init : tensor<{c}>) -> tensor<{c}>
  return %result : tensor<{c}>
}}
"""
_FUSED = """func.func @main(%a: tensor<128x768xf32>, %b: tensor<768x3072xf32>, %bias: tensor<3072xf32>) -> tensor<128x3072xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x3072xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x3072xf32>) -> tensor<128x3072xf32>
  %product = linalg.matmul ins(%a, %b : tensor<128x768xf32>, tensor<768x3072xf32>) outs(%init : tensor<128x3072xf32>) -> tensor<128x3072xf32>
  %result = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%product, %bias : tensor<128x3072xf32>, tensor<3072xf32>) outs(%empty : tensor<128x3072xf32>) {
    ^bb0(%x: f32, %y: f32, %out: f32):
      %sum = arith.addf %x, %y : f32
      %relu = arith.maximumf %sum, %zero : f32
      linalg.yield %relu : f32
  } -> tensor<128x3072xf32>
  return %result : tensor<128x3072xf32>
}
"""
_REDUCTION = """func.func @main(%a: tensor<2048x768xf32>) -> tensor<2048xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2048xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2048xf32>) -> tensor<2048xf32>
  %result = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<2048x768xf32>) outs(%init : tensor<2048xf32>) {
    ^bb0(%x: f32, %sum: f32):
      %square = arith.mulf %x, %x : f32
      %next = arith.addf %square, %sum : f32
      linalg.yield %next : f32
  } -> tensor<2048xf32>
  return %result : tensor<2048xf32>
}
"""


def _op(op: str, a: str, b: str, c: str) -> str:
    return _OP.format(op=op, a=a, b=b, c=c)


CUDA_MODELS = {
    "matmul f32": _op("matmul", "512x512xf32", "512x512xf32", "512x512xf32"),
    "matmul f16": _op("matmul", "512x512xf16", "512x512xf16", "512x512xf32"),
    "matmul + bias + relu": _FUSED,
    "batch matmul f32": _op("batch_matmul", "12x128x64xf32", "12x64x128xf32", "12x128x128xf32"),
    "batch matmul f16": _op("batch_matmul", "12x128x64xf16", "12x64x128xf16", "12x128x128xf32"),
    "conv 3x3": _op("conv_2d_nchw_fchw", "1x64x58x58xf32", "64x64x3x3xf32", "1x64x56x56xf32"),
    "reduction": _REDUCTION,
}
VULKAN_MODELS = {
    "matmul 256x256x256": _op("matmul", "256x256xf32", "256x256xf32", "256x256xf32"),
    "conv 3x3 32 at 14x14": _op("conv_2d_nchw_fchw", "1x32x16x16xf32", "32x32x3x3xf32", "1x32x14x14xf32"),
}


def workload_of(text: str, target: Target) -> Workload:
    """The one dispatch of a model."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "model.mlir"
        path.write_text(text)
        (entry,) = extract(load_model(path), target).dispatches
        return entry.workload


def cuda(target: Target, samples: int) -> list[dict[str, Any]]:
    """Build random schedules of each model; counts and what `ptxas` says."""
    kept = []
    with Builder(target) as builder, progress(len(CUDA_MODELS), str(target)) as step:
        for name, text in CUDA_MODELS.items():
            workload = workload_of(text, target)
            schedules = sample_schedules(workload, builder, samples, seed=0)
            built = builder.build_many(workload, [Candidate(entry.script or "", entry.entry) for entry in schedules])
            said = [json.loads(result.static) for result in built if result.static]
            failures = Counter(result.failure.kind.value for result in built if result.failure)
            kept.append({
                "target": str(target), "workload": name, "families": dict(Counter(entry.family for entry in schedules)),
                "sampled": len(schedules), "assembled": len(said), "failures": dict(failures),
                "median_registers": statistics.median(entry["registers"] for entry in said) if said else None,
                "spilling": sum(entry["spill_stores"] > 0 for entry in said),
                "most_shared_bytes": max((entry["shared"] for entry in said), default=0),
            })  # fmt: skip
            step(f"{target}: {name}", advance=1)
    return kept


def vulkan(samples: int) -> list[dict[str, Any]]:
    """The best of random schedules beside IREE's default, measured."""
    target = Target.parse("vulkan")
    kept = []
    with (
        Builder(target) as builder,
        Runner(target, SEARCH) as search,
        Runner(target, FINAL, timeout=FINAL_SECONDS) as final,
        tempfile.TemporaryDirectory() as scratch,
        Database(Path(scratch) / "trials.db") as database,
        progress(samples * len(VULKAN_MODELS), "vulkan") as step,
    ):
        for name, text in VULKAN_MODELS.items():
            workload = workload_of(text, target)
            session = TrialSession(workload, builder, search, database)
            schedules = {entry.sha: entry for entry in sample_schedules(workload, builder, samples, seed=0)}
            trials = []
            for trial in session.measure(list(schedules.values())):
                trials.append(trial)
                step(f"vulkan: {name}", advance=1)
            right = [trial for trial in trials if trial.ratio and not trial.stopped_early]
            best = sorted(right, key=lambda trial: -(trial.ratio or 0))[:FINALISTS]
            chosen = [schedules[trial.schedule] for trial in best]
            built = builder.build_many(workload, [Candidate(entry.script or "", entry.entry) for entry in chosen])
            timed = final.compare(workload, [entry.artifact for entry in built if entry.artifact], session.reference)
            _, _, winner, artifact = max(
                (result.timing.ratio, schedule.sha, schedule, entry.artifact)
                for result, schedule, entry in zip(timed, chosen, built, strict=True)
                if result.timing and entry.artifact
            )
            timing = final.measure(workload, artifact, session.reference).timing
            if not timing:
                raise SystemExit(f"the winner of {name} could not be timed again")
            error = timing.ratio_error or 0.0
            kept.append({
                "workload": name, "sampled": len(trials), "outcomes": dict(Counter(trial.status for trial in trials)),
                "faster_than_default": sum((trial.ratio or 0) > 1 for trial in trials),
                "default_seconds": timing.reference_p50, "best_seconds": timing.p50, "ratio": timing.ratio,
                "ratio_error": timing.ratio_error, "beats_default": timing.ratio * (1 - 2 * error) > 1,
                "rounds": timing.rounds, "calm": timing.calm, "family": winner.family, "decisions": winner.decisions,
                "default_check": session.check.status,
            })  # fmt: skip
    return kept


def main() -> None:
    """Measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("cuda", "vulkan"), help="one part only; the other's figures are kept")
    parser.add_argument("--samples", type=int, default=64, help="schedules of each dispatch (default 64)")
    arguments = parser.parse_args()
    made: dict[str, Any] = {}
    if arguments.part != "vulkan":
        rows = [row for text in ARCHITECTURES for row in cuda(Target.parse(text), arguments.samples)]
        share = sum(row["assembled"] for row in rows) / sum(row["sampled"] for row in rows)
        made["cuda"] = {"assembled_share": share, "rows": rows}
        lines = [
            [row["target"], row["workload"], f"{row['assembled']}/{row['sampled']}", str(row["median_registers"]),
             str(row["spilling"]), str(row["most_shared_bytes"])]
            for row in rows
        ]  # fmt: skip
        names = ["target", "workload", "assembled", "median registers", "spilling", "most shared bytes"]
        console().print(table(f"CUDA: {100 * share:.1f} % assembled", names, lines, numeric=(2, 3, 4, 5)))
    if arguments.part != "cuda":
        rows = vulkan(arguments.samples)
        made["vulkan"] = rows
        lines = [
            [row["workload"], str(row["outcomes"].get("ok", 0)), str(row["sampled"]), f"{row['ratio']:.2f}x",
             f"{100 * (row['ratio_error'] or 0):.1f} %", row["family"], str(row["decisions"])]
            for row in rows
        ]  # fmt: skip
        names = ["workload", "right", "sampled", "best vs default", "± s.e.", "family", "decisions"]
        console().print(table("Vulkan, best of a random sample", names, lines, numeric=(1, 2, 3, 4)))
    path = RESULTS / "gpu.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    measured = before.get("measured", {}) | dict.fromkeys(made, measured_here())
    print(
        save(
            "gpu", {name: before[name] for name in ("cuda", "vulkan") if name in before} | made | {"measured": measured}
        )
    )


if __name__ == "__main__":
    main()
