"""Families for contractions, convolutions and windows: legal samples compile, run and are right; scripts read back."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from random import Random

import pytest
from conftest import QUICK, workload_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shapes import (
    contraction,
    convolution,
    convolution_grouped,
    convolution_nhwc,
    convolution_panels,
    depthwise,
    pooling,
)

from tcl_iree.errors import ScheduleError
from tcl_iree.measure.builder import Builder, Candidate
from tcl_iree.measure.runner import Runner
from tcl_iree.target import Target
from tcl_iree.transform_dialect.cpu_limits import STACK_FLAG
from tcl_iree.transform_dialect.families import FAMILIES, family_of
from tcl_iree.transform_dialect.families.packed import Packed
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import read_schedule
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workload.model import Workload

CASES = {
    "matmul_prime": contraction({"m": 37, "n": 53, "k": 41}, consumer="bias"),
    "matmul_odd": contraction({"m": 60, "n": 100, "k": 50}),
    "matmul_lhs_transposed": contraction({"m": 48, "n": 64, "k": 32}, lhs="km", consumer="relu"),
    "matmul_rhs_transposed": contraction({"m": 30, "n": 96, "k": 64}, rhs="nk"),
    "matmul_rhs_transposed_tall": contraction({"m": 52, "n": 32, "k": 24}, rhs="nk", consumer="bias"),
    "batch_rhs_transposed": contraction({"b": 4, "m": 24, "n": 32, "k": 16}, "bmk", "bnk", "bmn", consumer="relu"),
    "pointwise_convolution": contraction({"m": 48, "n": 49, "k": 32}, lhs="kn", rhs="mk", consumer="relu"),
    "matrix_vector": contraction({"m": 1, "n": 128, "k": 64}),
    "convolution": convolution(8, 32, 14, 3, consumer="relu"),
    "convolution_batched": convolution(8, 32, 14, 3, consumer="relu", batch=4),
    "convolution_strided": convolution(8, 16, 7, 3, stride=2),
    "convolution_dilated": convolution(4, 16, 10, 3, dilation=2, consumer="relu"),
    "pointwise_strided": convolution(16, 32, 7, 1, stride=2),
    "convolution_channels_last": convolution_nhwc(8, 32, 14, 3, consumer="bias"),
    "convolution_channels_last_strided": convolution_nhwc(6, 16, 7, 3, stride=2),
    "pointwise_channels_last_strided": convolution_nhwc(16, 32, 7, 1, stride=2, consumer="bias"),
    "convolution_channels_last_odd": convolution_nhwc(5, 52, 6, 3, consumer="bias"),
    "convolution_panels": convolution_panels(8, 4, 32, 7, 3, consumer="bias"),
    "convolution_panels_strided": convolution_panels(16, 3, 16, 7, 1, stride=2),
    "convolution_grouped": convolution_grouped(2, 8, 16, 8, 3, consumer="relu"),
    "matmul_f16": contraction({"m": 32, "n": 64, "k": 48}, dtype="f16"),
    "matmul_i8": contraction({"m": 32, "n": 64, "k": 48}, dtype="i8", accumulator="i32"),
    "pooling": pooling(8, 14, 3),
    "pooling_strided": pooling(32, 14, 3, stride=2),
    "pooling_strided_odd": pooling(12, 13, 3, stride=2, kind="sum", consumer="relu", batch=2),
    "depthwise": depthwise(12, 14, 3, consumer="relu"),
    "depthwise_strided": depthwise(8, 9, 3, stride=2),
}


@pytest.fixture(scope="module")
def tools(target: Target):
    with Builder(target, flags=(STACK_FLAG,), cache=None) as builder, Runner(target, QUICK) as runner:
        yield builder, runner


def trial_outcomes(
    workload: Workload, target: Target, tools: tuple[Builder, Runner], samples: int, seed: int
) -> list[tuple[Schedule, str]]:
    """What became of random legal schedules of every family that serves the workload: `ok`, or the failure."""
    builder, runner = tools
    rng = Random(seed)
    schedules: list[Schedule] = []
    for family in FAMILIES:
        if not family.why_not(workload, target):
            found = (family.sample(workload, target, rng) for _ in range(samples))
            schedules += dict.fromkeys(schedule for schedule in found if schedule)
    texts = [family_of(schedule.family).script(schedule, workload, target) for schedule in schedules]
    for schedule, text in zip(schedules, texts, strict=True):
        assert family_of(schedule.family).parse(text, workload, target) == schedule
    reference = builder.build_default(workload).artifact
    assert reference
    outcomes = []
    for schedule, built in zip(schedules, builder.build_many(workload, [Candidate(t) for t in texts]), strict=True):
        failure = built.failure
        if built.artifact:
            failure = runner.measure(workload, built.artifact, reference).failure
        outcomes.append((schedule, f"{failure.kind}: {failure.detail[:300]}" if failure else "ok"))
    return outcomes


@pytest.mark.parametrize("name", CASES)
def test_legal_samples_compile_and_are_right(name: str, tmp_path: Path, target: Target, tools) -> None:
    workload = workload_of(CASES[name], tmp_path, target)
    outcomes = trial_outcomes(workload, target, tools, samples=2, seed=7)
    assert outcomes
    assert [entry for entry in outcomes if entry[1] != "ok"] == []


@pytest.mark.parametrize(("m", "n", "along"), [(196, 96, "n"), (784, 32, "n"), (128, 50, "m")])
def test_lanes_are_whole_vectors_along_the_result_if_they_can_be(
    m: int, n: int, along: str, tmp_path: Path, target: Target
) -> None:
    """196 is a multiple of 4 alone; lanes there would be a quarter of a vector, however many of them there are."""
    workload = workload_of(contraction({"m": m, "n": n, "k": 64}, rhs="nk"), tmp_path, target)
    _, dims = Packed().found(workload)
    assert workload.root.loops[dims.lanes].size == {"m": m, "n": n}[along]


@pytest.mark.parametrize("name", ["matmul_prime", "convolution", "depthwise", "batch_rhs_transposed"])
def test_spaces_sample_mutate_and_cross_legally(name: str, tmp_path: Path, target: Target) -> None:
    workload = workload_of(CASES[name], tmp_path, target)
    space, rng = Space(workload, target), Random(3)
    samples = [schedule for schedule, _ in zip(space.samples(rng), range(20), strict=False)]
    assert len(set(samples)) == len(samples) > 5
    for one, other in pairwise(samples):
        for made in (space.mutate(one, rng), space.cross(one, other, rng)):
            assert made.family == one.family
            assert not family_of(made.family).why_illegal(made, workload, target)


# Widths that are no multiple of much, rows that are few, and more threads than there is work for.
SMALL = [(1, 100, 512), (2, 40, 64), (4, 24, 64), (37, 53, 41), (8, 48, 32), (32, 64, 64), (64, 257, 96)]


@pytest.mark.parametrize("spec", ["cpu:avx512", "cpu:avx2"])
@pytest.mark.parametrize(("m", "n", "k"), SMALL)
def test_whatever_is_served_has_schedules(m: int, n: int, k: int, spec: str, tmp_path: Path) -> None:
    one = Target.parse(f"{spec},threads=1")
    workload = workload_of(contraction({"m": m, "n": n, "k": k}), tmp_path, one)
    for threads in (1, 2, 8, 64):
        target = replace(one, threads=threads)
        for name in ("contraction", "packed"):
            if not family_of(name).why_not(workload, target):
                assert family_of(name).sample(workload, target, Random(0)), (name, threads)


def test_a_product_that_gives_one_number_has_no_lanes(tmp_path: Path, target: Target) -> None:
    dot = """func.func @main(%a: tensor<4096xf32>, %b: tensor<4096xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %r = linalg.dot ins(%a, %b : tensor<4096xf32>, tensor<4096xf32>) outs(%init : tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}"""
    names = {family.name for family in Space(workload_of(dot, tmp_path, target), target).families}
    assert not names & {"contraction", "convolution", "filter_panels"}


def test_families_without_legal_schedules_do_not_end_a_sampling(
    tmp_path: Path, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = workload_of(CASES["matmul_odd"], tmp_path, target)
    monkeypatch.setattr(Packed, "why_illegal", lambda *arguments: "as if")
    space = Space(workload, target)
    assert "packed" in {family.name for family in space.families}
    assert len(list(islice(space.samples(Random(1)), 200))) == 200


def test_the_same_seed_gives_the_same_samples(tmp_path: Path, target: Target) -> None:
    space = Space(workload_of(CASES["matmul_odd"], tmp_path, target), target)
    first, second = (
        [schedule for schedule, _ in zip(space.samples(Random(5)), range(10), strict=False)] for _ in range(2)
    )
    assert first == second


def test_enumeration_gives_only_legal_schedules_once(tmp_path: Path, target: Target) -> None:
    workload = workload_of(CASES["depthwise"], tmp_path, target)
    family = family_of("window")
    found = list(family.enumerate(workload, target))
    assert 0 < len(found) == len(set(found)) <= family.size(workload, target)


def test_an_illegal_schedule_says_which_rule_it_breaks(tmp_path: Path, target: Target) -> None:
    workload = workload_of(CASES["matmul_odd"], tmp_path, target)
    family = family_of("contraction")
    schedule = family.sample(workload, target, Random(0))
    assert schedule
    broken = Schedule(family.name, (*((n, v) for n, v in schedule.decisions if n != "rows"), ("rows", 10_000)))
    with pytest.raises(ScheduleError, match="register tile"):
        family.script(broken, workload, target)


def test_one_workgroup_may_not_hold_a_large_result(tmp_path: Path) -> None:
    """It would not be fused with what follows, and its buffer is more than the compiler lets a dispatch have."""
    alone = Target.parse("cpu,threads=1")
    workload = workload_of(convolution(8, 64, 28, 3, consumer="relu"), tmp_path, alone)
    family = family_of("convolution")
    most = {decision.name: max(decision.choices) for decision in family.decisions(workload, alone)}
    reasons = []
    for schedule in filter(None, (family.sample(workload, alone, Random(seed)) for seed in range(20))):
        whole = tuple((name, most[name] if "workgroup" in name else value) for name, value in schedule.decisions)
        reasons.append(family.why_illegal(Schedule(family.name, whole), workload, alone))
    assert all(reasons)
    assert any("of buffers" in reason for reason in reasons)


def test_an_edited_script_is_not_taken_for_its_schedule(tmp_path: Path, target: Target) -> None:
    workload = workload_of(CASES["matmul_odd"], tmp_path, target)
    family = family_of("contraction")
    schedule = family.sample(workload, target, Random(0))
    assert schedule
    text = family.script(schedule, workload, target)
    assert read_schedule(text) == schedule
    with pytest.raises(ScheduleError, match="edited"):
        family.parse(text.replace('"cse"', '"canonicalize"'), workload, target)


SIZES = st.sampled_from([1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 32, 48, 61, 64, 96, 127, 128, 250])


@pytest.mark.long
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_contractions(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, target: Target, tools
) -> None:
    batched = data.draw(st.booleans())
    sizes = {letter: data.draw(SIZES, letter) for letter in "mnk"} | (
        {"b": data.draw(st.sampled_from([2, 3, 8]))} if batched else {}
    )
    orders = [data.draw(st.permutations(list(word)), word) for word in ("mk", "kn", "mn")]
    lhs, rhs, out = ("".join((["b"] if batched else []) + order) for order in orders)
    text = contraction(sizes, lhs, rhs, out, consumer=data.draw(st.sampled_from(["", "relu", "bias"])))
    _check_text(text, tmp_path_factory, target, tools, data.draw(st.integers(0, 10**6), "seed"))


@pytest.mark.long
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_convolutions(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, target: Target, tools
) -> None:
    size, kernel = data.draw(st.sampled_from([5, 7, 9, 14, 16, 28])), data.draw(st.sampled_from([1, 3, 5]))
    stride, consumer = data.draw(st.sampled_from([1, 2])), data.draw(st.sampled_from(["", "relu"]))
    if data.draw(st.booleans()):
        text = depthwise(data.draw(st.sampled_from([3, 8, 17, 32])), size, max(kernel, 3), stride, consumer)
    else:
        channels, filters = (data.draw(st.sampled_from([3, 8, 16, 20, 31, 64])) for _ in range(2))
        dilation = data.draw(st.sampled_from([1, 1, 2]))
        text = convolution(channels, filters, size, kernel, stride, dilation, consumer)
    _check_text(text, tmp_path_factory, target, tools, data.draw(st.integers(0, 10**6), "seed"))


@pytest.mark.long
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_convolutions_with_channels_last(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, target: Target, tools
) -> None:
    size, kernel = data.draw(st.sampled_from([2, 5, 7, 9, 14, 28])), data.draw(st.sampled_from([1, 3, 5]))
    stride, consumer = data.draw(st.sampled_from([1, 2])), data.draw(st.sampled_from(["", "relu", "bias"]))
    channels, panels = data.draw(st.sampled_from([3, 8, 20, 31, 64])), data.draw(st.sampled_from([1, 2, 3, 8]))
    lanes = data.draw(st.sampled_from([8, 16, 20, 31, 32, 64]))
    if data.draw(st.booleans()):
        text = convolution_panels(channels, panels, lanes, size, kernel, stride, consumer)
    else:
        text = convolution_nhwc(channels, panels * lanes, size, kernel, stride, consumer)
    _check_text(text, tmp_path_factory, target, tools, data.draw(st.integers(0, 10**6), "seed"))


@pytest.mark.long
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_pools(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, target: Target, tools) -> None:
    text = pooling(
        data.draw(st.sampled_from([1, 3, 4, 8, 20, 31, 64])),
        data.draw(st.sampled_from([2, 5, 7, 13, 14, 28, 55])),
        data.draw(st.sampled_from([2, 3, 5])),
        data.draw(st.sampled_from([1, 2, 2, 3])),
        data.draw(st.sampled_from(["max", "sum"])),
        data.draw(st.sampled_from(["", "relu"])),
        data.draw(st.sampled_from([1, 1, 3])),
    )
    _check_text(text, tmp_path_factory, target, tools, data.draw(st.integers(0, 10**6), "seed"))


def _check_text(text: str, factory: pytest.TempPathFactory, target: Target, tools, seed: int) -> None:
    workload = workload_of(text, factory.mktemp("shape"), target)
    outcomes = trial_outcomes(workload, target, tools, samples=2, seed=seed)
    assert outcomes or not any(True for _ in Space(workload, target).samples(Random(seed)))
    assert [entry for entry in outcomes if entry[1] != "ok"] == [], text
