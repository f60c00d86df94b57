"""`torch.compile(..., backend="tcl_iree")`: the same as eager mode, run by IREE, or left to eager mode with one warning."""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tcl_iree.workflows.torch_backend import backend

pytestmark = pytest.mark.usefixtures("one_thread", "registered")
PROJECT = Path(__file__).parent.parent / "pyproject.toml"
GROUP = "torch_dynamo_backends"


def entry_point() -> EntryPoint:
    (entry,) = tomllib.loads(PROJECT.read_text())["project"]["entry-points"][GROUP].items()
    return EntryPoint(*entry, group=GROUP)


@pytest.fixture(scope="module")
def registered() -> None:
    """The name is known where the package is installed as it is here; elsewhere it is made known."""
    if entry_point().name not in torch._dynamo.list_backends():
        torch._dynamo.register_backend(entry_point().load(), name=entry_point().name)


@pytest.fixture(autouse=True)
def _from_scratch() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


@pytest.fixture
def compiled(tmp_path: Path) -> Callable[..., Any]:
    def compile_it(model: Any, **options: Any) -> Any:
        given = {"target": "cpu,threads=1", "database": tmp_path / "trials.db", "layouts": "keep", **options}
        return torch.compile(model, backend="tcl_iree", options=given)

    return compile_it


def ops(call: Callable[[], Any]) -> set[str]:
    """The names of torch's own ops that a call runs."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    return {event.key for event in profile.key_averages()}


def silent(call: Callable[[], Any]) -> Any:
    """What a call gives that must not warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return call()


def warned(call: Callable[[], Any], reason: str) -> Any:
    """What a call gives that must warn just once."""
    with pytest.warns(UserWarning, match=reason) as heard:
        given = call()
    told = [str(entry.message) for entry in heard if "tcl_iree" in str(entry.message)]
    assert len(told) == 1
    assert re.search(r"test_torch_backend\.py:\d+", told[0])
    return given


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


class Everything(nn.Module):
    """Token ids in; views, scalars, flags, numbers and what was passed in out; a buffer and an argument written to."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.linear = nn.Embedding(40, 16), nn.Linear(16, 8)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, tokens: torch.Tensor, seen: torch.Tensor) -> dict[str, Any]:
        self.calls += 1
        hidden = self.linear(self.embedding(tokens))
        seen.add_(hidden.sum(-1))
        return {
            "turned": hidden.transpose(0, 1),
            "pair": (hidden.mean(), hidden > 0),
            "best": hidden.argmax(-1),
            "passed": tokens,
            "seen": seen,
            "count": tokens.shape[0],
        }


def same(got: Any, wanted: Any) -> None:
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)


def test_a_layer_runs_in_iree_with_whatever_weights_and_sizes(compiled: Callable[..., Any]) -> None:
    layer = Layer()
    fast = compiled(layer)

    def run(size: int) -> set[str]:
        x = torch.randn(size, 16)
        wanted = layer(x)
        return ops(lambda: same(silent(lambda: fast(x)), wanted))

    with torch.no_grad():
        assert "aten::addmm" in run(4)  # the first call checks what was compiled
        assert "aten::addmm" not in run(4)
        layer.linear.weight.mul_(2)  # as an optimizer or load_state_dict does
        assert "aten::addmm" in run(4)
        assert "aten::addmm" not in run(4)
        run(5)  # here Dynamo asks for a graph of any size
        assert "aten::addmm" not in run(5)
        x = torch.randn(7, 16)
        with torch._dynamo.config.patch(recompile_limit=1):
            same(warned(lambda: fast(x), "compiled for 1 sets of sizes and weights"), layer(x))
        assert "aten::addmm" in run(7)
        assert "aten::addmm" not in run(5)


def test_whatever_a_model_returns_and_writes(compiled: Callable[..., Any]) -> None:
    model = Everything()
    fast = compiled(model)
    with torch.inference_mode():
        for number in range(3):
            tokens = torch.randint(0, 40, (3, 5))
            seen = [torch.full((3, 5), float(number)) for _ in range(2)]
            got = silent(lambda tokens=tokens, seen=seen: fast(tokens, seen[0]))
            assert model.calls.item() == 2 * number + 1
            wanted = model(tokens, seen[1])
            assert got.keys() == wanted.keys()
            for name in wanted:
                same(got[name], wanted[name])
            same(seen[0], seen[1])
            assert got["passed"] is tokens
            assert got["seen"] is seen[0]
            assert got["turned"].stride() == wanted["turned"].stride()
            assert got["pair"][1].dtype is torch.bool


def test_each_graph_of_a_broken_model_is_compiled(compiled: Callable[..., Any]) -> None:
    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Layer(), nn.Linear(24, 3)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            hidden = self.first(x)
            torch._dynamo.graph_break()
            return self.second(hidden), hidden

    model = Broken()
    fast = compiled(model)
    with torch.no_grad():
        x = torch.randn(2, 16)
        same(silent(lambda: fast(x)), model(x))
        y = torch.randn(2, 16)
        wanted = model(y)
        assert "aten::addmm" not in ops(lambda: same(silent(lambda: fast(y)), wanted))


def test_gradients_are_left_to_eager_mode(compiled: Callable[..., Any]) -> None:
    layer = Layer()
    x = torch.randn(4, 16)
    warned(lambda: compiled(layer)(x), r"torch\.no_grad").sum().backward()
    got, layer.linear.weight.grad = layer.linear.weight.grad, None
    layer(x).sum().backward()
    same(got, layer.linear.weight.grad)


def test_random_numbers_are_left_to_eager_mode(compiled: Callable[..., Any]) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(x, 0.5)

    x = torch.ones(4, 16)
    with torch.no_grad():
        given = warned(lambda: compiled(model)(x), "random numbers")
    torch.manual_seed(0)
    same(given, model(x))


def test_what_cannot_be_imported_is_left_to_eager_mode(compiled: Callable[..., Any]) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvalsh(x) + 1

    x = torch.eye(4)
    with torch.no_grad():
        same(warned(lambda: compiled(model)(x), "eigh"), model(x))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"effort": "some"}, "no effort 'some'"),
        ({"efort": "none"}, "no option 'efort'; known: target, database, effort"),
        ({"target": "cpu:mips"}, "unknown CPU class"),
    ],
)
def test_options_that_mean_nothing_are_errors(
    compiled: Callable[..., Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=message), torch.no_grad():
        compiled(Layer(), **options)(torch.randn(4, 16))


def test_modes_are_inductor_s() -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="no mode 'max-autotune'"):
        torch.compile(Layer(), backend="tcl_iree", mode="max-autotune")(torch.randn(4, 16))


def test_the_package_registers_the_backend() -> None:
    (installed,) = entry_points(group=GROUP, name="tcl_iree")
    assert installed.value == entry_point().value
    assert entry_point().name == "tcl_iree"
    assert entry_point().load() is backend
