"""Ops of a model before dispatches form, whose layout can be chosen."""

from __future__ import annotations

from dataclasses import dataclass

from tcl_iree.workload.structure import ATTENTION

CONV_NCHW, CONV_NHWC = "linalg.conv_2d_nchw_fchw", "linalg.conv_2d_nhwc_hwcf"
DEPTHWISE_NCHW = "linalg.depthwise_conv_2d_nchw_chw"
MAX_POOL_NCHW = "linalg.pooling_nchw_max"
MATMUL, BATCH_MATMUL = "linalg.matmul", "linalg.batch_matmul"
KINDS = (CONV_NCHW, CONV_NHWC, DEPTHWISE_NCHW, MAX_POOL_NCHW, MATMUL, BATCH_MATMUL, ATTENTION)


@dataclass(frozen=True)
class ModelOp:
    """Ops of one kind with one type of result.

    Attributes:
        kind: name of the op.
        shape: of the result, in the op's own layout.
        count: how many there are.
        weights: whether the second operand of all of them is known when the model is compiled.
    """

    kind: str
    shape: tuple[int, ...]
    dtype: str
    count: int
    weights: bool
