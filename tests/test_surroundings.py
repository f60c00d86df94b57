"""Buffers that are timed where they are inside a model: in a far cache, or in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import iree.runtime as runtime
import numpy as np
import pytest
import torch
from conftest import workload_of
from shapes import contraction

import tcl_iree
from tcl_iree.frontend import Extraction, extract, load_model
from tcl_iree.measure.builder import Builder
from tcl_iree.measure.copies import copies, spacing, with_copies
from tcl_iree.measure.device import Buffers, Kernel
from tcl_iree.measure.expectation import DRAWS
from tcl_iree.measure.inputs import make_buffers
from tcl_iree.measure.runner import Runner
from tcl_iree.target import Target
from tcl_iree.workflows.surroundings import Surroundings, placed, surroundings
from tcl_iree.workload.model import Workload

TARGET = Target.parse("cpu,threads=1")
M, N, K = 24, 40, 56


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    return workload_of(contraction({"m": M, "n": N, "k": K}), tmp_path_factory.mktemp("cold"), TARGET)


def weights_of(workload: Workload) -> int:
    return next(index for index, binding in enumerate(workload.bindings) if binding.shape == (K, N))


def spread(workload: Workload, spans: dict[int, int]) -> Workload:
    return replace(workload, spans=tuple(spans.get(index, 0) for index in range(len(workload.bindings))))


def test_copies_fill_their_span_and_begin_on_pages(product: Workload) -> None:
    index = weights_of(product)
    size = 4 * K * N
    away = spread(product, {index: 10 * size})
    assert spacing(product.bindings[index]) % 4096 == 0
    assert spacing(product.bindings[index]) >= size
    assert copies(product) == {}
    assert copies(away) == {index: 10}
    arrays = make_buffers(away, DRAWS[0])
    made = with_copies(away, arrays)
    assert made[index].shape == (10, spacing(product.bindings[index]))
    for copy in (0, 9):
        held = made[index][copy, :size].view(np.float32).reshape(K, N)
        assert np.array_equal(held, arrays[index])
    assert all(one is other for at, (one, other) in enumerate(zip(made, arrays, strict=True)) if at != index)
    assert copies(spread(product, {index: 1})) == {index: 3}, "never the same twice in a row"


def test_each_dispatch_takes_the_next_copies(product: Workload) -> None:
    index = weights_of(product)
    (result,) = [at for at, binding in enumerate(product.bindings) if binding.access != "readonly"]
    away = spread(product, {index: 7 * 4 * K * N, result: 3 * 4 * M * N})
    with Builder(TARGET) as builder:
        artifact = builder.build_default(away).artifact
        assert artifact
        assert artifact.sha != builder.build_default(product).artifact.sha, "another harness, so never compared"
    arrays = with_copies(away, make_buffers(away, DRAWS[0]))
    for copy in range(7):
        arrays[index][copy].view(np.float32)[:] = copy
    arrays[result][:] = 0
    device = runtime.get_driver("local-sync").create_default_device()
    one, other = Kernel(device, artifact.vmfb), Kernel(device, artifact.vmfb)
    buffers = Buffers(device, arrays, 1 << 30)
    seen = []
    for kernel, times in ((one, 1), (other, 1), (one, 3), (other, 1), (one, 7)):
        kernel(buffers, times)
        seen.append(buffers.read(result).view(np.float32)[:, : M * N].mean(axis=1))
    # Turns 0, 1, 2 to 4, 5, 6 to 12: kernels that are timed beside each other never take the same copies.
    unit = seen[1][1]
    expected = [(0, 0, 0), (0, 1, 0), (3, 4, 2), (3, 4, 5), (12 % 7, 10 % 7, 11 % 7)]
    assert np.array(seen) / unit == pytest.approx(np.array(expected, float), rel=1e-4)


def test_a_workload_with_copies_is_verified_and_timed(product: Workload) -> None:
    away = spread(product, dict.fromkeys(range(len(product.bindings)), 1 << 20))
    with Builder(TARGET) as builder, Runner(TARGET) as runner:
        artifact = builder.build_default(away).artifact
        assert artifact
        result = runner.measure(away, artifact, artifact)
        assert result.timing, result.failure
        (found,) = runner.compare(away, [artifact], artifact)
        assert found.timing, found.failure


def test_a_model_says_which_bindings_are_constants(tmp_path: Path) -> None:
    model = load_model(torch.nn.Linear(48, 80), inputs=(torch.randn(32, 48),))
    (linear,) = [entry for entry in extract(model, TARGET).dispatches if entry.workload.flops > 2 * 32 * 48 * 79]
    shapes = {linear.workload.bindings[index].shape for index in linear.constants}
    assert any(sorted(shape) == [48, 80] for shape in shapes), "the weights"
    assert (32, 48) not in shapes, "not the input"
    path = tmp_path / "arguments.mlir"
    path.write_text(contraction({"m": M, "n": N, "k": K}))
    assert all(not entry.constants for entry in extract(load_model(path), TARGET).dispatches)


@pytest.fixture(scope="module")
def layers() -> Extraction:
    model = load_model(torch.nn.Linear(160, 200), inputs=(torch.randn(320, 160),))
    return extract(model, TARGET)


def with_caches(l2: int, l3: int) -> Target:
    return replace(TARGET, described=replace(TARGET.hardware, l2_bytes=l2, l3_bytes=l3))


def test_what_a_model_moves_decides_where_its_buffers_are(layers: Extraction) -> None:
    constants, flowing = 4 * 160 * 200, 4 * (320 * 160 + 320 * 200)
    assert constants <= layers.constant_bytes < constants + 2048
    assert flowing <= layers.flowing_bytes < flowing + 2048
    assert surroundings(layers, with_caches(1 << 20, 1 << 25)) == Surroundings(), "all stays in the nearest cache"
    assert surroundings(layers, with_caches(1 << 14, 1 << 25)) == Surroundings(1 << 17, 1 << 15)
    assert surroundings(layers, with_caches(1 << 14, 1 << 16)) == Surroundings(1 << 26, 1 << 15), "from memory"
    assert surroundings(layers, with_caches(1 << 14, 0)) == Surroundings(1 << 26, 1 << 15), "there is no last cache"
    assert surroundings(layers, with_caches(1 << 16, 1 << 18)) == Surroundings(1 << 17, 1 << 17), "half of the last"
    assert surroundings(layers, replace(with_caches(1 << 14, 1 << 16), kind="vulkan")) == Surroundings()
    assert surroundings(layers, with_caches(0, 0)) == Surroundings(), "nothing is known of the caches"


def test_large_buffers_are_placed_and_keys_stay(layers: Extraction) -> None:
    away = placed(layers, Surroundings(1 << 26, 1 << 22))
    (linear,) = [entry for entry in away.dispatches if entry.workload.flops > 2 * 320 * 160 * 199]
    spans = {binding.shape: span for binding, span in zip(linear.workload.bindings, linear.workload.spans, strict=True)}
    one, other = spans.pop((320, 160)), spans.pop((320, 200))
    assert (1 << 22) - 2 <= one + other <= 1 << 22, "together"
    assert one * 200 == pytest.approx(other * 160, rel=1e-3)
    assert sorted(spans.values()) == [0, 1 << 26], "the weights, and not the bias, it is small"
    assert [entry.workload.key for entry in away.dispatches] == [entry.workload.key for entry in layers.dispatches]
    assert placed(layers, Surroundings()) == layers


def test_a_model_that_outgrows_the_caches_is_tuned_and_right(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[Extraction] = []

    def watched(extraction: Extraction, around: Surroundings) -> Extraction:
        seen.append(placed(extraction, around))
        return seen[-1]

    monkeypatch.setattr("tcl_iree.workflows.tune.placed", watched)
    module = torch.nn.Linear(160, 200)
    inputs = torch.randn(320, 160)
    result = tcl_iree.tune(
        module, [inputs], target=with_caches(1 << 14, 1 << 16), database=tmp_path / "trials.db", trials=2,
        base="plain", layouts="keep", scope="quick", seconds=0.2, top=1,
    )  # fmt: skip
    assert any(any(entry.workload.spans) for entry in seen[-1].dispatches)
    assert result.report.workloads[0].right > 0
    np.testing.assert_allclose(result(inputs), module(inputs).detach(), rtol=1e-3, atol=1e-3)
