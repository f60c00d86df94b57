"""Contenders side by side: who fails is told and harms nobody, and ratios are of the same rounds."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from benchmarks.common import matmul_text
from benchmarks.contender import Contender, Running
from benchmarks.contest import Contest, Standing, contest
from tcl_iree.errors import MeasureError
from tcl_iree.frontend.iree_compile import compile_model
from tcl_iree.target import Target

TARGET = Target.parse("cpu,threads=1")
DRAWS = [
    [np.random.default_rng(seed).standard_normal((2, 32, 32)).astype(np.float32)[half] for half in (0, 1)]
    for seed in (0, 1)
]


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A product of two matrices, and the product the other way round."""
    place = tmp_path_factory.mktemp("modules")
    text = matmul_text(32, 32, 32)
    made = {}
    for name, source in {"right": text, "wrong": text.replace("ins(%a, %b", "ins(%b, %a")}.items():
        (place / f"{name}.mlir").write_text(source)
        made[name] = str(place / f"{name}.vmfb")
        compile_model(place / f"{name}.mlir", TARGET.compile_flags, Path(made[name]))
    return made


def contender(name: str, path: str, instead: Contender | None = None) -> Contender:
    options = {"path": path, "device": TARGET.device, "flags": TARGET.runtime_flags, "about": f"from {path}"}
    return Contender(name, "iree", options, instead=instead)


def test_who_fails_is_told_and_the_others_are_timed(modules: dict[str, str], tmp_path: Path) -> None:
    field = [
        contender("first", modules["right"]),
        contender("missing", "/no/such.vmfb"),
        contender("wrong", modules["wrong"]),
        contender("replaced", "/no/such.vmfb", instead=contender("other", modules["right"])),
    ]
    result = contest(field, TARGET, DRAWS, 0.0, 120.0, tmp_path)
    assert result.reference == "first"
    assert result.depends_on_input
    assert set(result.standings) == {"first", "replaced"}
    assert set(result.failed) == {"missing", "wrong"}
    assert "wrong result" in result.failed["wrong"]
    assert "replaced: " in result.standings["replaced"].about
    assert len(result.standings["first"].slices) == len(result.standings["replaced"].slices) >= 5
    assert all(0 < seconds < 1 for seconds in result.standings["first"].slices)


def test_a_contender_that_is_killed_says_how(modules: dict[str, str], tmp_path: Path) -> None:
    running = Running(contender("right", modules["right"]), TARGET, DRAWS, tmp_path / "log", 120.0)
    assert np.allclose(running.outputs[0][0], DRAWS[0][0] @ DRAWS[0][1], atol=1e-4)
    assert running.slice(3) > 0
    os.kill(running.pid, signal.SIGKILL)
    with pytest.raises(MeasureError, match="died: SIGKILL"):
        running.slice(1)
    running.close()


def test_a_ratio_cancels_what_slows_a_whole_round() -> None:
    slow = np.linspace(1.0, 3.0, 40)
    noise = 1 + 0.01 * np.random.default_rng(0).standard_normal(40)
    standings = {"a": Standing("", 0.0, tuple(2 * slow * noise)), "b": Standing("", 0.0, tuple(slow))}
    ratio, error = Contest("a", True, standings, {}).ratio("a", "b")
    assert ratio == pytest.approx(2.0, rel=0.02)
    assert error < 0.02
