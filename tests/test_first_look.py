"""Which computations of a model are looked at in each of its forms."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import pytest
from conftest import workload_of
from shapes import contraction, convolution_nhwc, convolution_panels

from tcl_iree.frontend import Dispatch
from tcl_iree.target import Target
from tcl_iree.workflows.first_look import computations, first_look
from tcl_iree.workload.model import Workload


@dataclass(eq=False)
class Search:
    """A search that counts what it is asked for."""

    dispatch: Dispatch
    asked: list[int] = field(default_factory=list)
    label: str = ""

    def step(self, count: int) -> list[None]:
        self.asked.append(count)
        return [None] * count

    @property
    def default_seconds(self) -> float:
        return 1e-9 * prod(loop.size for loop in self.dispatch.workload.root.loops)

    def best_ratio(self) -> float:
        return 1.0


def search(workload: Workload, occurrences: int = 1) -> Search:
    return Search(Dispatch(workload, occurrences, ("dispatch",)))


@pytest.fixture(scope="module")
def workloads(target: Target, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Workload]:
    texts = {
        "large": convolution_nhwc(16, 64, 14, 3),
        "large, cut": convolution_panels(16, 2, 32, 14, 3),
        "small": convolution_nhwc(8, 64, 7, 3),
        "small, cut": convolution_panels(8, 2, 32, 7, 3),
        "shared": contraction({"m": 64, "n": 512, "k": 512}),
    }
    return {name: workload_of(text, tmp_path_factory.mktemp("look"), target) for name, text in texts.items()}


def say(text: str, advance: int = 0, total: int | None = None) -> None:
    """Nothing."""


def test_the_same_computations_of_two_forms_are_put_side_by_side(workloads: dict[str, Workload]) -> None:
    whole = [search(workloads[name]) for name in ("small", "shared", "large")]
    cut = [search(workloads[name]) for name in ("large, cut", "shared", "small, cut")]
    assert computations([whole, cut]) == [[whole[2], cut[0]]], "the largest is enough, and all forms share the product"


def test_what_occurs_more_often_is_larger(workloads: dict[str, Workload]) -> None:
    whole = [search(workloads["large"]), search(workloads["small"], 100)]
    cut = [search(workloads["large, cut"]), search(workloads["small, cut"], 100)]
    assert computations([whole, cut]) == [[whole[1], cut[1]]]


def test_a_look_ends_between_computations(workloads: dict[str, Workload]) -> None:
    whole = [search(workloads["large"]), search(workloads["small"], 8)]
    cut = [search(workloads["large, cut"]), search(workloads["small, cut"], 8)]
    assert len(computations([whole, cut])) == 2
    assert not first_look([whole, cut], 3, 0.0, say)
    assert not any(made.asked for made in (*whole, *cut))
    assert not first_look([whole, cut], 3, None, say)
    assert all(made.asked == [3] for made in (*whole, *cut))


def test_an_interrupt_ends_it(workloads: dict[str, Workload]) -> None:
    class Interrupted(Search):
        def step(self, count: int) -> list[None]:
            raise KeyboardInterrupt

    made = [Interrupted(search(workloads[name]).dispatch) for name in ("large", "large, cut")]
    assert first_look([made[:1], made[1:]], 3, None, say)
