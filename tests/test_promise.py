"""What dispatches may come to after a first look."""

from __future__ import annotations

import pytest

from tcl_iree.workflows.promise import Rates, Stand

FAST = [Stand(1, 1e-3, 1e8, 1e6, False)] * 4  # 100 GFLOPS, 1 GB/s, after a look


def copy(seconds: float) -> Stand:
    """One that moves bytes at 10 GB/s if it takes 0.1 ms."""
    return Stand(1, seconds, 0.0, 1e6, False)


def test_a_dispatch_that_had_no_trial_is_thought_to_come_near_the_others() -> None:
    slow = Stand(2, 50e-3, 1e8, 1e6, True)
    rates = Rates.of([*FAST, slow, copy(1e-4)])
    assert rates.flops == pytest.approx(1e11)
    assert rates.promise([slow]) == pytest.approx(2 * 1.5e-3)
    assert rates.promise([Stand(1, 1e-3, 1e8, 1e6, True)]) == pytest.approx(1e-3), "a good default counts"


def test_what_was_looked_at_is_taken_as_it_stands() -> None:
    """Hope would hide what one layout makes worse."""
    looked = Stand(1, 9e-3, 1e8, 1e6, False)
    assert Rates.of([*FAST, looked]).promise([looked]) == pytest.approx(9e-3)


def test_what_cannot_be_searched_stays_as_it_is() -> None:
    stuck = Stand(1, 50e-3, 1e8, 1e6, False)
    assert Rates.of([*FAST, stuck]).promise([stuck]) == pytest.approx(50e-3)
    assert Rates.of([]).promise([stuck]) == pytest.approx(50e-3)


def test_memory_bounds_what_has_no_arithmetic() -> None:
    moved = Stand(1, 1.0, 0.0, 1e8, True)
    rates = Rates.of([*FAST, *[copy(1e-4)] * 3])
    assert rates.bytes == pytest.approx(1e10)
    assert rates.promise([moved]) == pytest.approx(1.5 * 1e8 / rates.bytes)


def test_layouts_with_poor_defaults_are_not_judged_by_them() -> None:
    """The same convolutions: half searched, half at a default that one layout makes ten times slower."""
    rest = [Stand(1, 2e-3, 1e8, 1e6, True)] * 4
    poor = [Stand(1, 20e-3, 1e8, 1e6, True)] * 4
    gathers = [Stand(1, 1e-3, 0.0, 1e7, False)] * 4  # only the first layout has these
    rates = Rates.of([*FAST, *rest, *gathers, *FAST, *poor])
    assert rates.promise([*FAST, *poor]) < rates.promise([*FAST, *rest, *gathers])
