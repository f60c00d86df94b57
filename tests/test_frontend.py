import sys
from pathlib import Path

import pytest
import torch

from tcl_iree.errors import ModelError
from tcl_iree.frontend import Extraction, extract, load_model
from tcl_iree.frontend.random_operators import random_operators
from tcl_iree.measure.builder import Builder
from tcl_iree.measure.runner import Runner
from tcl_iree.target import Target
from tcl_iree.workflows.trials import check_reference

EXAMPLE = Path(__file__).parent.parent / "examples" / "small_cnn.py"


class TwoEqualLayers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(96, 96), torch.nn.Linear(96, 96)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.second(torch.relu(self.first(x))))


def keys(extraction: Extraction) -> dict[str, int]:
    return {entry.workload.key: entry.occurrences for entry in extraction.dispatches}


def test_two_layers_of_one_shape_share_a_key(target: Target) -> None:
    extraction = extract(load_model(TwoEqualLayers(), (torch.randn(32, 96),)), target)
    assert list(keys(extraction).values()) == [2]


def test_a_function_in_a_file_is_a_model(target: Target) -> None:
    extraction = extract(load_model(f"{EXAMPLE}:build"), target)
    assert len(extraction.dispatches) >= 5
    extraction.require_tunable()


class NormsFirst(torch.nn.Module):
    """Batch norms that no convolution takes up."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.conv = torch.nn.BatchNorm2d(3), torch.nn.Conv2d(3, 8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(torch.relu(self.norm(x)))


def test_constants_inside_dispatches_are_not_lost(target: Target, builder: Builder, runner: Runner) -> None:
    """Norms leave them there, and the model's weights are left out of what is read."""
    extraction = extract(load_model(NormsFirst(), (torch.randn(1, 3, 16, 16),)), target)
    assert any("dense<" in entry.workload.payload for entry in extraction.dispatches)
    check_all(extraction, builder, runner)


def test_every_dispatch_of_the_example_builds_and_is_right(target: Target, builder: Builder, runner: Runner) -> None:
    check_all(extract(load_model(f"{EXAMPLE}:build"), target), builder, runner)


def check_all(extraction: Extraction, builder: Builder, runner: Runner) -> None:
    for entry in extraction.dispatches:
        built = builder.build_default(entry.workload)
        assert built.artifact, (entry.workload.label, built.failure)
        assert check_reference(entry.workload, built.artifact, runner).status == "confirmed"


def test_models_turbine_cannot_take_go_through_iree_s_importer(
    monkeypatch: pytest.MonkeyPatch, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    import iree.turbine.aot as aot

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("turbine cannot")

    expected = extract(load_model(TwoEqualLayers(), (torch.randn(32, 96),)), target)
    monkeypatch.setattr(aot, "export", broken)
    extraction = extract(load_model(TwoEqualLayers(), (torch.randn(32, 96),)), target)
    assert "turbine cannot" in caplog.text
    # The importers may order the operands of an addition differently, so keys may differ.
    assert [(entry.workload.label, entry.occurrences) for entry in extraction.dispatches] == [
        (entry.workload.label, entry.occurrences) for entry in expected.dispatches
    ]


def test_a_model_no_importer_takes_is_a_clear_error() -> None:
    class Impossible(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if float(x.sum()) > 0 else -x

    with pytest.raises(ModelError, match="cannot be exported: turbine says"):
        load_model(Impossible(), (torch.randn(4),))


def test_a_module_without_inputs_is_a_clear_error() -> None:
    with pytest.raises(ModelError, match="needs example inputs"):
        load_model(TwoEqualLayers())


def test_a_tensor_alone_is_the_only_input() -> None:
    (array,) = load_model(TwoEqualLayers(), torch.randn(32, 96)).inputs or ()
    assert array.shape == (32, 96), "not one input for each row"
    with pytest.raises(ModelError, match="must be a tuple of tensors, not int"):
        load_model(TwoEqualLayers(), 3)


def test_the_caller_s_module_stays_as_it_was() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout()).train()
    module[0].eval()
    load_model(module, (torch.randn(4, 8),))
    assert [part.training for part in module.modules()] == [True, False, True]


def test_a_file_may_define_dataclasses_and_import_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("WIDTH = 12\n")
    (tmp_path / "mine.py").write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from beside_it import WIDTH\n"
        "import torch\n"
        "@dataclass\n"
        "class Config:\n"
        "    width: int = WIDTH\n"
        "def build():\n"
        "    return torch.nn.Linear(Config().width, 4).eval(), (torch.randn(4, Config().width),)\n"
    )
    path = list(sys.path)
    (array,) = load_model(f"{tmp_path / 'mine.py'}:build").inputs or ()
    assert array.shape == (4, 12)
    assert sys.path == path
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(ModelError, match="cannot be imported: ZeroDivisionError"):
        load_model(f"{tmp_path / 'broken.py'}:build")
    assert not any(name.endswith("broken") for name in sys.modules)


