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


def test_what_data_choose_may_be_any_row(tmp_path: Path, target: Target) -> None:
    lookup = """func.func @main(%table: tensor<100x8xf32>, %at: tensor<16xi64>) -> tensor<16x8xf32> {
  %empty = tensor.empty() : tensor<16x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]} ins(%at : tensor<16xi64>) outs(%empty : tensor<16x8xf32>) {
  ^bb0(%i: i64, %o: f32):
    %row = arith.index_cast %i : i64 to index
    %column = linalg.index 1 : index
    %x = tensor.extract %table[%row, %column] : tensor<100x8xf32>
    linalg.yield %x : f32
  } -> tensor<16x8xf32>
  return %r : tensor<16x8xf32>
}"""
    workload = workload_of(lookup, tmp_path, target)
    assert (workload.gathers, workload.index_limit) == (True, 100)


def test_values_used_again_and_again_stay_short(tmp_path: Path, target: Target) -> None:
    doubled = "".join(f"    %v{i + 1} = arith.addf %v{i}, %v{i} : f32\n" for i in range(64))
    text = f"""func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {{
  %empty = tensor.empty() : tensor<64x64xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]}} ins(%x : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>) {{
  ^bb0(%v0: f32, %o: f32):
{doubled}    linalg.yield %v64 : f32
  }} -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}}"""
    assert len(workload_of(text, tmp_path, target).root.body) < 1 << 16


def test_a_search_for_a_maximum_is_not_taken_for_a_copy(tmp_path: Path, target: Target) -> None:
    class Largest(torch.nn.Module):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return rows.argmax(-1)

    extraction = extract(load_model(Largest(), [torch.randn(8, 100)]), target)
    reasons = [entry.reason for entry in extraction.untunable if "arg_compare" in entry.name]
    assert reasons == ["it is a search for the place of a largest or smallest element"]
