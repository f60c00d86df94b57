"""GPU families: every sample obeys its limits, reads back, and builds; on Vulkan it also computes the right thing."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from conftest import DATA, QUICK, workload_of

from tcl_iree.errors import MeasureError, ScheduleError
from tcl_iree.measure.builder import Builder, Candidate
from tcl_iree.measure.ptxas import assemble, find_ptxas, read_kernel
from tcl_iree.measure.runner import Runner
from tcl_iree.target import Target
from tcl_iree.transform_dialect.families import FAMILIES, family_of
from tcl_iree.transform_dialect.families.gpu_threads import GpuThreads
from tcl_iree.transform_dialect.family import Family
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workload.model import Workload

MATMUL = (DATA / "matmul_bias_relu.mlir").read_text()
_OP = """func.func @main(%a: tensor<{a}>, %b: tensor<{b}>) -> tensor<{c}> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{c}>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<{c}>) -> tensor<{c}>
  %result = linalg.{op} ins(%a, %b : tensor<{a}>, tensor<{b}>) outs(%init : tensor<{c}>) -> tensor<{c}>
  return %result : tensor<{c}>
}}
"""
MODELS = {
    "fused": MATMUL,
    "f16": _OP.format(op="matmul", a="64x64xf16", b="64x128xf16", c="64x128xf32"),
    "batch": _OP.format(op="batch_matmul", a="3x16x32xf32", b="3x32x24xf32", c="3x16x24xf32"),
    "prime": _OP.format(op="matmul", a="37x32xf32", b="32x41xf32", c="37x41xf32"),
    "conv": _OP.format(op="conv_2d_nchw_fchw", a="1x8x16x16xf32", b="16x8x3x3xf32", c="1x16x14x14xf32"),
    "strided": _OP.format(
        op="conv_2d_nhwc_hwcf {strides = dense<2> : tensor<2xi64>}", a="1x17x17x8xf32", b="3x3x8x16xf32", c="1x8x8x16xf32"
    ),
    "rows": _OP.format(op="matvec", a="48x192xf32", b="192xf32", c="48xf32"),
}  # fmt: skip
GPU = ("gpu_threads", "cuda_simt", "cuda_mma", "cuda_reduction", "vulkan_config")


def samples(family: Family, workload: Workload, target: Target, count: int) -> list[Schedule]:
    rng = Random(7)
    found = [family.sample(workload, target, rng) for _ in range(count)]
    return list(dict.fromkeys(schedule for schedule in found if schedule))


def serving(workload: Workload, target: Target) -> list[Family]:
    return [family for family in FAMILIES if family.name in GPU and not family.why_not(workload, target)]


def test_gpu_targets_have_gpu_families_alone(tmp_path: Path) -> None:
    workload = workload_of(MATMUL, tmp_path, Target.parse("cuda:sm_80"))
    f16 = workload_of(MODELS["f16"], tmp_path, Target.parse("cuda:sm_80"))
    names = {
        target: {family.name for family in Space(load, Target.parse(target)).families}
        for target, load in (("cuda:sm_80", f16), ("cuda:sm_75", f16), ("vulkan", workload))
    }
    assert names["cuda:sm_80"] == {"gpu_threads", "cuda_simt", "cuda_mma"}
    assert names["cuda:sm_75"] == {"gpu_threads", "cuda_simt"}
    assert names["vulkan"] == {"gpu_threads", "vulkan_config"}
    rows = workload_of(MODELS["rows"], tmp_path, Target.parse("cuda:sm_80"))
    assert not family_of("cuda_reduction").why_not(rows, Target.parse("cuda:sm_80"))
    assert not names["vulkan"] & {family.name for family in Space(workload, Target.parse("cpu")).families}


@pytest.mark.parametrize("spec", ["cuda:sm_80", "vulkan"])
@pytest.mark.parametrize("model", MODELS)
def test_samples_read_back_and_keep_the_limits(tmp_path: Path, model: str, spec: str) -> None:
    target = Target.parse(spec)
    workload = workload_of(MODELS[model], tmp_path, target)
    rng = Random(3)
    for family in serving(workload, target):
        for schedule in samples(family, workload, target, 4):
            assert family.parse(family.script(schedule, workload, target), workload, target) == schedule
            mutant = family.mutate(schedule, workload, target, rng)
            assert family.why_illegal(mutant, workload, target) is None
            if "x_threads" in dict(schedule.decisions):
                axes = [axis for axis in "xyz" if f"{axis}_threads" in dict(schedule.decisions)]
                threads = 1
                for axis in axes:
                    threads *= schedule[f"{axis}_threads"]
                assert threads <= target.hardware.max_threads


def test_loops_that_no_usual_number_divides_fill_a_warp(tmp_path: Path) -> None:
    target = Target.parse("cuda:sm_80")
    workload = workload_of(_OP.format(op="matmul", a="1x64xf32", b="64x1000xf32", c="1x1000xf32"), tmp_path, target)
    for name in ("gpu_threads", "cuda_simt"):
        assert family_of(name).sample(workload, target, Random(0)), name


def test_what_breaks_a_limit_is_refused(tmp_path: Path) -> None:
    target = Target.parse("cuda:sm_80")
    workload = workload_of(MATMUL, tmp_path, target)
    family = family_of("cuda_simt")
    good = {"x_threads": 16, "x_tile": 4, "y_threads": 4, "y_tile": 4, "step2": 8, "promote": True, "stages": 2, "pad_banks": False}  # fmt: skip
    assert family.why_illegal(Schedule.of("cuda_simt", **good), workload, target) is None
    for change, reason in (
        ({"x_threads": 128, "y_threads": 16}, "threads|divide"),
        ({"x_threads": 3}, "divide"),
        ({"x_threads": 2, "y_threads": 2}, "warp"),
        ({"x_tile": 16, "x_threads": 8, "y_tile": 16}, "registers"),
        ({"promote": False}, "shared memory"),
    ):
        bad = Schedule.of("cuda_simt", **{**good, **change})
        with pytest.raises(ScheduleError, match=reason):
            family.script(bad, workload, target)


@pytest.mark.parametrize("model", MODELS)
def test_cuda_samples_build_and_ptxas_takes_them(tmp_path: Path, model: str) -> None:
    if not shutil.which("ptxas"):
        pytest.skip("ptxas is not installed")
    target = Target.parse("cuda:sm_80")
    workload = workload_of(MODELS[model], tmp_path, target)
    with Builder(target, cache=None) as builder:
        for family in serving(workload, target):
            chosen = samples(family, workload, target, 3)
            scripts = [Candidate(family.script(schedule, workload, target)) for schedule in chosen]
            for schedule, result in zip(chosen, builder.build_many(workload, scripts), strict=True):
                assert result.failure is None, f"{schedule}: {result.failure}"
                figures = json.loads(result.static or "{}")
                assert 0 < figures["registers"] <= 255
                decisions = dict(schedule.decisions)
                shares = family.name == "cuda_mma" or decisions.get("promote") or decisions.get("warps", 1) > 1
                assert (figures["shared"] > 0) == shares, schedule


def test_code_for_sm_90_is_assembled_and_refused_code_says_why(tmp_path: Path) -> None:
    ptxas = find_ptxas()
    if not ptxas:
        pytest.skip("ptxas is not installed")
    target = Target.parse("cuda:sm_90")
    workload = workload_of(MODELS["f16"], tmp_path, target)
    family = family_of("cuda_mma")
    (schedule,) = samples(family, workload, target, 1)
    with Builder(target, cache=None) as builder:
        result = builder.build(workload, Candidate(family.script(schedule, workload, target)))
    assert result.artifact
    text, shared = read_kernel(result.artifact)
    assert "mma.sync.aligned.m16n8k16" in text
    assert shared > 0
    assert assemble(result.artifact, target, ptxas).registers == json.loads(result.static or "{}")["registers"]
    spoilt = result.artifact.vmfb.replace(b"mma.sync.aligned.m16n8k16", b"mma.sync.aligned.m99n8k16")
    report = assemble(replace(result.artifact, vmfb=spoilt), target, ptxas)
    assert "m99n8k16" in report.error
    with pytest.raises(MeasureError, match="no PTX"):
        read_kernel(replace(result.artifact, vmfb=b"nothing"))


@pytest.mark.parametrize("model", ["fused", "batch", "conv", "strided"])
def test_vulkan_samples_are_right(tmp_path: Path, model: str) -> None:
    target = Target.parse("vulkan")
    if reason := target.why_not_run():
        pytest.skip(reason)
    workload = workload_of(MODELS[model], tmp_path, target)
    with Builder(target, cache=None) as builder, Runner(target, QUICK) as runner:
        reference = builder.build_default(workload).artifact
        assert reference
        for family in serving(workload, target):
            for schedule in samples(family, workload, target, 2):
                result = builder.build(workload, Candidate(family.script(schedule, workload, target)))
                assert result.artifact, f"{schedule}: {result.failure}"
                run = runner.measure(workload, result.artifact, reference)
                assert run.failure is None, f"{schedule}: {run.failure}"


def test_vectors_between_two_of_the_buffer_are_refused_and_would_be_wrong(tmp_path: Path) -> None:
    """Rows of 16 read two at a time from an odd position: IREE rounds the position down."""

    class Lawless(GpuThreads):
        def why_illegal(self, schedule: Schedule, workload: Workload, target: Target) -> str | None:
            return None

    target = Target.parse("vulkan")
    if reason := target.why_not_run():
        pytest.skip(reason)
    workload = workload_of(MODELS["conv"], tmp_path, target)
    outcomes = {}
    with Builder(target, cache=None) as builder, Runner(target, QUICK) as runner:
        reference = builder.build_default(workload).artifact
        assert reference
        for tile in (2, 7):
            schedule = Schedule.of("gpu_threads", x_threads=14 // tile, x_tile=tile, y_threads=7, y_tile=1, z_threads=2, z_tile=4, step3=1, step4=1, step5=1)  # fmt: skip
            built = builder.build(workload, Candidate(Lawless().script(schedule, workload, target)))
            assert built.artifact
            run = runner.measure(workload, built.artifact, reference)
            refused = GpuThreads().why_illegal(schedule, workload, target)
            outcomes[tile] = (run.failure.kind.value if run.failure else "ok", bool(refused))
    assert outcomes == {2: ("wrong_result", True), 7: ("ok", False)}


def test_accumulators_outside_registers_do_not_compile(tmp_path: Path) -> None:
    """A stride keeps the tile from becoming vectors; its accumulators would then be shared by all threads."""

    class Lawless(GpuThreads):
        def why_illegal(self, schedule: Schedule, workload: Workload, target: Target) -> str | None:
            return None

    target = Target.parse("cuda:sm_80")
    workload = workload_of(STRIDED_FUSED, tmp_path, target)
    schedule = Schedule.of("gpu_threads", x_threads=4, x_tile=4, y_threads=8, y_tile=1, z_threads=1, z_tile=4, step3=1, step4=1, step5=1)  # fmt: skip
    with Builder(target, cache=None, workers=1) as builder:
        result = builder.build(workload, Candidate(Lawless().script(schedule, workload, target)))
    assert result.failure
    assert "operation is not empty" in result.failure.detail


STRIDED_FUSED = """func.func @main(%a: tensor<1x8x33x33xf32>, %b: tensor<16x8x3x3xf32>, %bias: tensor<16xf32>) -> tensor<1x16x16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x16x16x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x16x16x16xf32>) -> tensor<1x16x16x16xf32>
  %conv = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>} ins(%a, %b : tensor<1x8x33x33xf32>, tensor<16x8x3x3xf32>) outs(%init : tensor<1x16x16x16xf32>) -> tensor<1x16x16x16xf32>
  %result = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%conv, %bias : tensor<1x16x16x16xf32>, tensor<16xf32>) outs(%empty : tensor<1x16x16x16xf32>) {
    ^bb0(%x: f32, %y: f32, %out: f32):
      %sum = arith.addf %x, %y : f32
      linalg.yield %sum : f32
  } -> tensor<1x16x16x16xf32>
  return %result : tensor<1x16x16x16xf32>
}
"""
