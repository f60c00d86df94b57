"""Running real artifacts: correct, wrong, slow, killed."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import DATA, QUICK, workload_of
from processes import children, wait_for

from tcl_iree.errors import TargetError
from tcl_iree.hardware import host_cpu
from tcl_iree.measure.builder import Builder, Candidate
from tcl_iree.measure.inputs import from_float, make_buffers, mismatch, to_float
from tcl_iree.measure.results import Artifact, FailureKind, RunResult
from tcl_iree.measure.runner import Runner
from tcl_iree.measure.timing import TimingPolicy, time_kernel
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

MATMUL = (DATA / "matmul_bias_relu.mlir").read_text()


@pytest.fixture(scope="module")
def default(matmul: Workload, builder: Builder) -> Artifact:
    artifact = builder.build_default(matmul).artifact
    assert artifact
    return artifact


@pytest.fixture(scope="module")
def tiled(matmul: Workload, builder: Builder) -> Artifact:
    artifact = builder.build(matmul, Candidate((DATA / "tile_matmul.mlir").read_text())).artifact
    assert artifact
    return artifact


def test_nothing_is_timed_while_another_process_measures(
    matmul: Workload, default: Artifact, tiled: Artifact, runner: Runner
) -> None:
    code = "from tcl_iree.measure.exclusive import exclusive\nwith exclusive(): print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin
        assert other.stdout
        other.stdout.readline()  # it measures now
        found: list[RunResult] = []
        waiting = threading.Thread(target=lambda: found.append(runner.measure(matmul, tiled, default)))
        waiting.start()
        waiting.join(2.0)
        assert not found
        other.stdin.write(b"\n")
        other.stdin.close()
    waiting.join(30.0)
    assert found[0].timing


def test_a_correct_candidate_is_timed(matmul: Workload, default: Artifact, tiled: Artifact, runner: Runner) -> None:
    result = runner.measure(matmul, tiled, default)
    assert result.failure is None
    timing = result.timing
    assert timing
    assert 0 < timing.p10 <= timing.p50 <= timing.p90
    assert timing.ratio > 0
    assert result.error <= 1.0


@pytest.mark.parametrize(
    "change",
    [
        ("arith.maximumf %sum, %zero", "arith.mulf %sum, %sum"),
        ("arith.addf %x, %y", "arith.subf %x, %y"),
        (
            "ins(%a, %b : tensor<64x96xf32>, tensor<96x128xf32>)",
            "ins(%a, %b : tensor<64x96xf32>, tensor<96x128xf32>)",
        ),
    ],
    ids=["other-consumer", "other-sign", "same"],
)
def test_a_kernel_with_a_wrong_result_is_caught(
    change: tuple[str, str], matmul: Workload, default: Artifact, builder: Builder, runner: Runner, tmp_path: Path,
    target: Target,
) -> None:  # fmt: skip
    other = builder.build_default(workload_of(MATMUL.replace(*change), tmp_path, target)).artifact
    assert other
    result = runner.measure(matmul, other, default)
    if change[0] == change[1]:
        assert result.failure is None
    else:
        assert result.failure
        assert result.failure.kind == FailureKind.WRONG_RESULT


def test_a_kernel_that_writes_too_little_is_caught(
    matmul: Workload, default: Artifact, builder: Builder, runner: Runner, tmp_path: Path, target: Target
) -> None:
    half = MATMUL.replace("tensor<64x", "tensor<32x")
    artifact = builder.build_default(workload_of(half, tmp_path, target)).artifact
    assert artifact
    result = runner.measure(matmul, artifact, default)  # buffers are larger than it writes
    assert result.failure
    assert result.failure.kind == FailureKind.WRONG_RESULT


def test_an_artifact_that_does_not_load_is_a_result(matmul: Workload, default: Artifact, runner: Runner) -> None:
    result = runner.measure(matmul, Artifact(b"junk" * 100, "junk", ""), default)
    assert result.failure
    assert result.failure.kind in (FailureKind.RUN_ERROR, FailureKind.CRASH)
    assert runner.measure(matmul, default, default).timing, "the runner goes on after a failure"


def test_a_run_that_takes_too_long_is_stopped(matmul: Workload, default: Artifact, target: Target) -> None:
    patient = TimingPolicy(min_rounds=10_000, max_rounds=10_000, patience=1000)
    with Runner(target, patient, timeout=1.0) as runner:
        result = runner.measure(matmul, default, default)
    assert result.failure
    assert result.failure.kind == FailureKind.RUN_TIMEOUT


@pytest.mark.parametrize("victim", ["child", "worker"])
def test_sigkill_while_running_costs_one_trial(
    victim: str, matmul: Workload, default: Artifact, target: Target
) -> None:
    with Runner(target, TimingPolicy(min_rounds=1000, max_rounds=1000, patience=100)) as runner:
        results: list[RunResult] = []
        thread = threading.Thread(target=lambda: results.append(runner.measure(matmul, default, default)))
        thread.start()
        assert wait_for(lambda: runner.pid and children(runner.pid))
        assert runner.pid
        child = children(runner.pid)[0]
        os.kill(child if victim == "child" else runner.pid, signal.SIGKILL)
        thread.join()
        assert results[0].failure
        assert results[0].failure.kind == FailureKind.CRASH
        assert wait_for(lambda: not Path(f"/proc/{child}").exists()), "the child outlived its worker"
    with Runner(target, QUICK) as runner:
        assert runner.measure(matmul, default, default).timing


def test_candidates_far_behind_the_best_are_not_timed_in_full(
    matmul: Workload, default: Artifact, runner: Runner
) -> None:
    timing = runner.measure(matmul, default, default, best_ratio=50.0).timing
    assert timing
    assert timing.stopped_early
    assert timing.rounds <= 2


def test_zeros_and_flipped_signs_fail_for_every_type(tmp_path: Path, target: Target) -> None:
    for dtype in ("f32", "f16", "bf16"):
        large = MATMUL.replace("96", "768").replace("f32", dtype)
        workload = workload_of(large, tmp_path, target)
        wanted = np.random.default_rng(0).standard_normal((64, 128)) * 30
        assert mismatch(workload, dtype, wanted, np.zeros_like(wanted)) > 1.0
        assert mismatch(workload, dtype, wanted, -wanted) > 1.0
        assert mismatch(workload, dtype, wanted, np.roll(wanted, 1, axis=1)) > 1.0
        assert mismatch(workload, dtype, wanted, wanted * (1 + 1e-6)) < 1.0


def test_roots_of_negative_numbers_do_not_hide_errors(
    builder: Builder, runner: Runner, tmp_path: Path, target: Target
) -> None:
    text = "func.func @main(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {{ %b = math.{op} %a : tensor<64x64xf32> return %b : tensor<64x64xf32> }}"
    root, logarithm = (workload_of(text.format(op=op), tmp_path, target) for op in ("sqrt", "log"))
    artifacts = [builder.build_default(workload).artifact for workload in (root, logarithm)]
    assert artifacts[0]
    assert artifacts[1]
    assert runner.measure(root, artifacts[0], artifacts[0]).timing
    wrong = runner.measure(root, artifacts[1], artifacts[0]).failure
    assert wrong
    assert wrong.kind == FailureKind.WRONG_RESULT


@pytest.mark.skipif(host_cpu().cores < 2, reason="needs two cores")
def test_two_threads_run(matmul: Workload) -> None:
    target = Target.parse("cpu,threads=2")
    with Builder(target, cache=None, workers=1) as builder, Runner(target, QUICK) as runner:
        artifact = builder.build_default(matmul).artifact
        assert artifact
        assert runner.measure(matmul, artifact, artifact).timing


def test_vulkan_runs_through_the_same_code(matmul: Workload) -> None:
    target = Target.parse("vulkan")
    if reason := target.why_not_run():
        pytest.skip(reason)
    with Builder(target, cache=None, workers=1) as builder, Runner(target, QUICK) as runner:
        artifact = builder.build_default(matmul).artifact
        assert artifact
        result = runner.measure(matmul, artifact, artifact)
        assert result.timing, result.failure


def test_runner_refuses_a_target_it_cannot_use() -> None:
    if Target.parse("cuda:sm_80").why_not_run() is None:
        pytest.skip("this machine has a CUDA device")
    with pytest.raises(TargetError, match="cannot run here"):
        Runner(Target.parse("cuda:sm_80"))


def test_inputs_are_asymmetric_and_outputs_start_as_nan(matmul: Workload) -> None:
    first, second = make_buffers(matmul, 1), make_buffers(matmul, 2)
    assert np.isnan(first[3]).all()
    assert not np.array_equal(first[0], second[0])
    assert abs(float(first[0].mean())) > 0.01
    assert not np.allclose(first[1][:96, :96], first[1][:96, :96].T)


def test_mismatch_is_measured_in_tolerances(matmul: Workload) -> None:
    wanted = np.linspace(-3, 3, 1000)
    assert mismatch(matmul, "f32", wanted, wanted) == 0.0
    assert mismatch(matmul, "f32", wanted, wanted * (1 + 1e-6)) < 1.0
    assert mismatch(matmul, "f32", wanted, wanted * 1.01) > 1.0
    holed = wanted.copy()
    holed[3] = np.nan
    assert mismatch(matmul, "f32", wanted, holed) == float("inf")
    assert mismatch(matmul, "f32", holed, holed) == 0.0
    assert mismatch(matmul, "i32", np.arange(4), np.arange(4)) == 0.0
    assert mismatch(matmul, "i32", np.arange(4), np.arange(1, 5)) == float("inf")


def test_bf16_is_rounded_to_nearest_even() -> None:
    values = np.array([1.0, 1.00390625, 1.01171875, -2.5, np.nan], np.float32)
    back = to_float(from_float(values, "bf16"), "bf16")
    assert back[:4].tolist() == [1.0, 1.0, 1.015625, -2.5]
    assert np.isnan(back[4])


class FakeMachine:
    """Kernels whose times follow a script: calm or disturbed, by call count."""

    def __init__(self, seconds: float, slow: dict[range, float]) -> None:
        self.calls, self._seconds, self._slow = 0, seconds, slow

    def __call__(self, times: int) -> float:
        self.calls += 1
        factor = next((factor for window, factor in self._slow.items() if self.calls in window), 1.0)
        return self._seconds * factor * times


def test_disturbed_rounds_are_taken_again() -> None:
    policy = TimingPolicy(slice_seconds=(0.001,), round_seconds=0.0, min_rounds=8, max_rounds=8, patience=60)
    disturbed = {range(6, 40): 2.0}  # a neighbour slows both kernels down
    reference, candidate = FakeMachine(0.002, disturbed), FakeMachine(0.001, {range(6, 40): 3.0})
    timing, floor = time_kernel(reference, candidate, policy)
    assert timing.calm
    assert timing.retried > 0
    assert timing.ratio == pytest.approx(2.0)
    assert timing.p50 == pytest.approx(0.001)
    assert floor == pytest.approx(0.002)


def test_a_floor_from_before_shows_that_the_whole_window_is_disturbed() -> None:
    policy = TimingPolicy(slice_seconds=(0.001,), round_seconds=0.0, min_rounds=4, max_rounds=4, patience=0.05)
    reference, candidate = FakeMachine(0.004, {}), FakeMachine(0.002, {})
    timing, _ = time_kernel(reference, candidate, policy, floor=0.002)
    assert not timing.calm
    assert timing.ratio == pytest.approx(2.0)


@pytest.mark.parametrize(("slow", "calls"), [({}, 1), ({range(1, 2): 3.0}, 2)])
def test_a_slow_reference_is_hardly_run(slow: dict[range, float], calls: int) -> None:
    policy = TimingPolicy(slice_seconds=(0.001,), round_seconds=0.0, min_rounds=8, max_rounds=8)
    reference, candidate = FakeMachine(0.5, slow), FakeMachine(0.002, {})
    timing, floor = time_kernel(reference, candidate, policy, floor=0.5)
    assert reference.calls == calls
    assert candidate.calls > 8
    assert timing.calm
    assert timing.ratio == pytest.approx(250.0)
    assert timing.reference_p50 == floor == pytest.approx(0.5)


def test_a_slow_default_is_measured_by_few_runs() -> None:
    """Its own measurement, the first of a workload, has no earlier one to know that by."""
    policy = TimingPolicy(round_seconds=0.0, patience=0.0)
    default = FakeMachine(2.5, {})
    timing, _ = time_kernel(default, default, policy)
    assert default.calls <= 4
    assert timing.ratio == pytest.approx(1.0)
