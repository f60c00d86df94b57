"""Loop graphs and statement features against figures worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import DATA, workload_of
from shapes import contraction, convolution

from tcl_iree.features.loop_graph import LoopGraph
from tcl_iree.features.nest_rows import nest_rows
from tcl_iree.features.statements import FEATURES, StatementEncoder, feature_names, loop_graphs
from tcl_iree.features.steps import StepReader
from tcl_iree.hardware import Hardware
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

# A machine of its own, so that no figure depends on the one the tests run on.
TARGET = Target("cpu", "avx2", 2, Hardware("avx2", 32, 16, 2, 32 << 10, 512 << 10))
SCRIPT = """
#config = #iree_cpu.lowering_config<distribution = [20, 50, 0], vector_common_parallel = [4, 10, 0], vector_reduction = [0, 0, 8]>
#translation = #iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>>
#compilation = #iree_codegen.compilation_info<lowering_config = #config, translation_info = #translation>
module attributes { transform.with_named_sequence } {
  transform.named_sequence @__kernel_config(%module: !transform.any_op {transform.consumed}) {
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    %root = transform.structured.match ops{["linalg.generic"]} in %function : (!transform.any_op) -> !transform.any_op
    %info = transform.param.constant #compilation -> !transform.any_param
    transform.annotate %root "compilation_info" = %info : !transform.any_op, !transform.any_param
    transform.yield
  }
}
"""


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    text = contraction({"m": 60, "n": 100, "k": 96})
    return workload_of(text, tmp_path_factory.mktemp("matmul"), TARGET)


@pytest.fixture(scope="module")
def graph(workload: Workload) -> LoopGraph:
    (steps,) = StepReader(workload, TARGET).read([SCRIPT])
    (made,) = loop_graphs(workload, steps)
    return made


def log(value: float) -> float:
    return float(np.log2(1.0 + value))


def test_the_graph_has_every_loop_and_tensor(graph: LoopGraph) -> None:
    # Around: 3 x 2 workgroups, 5 x 5 tiles in each, 12 steps of k. Inside: 4 x 10 x 8.
    assert [int(graph.trips[depth][0]) for depth in range(graph.depth)] == [3, 2, 5, 5, 12]
    assert [int(extent[0]) for extent in graph.extents[-1]] == [4, 10, 8]
    assert len(graph.tensors) == 3
    lhs, rhs, out = graph.tensors
    # One step over a workgroup's rows moves 20 rows of 96; over its columns, nothing of the left operand.
    assert graph.graph.edges[("loop", 0), lhs]["stride"][0] == 20 * 96
    assert not graph.graph.has_edge(("loop", 1), lhs)
    assert graph.graph.edges[("loop", 4), rhs]["stride"][0] == 8 * 100
    assert graph.graph.edges[("inside", 1), out]["stride"][0] == 1


def test_footprints_reuse_and_intensity(graph: LoopGraph) -> None:
    lhs, rhs, out = graph.tensors
    assert [graph.footprint(tensor)[0, 0] for tensor in (lhs, rhs, out)] == [60 * 96, 96 * 100, 60 * 100]
    assert [graph.footprint(tensor)[2, 0] for tensor in (lhs, rhs, out)] == [20 * 96, 96 * 50, 20 * 50]
    assert graph.bytes[5][0] == 4 * (4 * 8 + 8 * 10 + 4 * 10)
    assert graph.intensity[0][0] == pytest.approx(2 * 60 * 100 * 96 / (4 * (60 * 96 + 96 * 100 + 60 * 100)))
    # The right operand is used again by the next tile of rows, after 5 x 12 iterations that touch 4 x 50 results.
    assert [value[0] for value in graph.reuse(rhs)] == [60, 4 * (4 * 96 + 96 * 50 + 4 * 50), 5]
    assert [value[0] for value in graph.reuse(lhs)] == [12, 4 * (4 * 96 + 96 * 10 + 4 * 10), 5]
    assert [value[0] for value in graph.reuse(out)] == [1, graph.bytes[5][0], 12]


def test_stride_histogram_counts_every_pair_once(graph: LoopGraph) -> None:
    counts = graph.stride_histogram()[0]
    # Eight loops of more than one iteration and three tensors; each tensor misses one of m, n, k.
    assert counts.sum() == 8 * 3
    assert (
        counts[0] == 3 + 3 + 2
    )  # loops over n beside the left operand, over m beside the right, over k beside the result
    assert counts[1] == 3  # k of the left operand, n of the right and of the result: next to each other


def test_rows_of_what_a_script_leaves(workload: Workload) -> None:
    (left,) = nest_rows(workload, TARGET.hardware, list(StepReader(workload, TARGET).read([SCRIPT])))
    loops = [("nest:workgroup", "root")] * 2 + [("nest:serial", "root")] * 3
    assert left.names == loops + [("nest:tensor", "")] * 3 + [("nest:inside", "root")]
    rows = left.numbers[0]
    # The second loop shares out columns: 2 workgroups of 20 x 50 x 96 points each, none of them beyond the end; six in
    # all, which read some tensors several times.
    held, points, whole = 4 * (20 * 96 + 96 * 50 + 20 * 50), 20 * 50 * 96, 4 * (60 * 96 + 96 * 100 + 60 * 100)
    wanted = [2, points**0.5, (1 / 6) ** 0.5, held / (32 << 10), held / (512 << 10), 2 * points / held]
    assert rows[1, :6] == pytest.approx([np.log2(value) / 8 for value in wanted], abs=1e-5)
    assert rows[1, 6:8].tolist() == [0.0, 0.0]
    assert rows[1, 8:] == pytest.approx([np.log2(6) / 16, np.log2(held * 6 / whole) / 8], abs=1e-5)
    assert rows[4, 6] == 1.0, "the last loop around reduces"
    # The largest tensor is the right operand, 96 x 100: used again after 60 iterations, five times.
    between = 4 * (4 * 96 + 96 * 50 + 4 * 50)
    # Inside, 4 x 2 vectors of 8 columns are added to in each of 8 steps, with 2 vectors of it in each step.
    wanted = [16 / 64, 1, 4 * 80 / (32 << 10), 60, between / (32 << 10), between / (512 << 10), 5]
    assert rows[5, :7] == pytest.approx([np.log2(value) / 8 for value in wanted], abs=1e-5)
    assert rows[5, 7:] == pytest.approx([0.0, 0.0, np.log2(4 * 80 * 1800 / 38400) / 8], abs=1e-5)
    # Inside are 4 x 10 sums over 8: two vectors of 8 for 10 columns, 6 of 16 lanes empty, 8 vectors in 16 registers.
    # Each step reads 4 numbers of the left operand and 2 vectors of the right.
    wanted = [40, 8, 2, 2 ** (8 * 6 / 16), 8 / 16, (32 + 16) / 64, 6 / 2]
    assert rows[8, :7] == pytest.approx([np.log2(value) / 8 for value in wanted], abs=1e-5)
    assert rows[8, 7] == 0.0, "six workgroups keep two cores busy"
    assert rows[8, 8:] == pytest.approx([np.log2(1800) / 16, 1.0], abs=1e-5)


def test_features_by_hand(workload: Workload) -> None:
    features, counts = StatementEncoder(workload, TARGET).statements([SCRIPT])
    assert counts.tolist() == [1]
    named = dict(zip(feature_names(), features[0, 0].tolist(), strict=True))
    points = 60 * 100 * 96
    wanted = {
        "arithmetic add": log(points), "arithmetic multiply": log(points), "arithmetic divide": 0.0,
        "arithmetic all": log(2 * points), "workgroup loops": log(2), "workgroup iterations": log(6),
        "workgroup last": log(2), "serial loops": log(3), "serial iterations": log(300), "serial last": log(12),
        "thread loops": 0.0, "reduction loops": log(1), "reduction iterations": log(12), "inside points": log(320),
        "inside parallel": log(40), "inside reduction": log(8), "inside innermost": log(8),
        "inside innermost parallel": 0.0, "inside innermost reduces": 1.0, "inside vectors": log(320 / 8),
        "inside accumulators": log(40 / 8 / 16), "waste": 0.0, "innermost loop depth": log(5),
        "innermost loop iterations": log(12), "innermost loop reduces": 1.0, "workgroups": log(6 / 2), "waiting": 0.0,
        "buffer 0 read": 1.0, "buffer 0 bytes": log(4 * points), "buffer 0 distinct bytes": log(4 * 9600),
        "buffer 0 uses": log(5), "buffer 0 reuse iterations": log(60), "buffer 1 both": 1.0, "buffer 1 uses": log(12),
        "buffer 3 bytes": 0.0, "copies": 0.0, "loops around": log(5), "iterations around": log(1800), "share": 1.0,
        "register bytes": log(4 * (32 + 80 + 40)), "register L1": 0.0,
    }  # fmt: skip
    for name, value in wanted.items():
        assert named[name] == pytest.approx(value, abs=1e-4), name


def test_what_is_peeled_off_is_not_counted_twice(tmp_path: Path) -> None:
    workload = workload_of((DATA / "matmul_bias_relu.mlir").read_text(), tmp_path, TARGET)  # 64 x 128 x 96
    (steps,) = StepReader(workload, TARGET).read([(DATA / "scripts" / "peeled_rows.mlir").read_text()])
    graphs = [graph for graph in loop_graphs(workload, steps) if graph.nest.role == "root"]
    assert len(graphs) == 2
    points = [
        graph.points[-1][0] * np.prod([graph.trips[depth][0] for depth in range(graph.depth)]) for graph in graphs
    ]
    # Workgroups of 16 rows in tiles of 6: two of them, and 4 rows left over.
    assert points == [64 * 128 * 96 * 12 / 16, 64 * 128 * 96 * 4 / 16]


def test_windows_overlap(tmp_path: Path) -> None:
    workload = workload_of(convolution(4, 8, 10, 3), tmp_path, TARGET)
    (steps,) = StepReader(workload, TARGET).read([None])
    graph = next(graph for graph in loop_graphs(workload, steps) if graph.op.computes == "conv")
    image = max(graph.tensors, key=lambda tensor: graph.footprint(tensor)[0, 0])
    assert graph.footprint(image)[0, 0] == np.prod(graph.graph.nodes[image]["operand"].shape)


def test_there_are_enough_features_and_each_has_a_name() -> None:
    assert FEATURES == len(set(feature_names())) >= 100
