import sys
from pathlib import Path

import networkx as nx
import pytest
import torch
from conftest import DATA, workload_of

from tcl_iree.errors import WorkloadError
from tcl_iree.frontend import extract, load_model
from tcl_iree.target import Target
from tcl_iree.workload.analysis import analyse, dispatch_ops, parse_payload
from tcl_iree.workload.graph import build_graph, structural_key
from tcl_iree.workload.model import Workload

MATMUL = (DATA / "matmul_bias_relu.mlir").read_text()


def test_structure_of_a_fused_matmul(matmul: Workload) -> None:
    assert [op.role for op in matmul.ops] == ["fill", "root", "consumer"]
    assert [(loop.size, loop.kind) for loop in matmul.root.loops] == [
        (64, "parallel"),
        (128, "parallel"),
        (96, "reduction"),
    ]
    assert matmul.root.body == "addf(out0, mulf(in0, in1))"
    assert matmul.flops == 2 * 64 * 128 * 96 + 2 * 64 * 128
    assert matmul.bytes == 4 * (64 * 96 + 96 * 128 + 128 + 64 * 128)
    assert [binding.access for binding in matmul.bindings] == [
        "readonly",
        "readonly",
        "readonly",
        "writeonly",
    ]
    assert matmul.reduction_length == 96
    assert matmul.label == "matmul 64x128x96 f32 +1"


def test_graph_has_loops_ops_and_buffers(matmul: Workload) -> None:
    module = parse_payload(matmul.payload)
    with module.context:
        graph = build_graph(dispatch_ops(module))
        assert structural_key(graph) == matmul.key
    kinds = nx.get_node_attributes(graph, "kind").values()
    assert {"op", "loop", "buffer"} == set(kinds)
    assert list(kinds).count("buffer") == 4
    assert sum(data["kind"] == "loop" for _, data in graph.nodes(data=True)) == 2 + 3 + 2
    assert nx.is_directed_acyclic_graph(graph)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (("@main", "@renamed"), True),
        (("%product", "%other_name"), True),
        (("0.0 : f32", "1.5 : f32"), True),
        (("128", "144"), False),
        (("f32", "f16"), False),
        (("arith.maximumf %sum, %zero", "arith.mulf %sum, %zero"), False),
        (("arith.addf %x, %y", "arith.addf %x, %x"), False),
        (("affine_map<(m, n) -> (n)>, affine", "affine_map<(m, n) -> (m)>, affine"), False),
    ],
)
def test_key_sees_computation_not_names(
    change: tuple[str, str], same: bool, matmul: Workload, tmp_path: Path, target: Target
) -> None:
    text = MATMUL.replace(*change)
    if change[1].endswith("(m)>, affine"):
        text = text.replace("%bias: tensor<128xf32>", "%bias: tensor<64xf32>").replace(
            "tensor<64x128xf32>, tensor<128xf32>)", "tensor<64x128xf32>, tensor<64xf32>)"
        )
    assert (workload_of(text, tmp_path, target).key == matmul.key) is same


def test_equal_layers_merge_whatever_their_weights_and_offsets(tmp_path: Path, target: Target) -> None:
    layers = "\n".join(
        f"""
  %w{i} = arith.constant dense<[{", ".join(f"{(j * 7 + i) % 5 - 2}.0" for j in range(64))}]> : tensor<64xf32>
  %b{i} = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}} ins(%x{i}, %w{i} : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {{
    ^bb0(%p: f32, %q: f32, %o: f32):
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
  }} -> tensor<64x64xf32>
  %m{i} = linalg.matmul ins(%b{i}, %y : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  %x{i + 1} = util.optimization_barrier %m{i} : tensor<64x64xf32>"""
        for i in range(3)
    )
    path = tmp_path / "layers.mlir"
    path.write_text(
        f"""func.func @main(%x0: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<64x64xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>{layers}
  return %x3 : tensor<64x64xf32>
}}"""
    )
    extraction = extract(load_model(path), target)
    assert not extraction.untunable
    assert all(entry.occurrences == 3 for entry in extraction.dispatches)


def test_dispatches_that_cannot_be_tuned_say_why(target: Target) -> None:
    copied = extract(load_model(DATA / "copy_only.mlir"), target)
    assert not copied.dispatches
    dynamic = extract(load_model(DATA / "dynamic.mlir"), target)
    assert [entry.workload.label for entry in dynamic.dispatches] == ["elementwise 4096 f32"]
    assert any("dynamic" in entry.reason for entry in dynamic.untunable)


def test_an_op_never_met_before_costs_one_dispatch(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(payload: str) -> Workload:
        raise KeyError("alignment")

    monkeypatch.setattr(sys.modules["tcl_iree.frontend.extract"], "analyse", stumble)
    extraction = extract(load_model(DATA / "matmul_bias_relu.mlir"), target)
    assert not extraction.dispatches
    assert "cannot be analysed (KeyError" in extraction.untunable[0].reason


def test_scatters_are_listed(tmp_path: Path, target: Target) -> None:
    path = tmp_path / "scatter.mlir"
    path.write_text("""func.func @main(%updates: tensor<8x16xf32>, %indices: tensor<8x1xi32>, %original: tensor<64x16xf32>) -> tensor<64x16xf32> {
  %result = iree_linalg_ext.scatter dimension_map = [0] unique_indices(true)
      ins(%updates, %indices : tensor<8x16xf32>, tensor<8x1xi32>) outs(%original : tensor<64x16xf32>) {
    ^bb0(%new: f32, %old: f32):
      iree_linalg_ext.yield %new : f32
  } -> tensor<64x16xf32>
  return %result : tensor<64x16xf32>
}""")
    extraction = extract(load_model(path), target)
    assert [entry.reason for entry in extraction.untunable if "scatter" in entry.name] == ["it is a scatter"]


def test_a_payload_that_is_not_mlir_is_refused() -> None:
    with pytest.raises(WorkloadError, match="not valid MLIR"):
        analyse("not mlir")


def test_payload_can_be_analysed_again(matmul: Workload) -> None:
    assert analyse(matmul.payload) == matmul


def test_a_search_for_a_maximum_is_not_taken_for_a_copy(tmp_path: Path, target: Target) -> None:
    class Largest(torch.nn.Module):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return rows.argmax(-1)

    extraction = extract(load_model(Largest(), [torch.randn(8, 100)]), target)
    reasons = [entry.reason for entry in extraction.untunable if "arg_compare" in entry.name]
    assert reasons == ["it is a search for the place of a largest or smallest element"]
