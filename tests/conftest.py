"""Fixtures shared by all tests. Compilations and measurements are real; processes are shared to save time."""

from __future__ import annotations

import importlib.util
import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tcl_iree.frontend import extract, load_model
from tcl_iree.measure.builder import Builder
from tcl_iree.measure.runner import Runner
from tcl_iree.measure.timing import TimingPolicy
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

DATA = Path(__file__).parent / "data"
_PLACE = "TCL_IREE_TESTS"
QUICK = TimingPolicy(slice_seconds=(0.001,), round_seconds=0.01, min_rounds=3, max_rounds=3, patience=0.5)


def pytest_configure(config: pytest.Config) -> None:
    """A database and a cache of the tests' own, and the assembler that comes with triton where there is no other."""
    if _PLACE not in os.environ:  # else this is a worker of such a run
        os.environ[_PLACE] = tempfile.mkdtemp(prefix="tcl-iree-tests-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(_PLACE), ignore_errors=True))
    place = Path(os.environ[_PLACE])
    os.environ |= {"TCL_IREE_DB": str(place / "trials.db"), "TCL_IREE_CACHE": str(place / "cache")}
    found = importlib.util.find_spec("triton")
    if found and found.origin and not shutil.which("ptxas"):
        os.environ["PATH"] += f"{os.pathsep}{Path(found.origin).parent / 'backends' / 'nvidia' / 'bin'}"


@pytest.fixture(scope="session")
def target() -> Target:
    return Target.parse("cpu,threads=1")


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Networks in tests are too small to share out, and other tests' processes are there too."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def all_are_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many of a few measurements are disturbed is up to the machine; tests/test_cost_models.py is about those."""
    monkeypatch.setattr("tcl_iree.learning.groups._UNUSUAL", math.inf)


@pytest.fixture(scope="session")
def data() -> Path:
    return DATA


def workload_of(text: str, tmp_path: Path, target: Target) -> Workload:
    """The only workload of a model given as MLIR text."""
    path = tmp_path / "model.mlir"
    path.write_text(text)
    (entry,) = extract(load_model(path), target).dispatches
    return entry.workload


@pytest.fixture(scope="session")
def matmul(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Workload:
    text = (DATA / "matmul_bias_relu.mlir").read_text()
    return workload_of(text, tmp_path_factory.mktemp("matmul"), target)


@pytest.fixture(scope="session")
def builder(target: Target) -> Iterator[Builder]:
    with Builder(target, cache=None) as made:
        yield made


@pytest.fixture(scope="session")
def runner(target: Target) -> Iterator[Runner]:
    with Runner(target, QUICK) as made:
        yield made
