"""What was tuned before is given again, and only that."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcl_iree
from tcl_iree.database import Database
from tcl_iree.report.restored import restored
from tcl_iree.report.tune import TuneReport
from tcl_iree.workflows import finished
from tcl_iree.workflows.tuned import LIBRARY, MODULE, REPORT, TuneResult

SIZE = 48
MODEL = f"""func.func @main(%a: tensor<{SIZE}x{SIZE}xf32>, %b: tensor<{SIZE}x{SIZE}xf32>) -> tensor<{SIZE}x{SIZE}xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{SIZE}x{SIZE}xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<{SIZE}x{SIZE}xf32>) -> tensor<{SIZE}x{SIZE}xf32>
  %product = linalg.matmul ins(%a, %b : tensor<{SIZE}x{SIZE}xf32>, tensor<{SIZE}x{SIZE}xf32>)
    outs(%filled : tensor<{SIZE}x{SIZE}xf32>) -> tensor<{SIZE}x{SIZE}xf32>
  return %product : tensor<{SIZE}x{SIZE}xf32>
}}
"""
OPTIONS = {"trials": 2, "strategy": "random", "scope": "quick", "seconds": 0.2, "base": "plain", "layouts": "keep"}


class Request:
    """A model and a database to tune it with."""

    def __init__(self, place: Path) -> None:
        self.model, self.database = place / "product.mlir", place / "trials.db"
        self.model.write_text(MODEL)
        self.kept = place / "trials.finished"

    def tune(self, **options: Any) -> TuneResult:
        return tcl_iree.tune(self.model, target="cpu,threads=1", database=self.database, **OPTIONS | options)

    def trials(self) -> int:
        with Database(self.database) as database:
            return len(database.trials())


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Request, TuneResult, int]:
    request = Request(tmp_path_factory.mktemp("finished"))
    result = request.tune()
    return request, result, request.trials()


def given_again(result: TuneResult) -> bool:
    return any("given again" in note for note in result.report.notes)


def test_the_same_request_gives_the_same_product(first: tuple[Request, TuneResult, int], tmp_path: Path) -> None:
    request, result, trials = first
    again = request.tune()
    assert not given_again(result)
    assert given_again(again)
    assert request.trials() == trials, "nothing was measured"
    assert again.report.rows == result.report.rows
    assert again.library.text() == result.library.text()
    for name, made in (("one", result), ("two", again)):
        made.save(tmp_path / name)
    assert (tmp_path / "one" / MODULE).read_bytes() == (tmp_path / "two" / MODULE).read_bytes()
    a, b = np.random.default_rng(0).standard_normal((2, SIZE, SIZE)).astype(np.float32)
    np.testing.assert_allclose(again(a, b), a @ b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("options", [{"again": True}, {"trials": 3}, {"seed": 1}])
def test_another_request_tunes(first: tuple[Request, TuneResult, int], options: dict[str, Any]) -> None:
    assert not given_again(first[0].tune(**options))


def test_another_model_of_the_same_name_tunes(first: tuple[Request, TuneResult, int], tmp_path: Path) -> None:
    other = Request(tmp_path)
    shutil.copytree(first[0].kept, other.kept)
    other.model.write_text(MODEL.replace("0.0 : f32", "1.0 : f32"))
    assert not given_again(other.tune())


@pytest.mark.parametrize("name", [REPORT, LIBRARY, MODULE])
def test_a_damaged_product_is_not_used(
    first: tuple[Request, TuneResult, int], name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    request = first[0]
    held = shutil.copytree(request.kept, tmp_path / "held")
    try:
        for path in request.kept.rglob(name):
            path.unlink() if name == MODULE else path.write_text(path.read_text()[:100])
        assert not given_again(request.tune())
        assert "damaged" in caplog.text
    finally:
        shutil.rmtree(request.kept)
        shutil.copytree(held, request.kept)


def test_what_cannot_be_kept_is_done_without(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    request = Request(tmp_path)
    request.kept.write_text("in the way")
    assert request.tune().module
    assert "not kept" in caplog.text


def test_an_interrupted_search_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object) -> Sequence[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr("tcl_iree.workflows.workload_search.WorkloadSearch.step", interrupt)
    request = Request(tmp_path)
    assert request.tune().module
    assert not request.kept.exists()


def test_the_oldest_go_when_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for age, name in enumerate(("new", "old", "older")):
        (tmp_path / name).mkdir()
        (tmp_path / name / MODULE).write_bytes(bytes(1000))
        when = time.time() - 100 * age
        finished.os.utime(tmp_path / name, (when, when))
    monkeypatch.setattr(finished, "_LIMIT_BYTES", 2000)
    finished._trim(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"new", "old"}


def test_reports_are_read_back_as_they_were(first: tuple[Request, TuneResult, int]) -> None:
    report = first[1].report
    assert restored(TuneReport, json.loads(json.dumps(asdict(report)))) == report
    with pytest.raises(ValueError, match="other fields"):
        restored(TuneReport, {"model": "x"})
