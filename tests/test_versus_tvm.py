"""The comparison with TVM: its arithmetic, and how ops are described to TVM. TVM itself is not needed here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from benchmarks.curve import Curve
from benchmarks.op_list import OPS, Op, build, conv_norm_relu, matmul_bias_gelu, pointwise
from benchmarks.tvm_environment import tvm_python
from benchmarks.tvm_figures import compared, losses, means
from benchmarks.tvm_ops import description, expressible, weights
from tcl_iree.errors import MeasureError

THEIRS = Curve.of([(10.0, 5.0), (20.0, 2.0), (30.0, 3.0)])


def test_latency_at_equal_time_and_time_to_equal_latency() -> None:
    found = compared(Curve.of([(5.0, 4.0), (25.0, 1.6), (40.0, 1.0)], start=8.0), THEIRS)
    assert found["latency_at_end"] == 2.0
    assert found["latency_at_equal_time"] == pytest.approx(2.0 / 1.6)  # they were done after 30 s
    assert found["time_to_equal_latency"] == pytest.approx(20.0 / 25.0)  # they had their best after 20 s
    assert found["reached"]


def test_who_never_is_as_good_counts_with_all_its_time() -> None:
    found = compared(Curve.of([(5.0, 4.0), (50.0, 2.5)], start=8.0), THEIRS)
    assert not found["reached"]
    assert found["time_to_equal_latency"] == pytest.approx(20.0 / 50.0)
    assert found["latency_at_equal_time"] == 0.5


def test_before_our_first_trial_there_is_plain_iree() -> None:
    assert compared(Curve.of([(40.0, 1.0)], start=8.0), THEIRS)["latency_at_equal_time"] == 0.25


def test_means_and_losses_are_over_all_ops() -> None:
    ops = {
        "one": compared(Curve.of([(10.0, 1.0)]), THEIRS),
        "other": compared(Curve.of([(40.0, 4.0)], start=8.0), THEIRS),
    }
    found = means(ops.values())
    assert found["latency_at_end"] == pytest.approx(1.0)
    assert found["latency_at_equal_time"] == pytest.approx((2.0 * 0.25) ** 0.5)
    assert (found["ops"], found["reached"]) == (2, 1)
    assert [(op, name) for op, name, _ in losses(ops)] == [
        ("other", "latency_at_end"), ("other", "latency_at_equal_time"), ("other", "time_to_equal_latency"),
    ]  # fmt: skip


def test_every_contraction_and_convolution_in_f32_is_described() -> None:
    wanted = [name for name in OPS if build(name).group in ("contraction", "convolution")]
    assert expressible() == wanted


@pytest.mark.parametrize(
    "op",
    [conv_norm_relu(4, 6, 9, 3, 2), conv_norm_relu(6, 6, 7, groups=6), pointwise(4, 6, 8, 2)],
    ids=["strided", "depthwise", "pointwise"],
)
def test_a_described_convolution_computes_what_the_op_does(op: Op) -> None:
    op.module.eval()
    about, held = description(op), {name: torch.from_numpy(array) for name, array in weights(op).items()}
    value = functional.conv2d(
        op.inputs[0], held["weight"], stride=about["stride"], padding=about["padding"], groups=about["groups"]
    )
    kind, *after = about["form"].split(", ")
    assert kind == "conv"
    if after:
        assert after == ["bias", "relu"]
        value = torch.relu(value + held["bias"])
    assert torch.allclose(value, op.module(*op.inputs), atol=1e-5)


def test_weights_come_in_the_order_they_are_used() -> None:
    op = matmul_bias_gelu(4, 6, 8)
    assert [array.shape for array in weights(op).values()] == [(8, 6), (6,)]
    assert description(op) == {"form": "matmul, bias, gelu", "inputs": [[4, 8]]}


def test_an_interpreter_without_tvm_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="--tvm-python"):
        tvm_python(tmp_path / "python", tmp_path)
    with pytest.raises(MeasureError, match="has no TVM"):
        tvm_python(Path(sys.executable), tmp_path)
