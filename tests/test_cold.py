"""Constants that come from memory, as they do inside a large model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import iree.runtime as runtime
import numpy as np
import pytest
import torch
from conftest import workload_of
from shapes import contraction

from tcl_iree.frontend import extract, load_model
from tcl_iree.measure.builder import Builder
from tcl_iree.measure.cold import copies, spacing, with_copies
from tcl_iree.measure.device import Buffers, Kernel
from tcl_iree.measure.inputs import make_buffers
from tcl_iree.measure.run_job import DRAWS
from tcl_iree.measure.runner import Runner
from tcl_iree.target import Target
from tcl_iree.workflows.cold import outgrows_cache, with_cold_constants
from tcl_iree.workload.model import Workload

TARGET = Target.parse("cpu,threads=1")
M, N, K = 24, 40, 56


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    return workload_of(contraction({"m": M, "n": N, "k": K}), tmp_path_factory.mktemp("cold"), TARGET)


def weights_of(workload: Workload) -> int:
    return next(index for index, binding in enumerate(workload.bindings) if binding.shape == (K, N))


def test_copies_are_larger_than_any_cache_and_begin_on_pages(product: Workload) -> None:
    index = weights_of(product)
    cold = replace(product, cold=(index,))
    assert spacing(product.bindings[index]) % 4096 == 0
    assert spacing(product.bindings[index]) >= 4 * K * N
    assert copies(product) == 1
    arrays = make_buffers(cold, DRAWS[0])
    made = with_copies(cold, arrays)
    assert made[index].shape == (copies(cold), spacing(product.bindings[index]))
    for copy in (0, copies(cold) - 1):
        held = made[index][copy, : 4 * K * N].view(np.float32).reshape(K, N)
        assert np.array_equal(held, arrays[index])
    assert all(one is other for at, (one, other) in enumerate(zip(made, arrays, strict=True)) if at != index)
    large = replace(
        product, cold=(index,), bindings=tuple(replace(each, shape=(1 << 25,)) for each in product.bindings)
    )
    assert copies(large) == 2


def test_each_dispatch_reads_the_next_copy(product: Workload) -> None:
    index = weights_of(product)
    cold = replace(product, cold=(index,))
    with Builder(TARGET) as builder:
        artifact = builder.build_default(cold).artifact
        assert artifact
        assert artifact.sha != builder.build_default(product).artifact.sha, "another harness, so never compared"
    arrays = with_copies(cold, make_buffers(cold, DRAWS[0]))
    for copy in range(copies(cold)):
        arrays[index][copy].view(np.float32)[:] = copy
    device = runtime.get_driver("local-sync").create_default_device()
    one, other = Kernel(device, artifact.vmfb), Kernel(device, artifact.vmfb)
    buffers = Buffers(device, arrays, copies(cold))
    (result,) = [at for at, binding in enumerate(product.bindings) if binding.access != "readonly"]
    seen = []
    for kernel, times in ((one, 1), (other, 1), (one, 3), (other, 1), (one, copies(cold))):
        kernel(buffers, times)
        seen.append(float(buffers.read(result).mean()))
    # Copies 0, 1, 4, 5, then once around: kernels that are timed beside each other never read the same.
    assert seen[0] == 0.0
    assert np.array(seen[1:]) / seen[1] == pytest.approx([1.0, 4.0, 5.0, 5.0], rel=1e-4)


def test_a_cold_workload_is_verified_and_timed(product: Workload) -> None:
    cold = replace(product, cold=(weights_of(product),))
    with Builder(TARGET) as builder, Runner(TARGET) as runner:
        artifact = builder.build_default(cold).artifact
        assert artifact
        result = runner.measure(cold, artifact, artifact)
        assert result.timing, result.failure
        (found,) = runner.compare(cold, [artifact], artifact)
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


def test_only_models_with_many_constants_are_measured_cold() -> None:
    model = load_model(torch.nn.Linear(160, 200), inputs=(torch.randn(32, 160),))
    extraction = extract(model, TARGET)
    assert 4 * 160 * 200 <= extraction.constant_bytes < 4 * 160 * 200 + 2048
    small = replace(TARGET, described=replace(TARGET.hardware, l3_bytes=1 << 12))
    large = replace(TARGET, described=replace(TARGET.hardware, l3_bytes=1 << 25))
    assert outgrows_cache(extraction, small)
    assert not outgrows_cache(extraction, large)
    assert not outgrows_cache(extraction, replace(small, kind="vulkan"))
    cold = with_cold_constants(extraction, small)
    (linear,) = [entry.workload for entry in cold.dispatches if entry.workload.cold]
    assert [sorted(linear.bindings[index].shape) for index in linear.cold] == [[160, 200]], "not the bias, it is small"
    assert linear.cache_bytes == 1 << 12
    assert [entry.workload.key for entry in cold.dispatches] == [entry.workload.key for entry in extraction.dispatches]
