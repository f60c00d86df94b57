"""Which dispatches of a model are worth a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from conftest import workload_of
from shapes import contraction

from tcl_iree.frontend import Dispatch
from tcl_iree.target import Target
from tcl_iree.workflows.form import Form, choose_all
from tcl_iree.workflows.tune_options import TuneOptions
from tcl_iree.workload.model import Workload


@dataclass(eq=False)
class Search:
    """A search that was not begun."""

    dispatch: Dispatch
    default_seconds: float
    exhausted: bool = False

    @property
    def weight(self) -> float:
        return self.dispatch.occurrences * self.default_seconds

    def found_ratio(self) -> float:
        return 0.0


@pytest.fixture(scope="module")
def workloads(target: Target, tmp_path_factory: pytest.TempPathFactory) -> list[Workload]:
    """Two products with as many operations each, and a small one."""
    sizes = [{"m": 64, "n": 512, "k": 512}, {"m": 512, "n": 64, "k": 512}, {"m": 16, "n": 64, "k": 64}]
    return [workload_of(contraction(size), tmp_path_factory.mktemp("form"), target) for size in sizes]


def form(workloads: list[Workload], *seconds: float, **exhausted: bool) -> Form:
    searches: list[Any] = [
        Search(Dispatch(workload, 1, ("dispatch",)), taken) for workload, taken in zip(workloads, seconds, strict=True)
    ]
    for name, value in exhausted.items():
        setattr(searches[0], name, value)
    made: Any = Form(None, None)  # type: ignore[arg-type]  # neither flags nor the model matter here
    made.searches = searches
    return made


def chosen(made: Form) -> list[int]:
    return [made.searches.index(search) for search in made.chosen]


def test_a_default_that_is_far_too_slow_hides_nothing(workloads: list[Workload]) -> None:
    """Tuned, the first two may take about as long, though one takes 99 % of the time by default."""
    made = form(workloads, 198e-3, 1e-3, 1e-3)
    choose_all([made], TuneOptions(min_share=0.05))
    assert chosen(made) == [0, 1, 2]


def test_what_is_little_once_all_is_tuned_is_left(workloads: list[Workload]) -> None:
    made = form(workloads, 10e-3, 10e-3, 1e-5)
    choose_all([made], TuneOptions(min_share=0.005))
    assert chosen(made) == [0, 1]
    assert made.left == {workloads[2].key: "less than 0.5 % of what tuning may leave"}


def test_a_form_with_poor_defaults_is_judged_by_the_rates_of_others(workloads: list[Workload]) -> None:
    good, poor = form(workloads, 1e-3, 1e-3, 1e-3), form(workloads, 50e-3, 50e-3, 0.2e-3)
    choose_all([good, poor], TuneOptions(min_share=0.05))
    assert chosen(poor) == [0, 1, 2]
    choose_all([poor], TuneOptions(min_share=0.05))
    assert chosen(poor) == [0, 1], "by itself it would be taken for a slow model"


def test_what_no_family_serves_is_left_and_counts_as_it_is(workloads: list[Workload]) -> None:
    made = form(workloads, 198e-3, 1e-3, 1e-3, exhausted=True)
    choose_all([made], TuneOptions(min_share=0.05))
    assert chosen(made) == []
    assert made.left[workloads[0].key] == "no schedule family serves it"


def test_the_heaviest_are_those_with_most_time_by_default(workloads: list[Workload]) -> None:
    made = form(workloads, 3e-3, 2e-3, 1e-3)
    choose_all([made], TuneOptions(top=1))
    assert chosen(made) == [0]
    assert "not among the 1 heaviest" in made.left[workloads[1].key]