def test_onnx(tmp_path: Path, target: Target) -> None:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["a", "b"], ["m"]), helper.make_node("Relu", ["m"], ["y"])],
        "matmul",
        [
            helper.make_tensor_value_info("a", kind, [32, 48]),
            helper.make_tensor_value_info("b", kind, [48, 64]),
        ],
        [helper.make_tensor_value_info("y", kind, [32, 64])],
    )
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    extraction = extract(load_model(path), target)
    assert [entry.workload.label for entry in extraction.dispatches] == ["matmul 32x64x48 f32 +1"]
    path.write_bytes(b"not onnx at all")
    with pytest.raises(ModelError, match="cannot be imported as ONNX"):
        load_model(path)


# Distinct tunable dispatches and dispatches per inference change with the exporter; the bounds do not.
ZOO = {"bert-base": (6, 60), "gpt2-small": (6, 60), "resnet-50": (28, 50), "mobilenet-v2": (30, 50)}


@pytest.mark.parametrize(
    "name", [name if name == "mobilenet-v2" else pytest.param(name, marks=pytest.mark.long) for name in ZOO]
)
def test_zoo_models_export_alike_every_time(name: str, target: Target) -> None:
    distinct, per_inference = ZOO[name]
    first, second = (extract(load_model(f"zoo:{name}"), target) for _ in range(2))
    assert keys(first) == keys(second)
    assert len(keys(first)) >= distinct
    assert sum(keys(first).values()) >= per_inference
    assert all(entry.reason for entry in first.untunable)
    payloads = [entry.workload.payload for entry in first.dispatches]
    assert all(len(payload) < 50_000 for payload in payloads), "weights do not travel with payloads"


def test_random_operators_are_the_same_for_the_same_seed(target: Target) -> None:
    first, second, other = (extract(load_model(*random_operators(seed, count=6)), target) for seed in (5, 5, 6))
    assert keys(first) == keys(second) != keys(other)
    assert len(keys(first)) >= 4


def test_narrow_operators_are_of_f16_and_i8(target: Target) -> None:
    extraction = extract(load_model(*random_operators(3, count=8, narrow=True)), target)
    labels = [entry.workload.label for entry in extraction.dispatches]
    assert any("i8" in label for label in labels)
    assert any("f16" in label for label in labels)


@pytest.mark.long
@pytest.mark.parametrize("name", ZOO)
def test_every_dispatch_of_the_zoo_builds_and_is_right(
    name: str, target: Target, builder: Builder, runner: Runner
) -> None:
    for entry in extract(load_model(f"zoo:{name}"), target).dispatches:
        built = builder.build_default(entry.workload)
        assert built.artifact, (entry.workload.label, built.failure)
        check = check_reference(entry.workload, built.artifact, runner)
        assert check.status in ("confirmed", "unchecked"), (entry.workload.label, check)
