"""What candidates are held against: worked out once, kept in files, never in the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tcl_iree.measure import expectation as kept
from tcl_iree.measure.builder import Builder
from tcl_iree.measure.device import Kernel, open_device
from tcl_iree.measure.expectation import DRAWS, expectation
from tcl_iree.measure.inputs import make_buffers
from tcl_iree.measure.results import Artifact
from tcl_iree.measure.runner import Runner
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload


@pytest.fixture(scope="module")
def default(matmul: Workload, builder: Builder) -> Artifact:
    artifact = builder.build_default(matmul).artifact
    assert artifact
    return artifact


class Counted(Kernel):
    calls = 0

    def __call__(self, *arguments) -> float:
        self.calls += 1
        return super().__call__(*arguments)


def test_is_worked_out_once_and_read_as_it_was(matmul: Workload, default: Artifact, tmp_path: Path) -> None:
    device = open_device("local-sync", [])
    reference = Counted(device, default.vmfb)
    first = expectation(tmp_path / "place", matmul, reference, device)
    assert reference.calls == len(DRAWS)
    again = expectation(tmp_path / "place", matmul, reference, device)
    assert reference.calls == len(DRAWS), "the second time it is read"
    assert [draw.seed for draw in again] == list(DRAWS)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(other.wanted[3], one.wanted[3])
        for read, made in zip(other.buffers, make_buffers(matmul, one.seed), strict=True):
            np.testing.assert_array_equal(read, made)
            assert not read.flags.writeable
    assert not np.array_equal(first[0].wanted[3], first[1].wanted[3])
    assert [path.name for path in tmp_path.iterdir()] == ["place"], "nothing half-written is left"


@pytest.mark.parametrize("trouble", ["no such directory", "too large"])
def test_without_files_it_is_worked_out_each_time(
    matmul: Workload, default: Artifact, tmp_path: Path, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = open_device("local-sync", [])
    reference = Counted(device, default.vmfb)
    place = tmp_path / "missing" / "place" if trouble == "no such directory" else tmp_path / "place"
    if trouble == "too large":
        monkeypatch.setattr(kept, "_MOST_BYTES", 1000)
    for count in (1, 2):
        draws = expectation(place, matmul, reference, device)
        assert reference.calls == count * len(DRAWS)
        assert np.isfinite(draws[0].wanted[3]).all()
    assert not place.exists()


def test_a_runner_keeps_few_and_takes_them_along(
    matmul: Workload, default: Artifact, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tcl_iree.measure.runner._EXPECTATIONS", 2)
    with Runner(target) as runner:
        for number in range(4):
            named = Artifact(default.vmfb, f"reference{number}", "")
            assert runner.check(matmul, default, named) is None
        (place,) = {path.parent for path in runner._expected}
        assert sorted(path.name[-1] for path in place.iterdir()) == ["2", "3"]
    assert not place.exists()
