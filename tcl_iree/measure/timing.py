"""Time a kernel on a machine that others disturb.

Short slices of the reference and of the candidate alternate, R C R C ..., in rounds of some tens of
milliseconds. A round counts only if the reference ran at its calm speed in it; otherwise it is thrown
away and taken again. What is reported is the candidate's quantiles over the calm rounds, and its ratio
to the reference of the same rounds, which cancels whatever slowed both.

Why short slices: with two threads on two cores a stall of either one stalls the dispatch, and such stalls
last milliseconds. A long slice always catches some; of many short ones, most are clean and the median is too.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from tcl_iree.measure.results import Timing

# Disturbance only ever adds time, so what is typical of a kernel lies below the median of its slices.
_TYPICAL = 0.3

Slice = Callable[[int], float]
"""Runs a kernel so many times and returns the seconds."""


@dataclass(frozen=True)
class TimingPolicy:
    """How much time to spend on one candidate.

    Attributes:
        slice_seconds: aimed length of one slice; a kernel runs at least once in it.
        round_seconds: aimed length of one round; it holds at least three slices of each kernel.
        min_rounds, max_rounds: calm rounds to take.
        precision: stop between the two once the standard error of the ratio is below this.
        disturbed: a round whose reference is this much slower than its calm speed is disturbed.
        patience: seconds after which disturbed rounds are used after all.
        give_up_at: a candidate this many times slower than the best is timed in one round only.
        calibrate: False keeps every round (to show what calibration brings).
    """

    slice_seconds: float = 0.001
    round_seconds: float = 0.03
    min_rounds: int = 10
    max_rounds: int = 40
    precision: float = 0.005
    disturbed: float = 0.15
    patience: float = 5.0
    give_up_at: float = 4.0
    calibrate: bool = True


@dataclass(frozen=True)
class _Round:
    """Seconds per dispatch of the slices of one round."""

    reference: list[float]
    candidate: list[float]

    @property
    def reference_speed(self) -> float:
        return _quantile(self.reference, _TYPICAL)

    @property
    def ratio(self) -> float:
        return self.reference_speed / _quantile(self.candidate, _TYPICAL)


def time_kernel(
    reference: Slice,
    candidate: Slice,
    policy: TimingPolicy,
    floor: float | None = None,
    best_ratio: float = 0.0,
) -> tuple[Timing, float]:
    """Time `candidate` against `reference`.

    Args:
        floor: the reference's calm seconds per dispatch, from recent measurements on this machine.
        best_ratio: reference / best candidate so far; 0 if there is none.

    Returns:
        The timing, and the reference's seconds per dispatch over the rounds used.
    """
    reference_times, candidate_times = (_repeats(run, policy.slice_seconds) for run in (reference, candidate))

    def take_round() -> _Round:
        taken = _Round([], [])
        end = time.perf_counter() + policy.round_seconds
        while len(taken.candidate) < 3 or time.perf_counter() < end:
            taken.reference.append(reference(reference_times) / reference_times)
            taken.candidate.append(candidate(candidate_times) / candidate_times)
        return taken

    rounds: list[_Round] = []
    stopped_early = False
    deadline = time.monotonic() + policy.patience
    while True:
        rounds.append(take_round())
        stopped_early = best_ratio > 0 and rounds[-1].ratio * policy.give_up_at < best_ratio
        calm = _calm_rounds(rounds, policy, floor)
        if stopped_early or _precise(calm, policy):
            break
        if time.monotonic() > deadline and len(rounds) >= policy.min_rounds:
            break
    is_calm = stopped_early or len(calm) >= policy.min_rounds
    used = calm if is_calm and calm else rounds
    return _summary(used, len(rounds) - len(used), is_calm, stopped_early)


def _calm_rounds(rounds: list[_Round], policy: TimingPolicy, floor: float | None) -> list[_Round]:
    if not policy.calibrate:
        return rounds
    speeds = [taken.reference_speed for taken in rounds]
    limit = min([*speeds, *([floor] if floor else [])]) * (1 + policy.disturbed)
    return [taken for taken, speed in zip(rounds, speeds, strict=True) if speed <= limit]


def _precise(rounds: list[_Round], policy: TimingPolicy) -> bool:
    if len(rounds) < policy.min_rounds:
        return False
    if len(rounds) >= policy.max_rounds:
        return True
    ratios = [taken.ratio for taken in rounds]
    # Standard error of a median, from the interquartile range.
    return 0.93 * _relative_iqr(ratios) / len(ratios) ** 0.5 < policy.precision


def _repeats(run: Slice, slice_seconds: float) -> int:
    """Dispatches that fill one slice; also warms the kernel up."""
    run(1)
    times = 1
    while times < 100_000:
        seconds = min(run(times), run(times))
        if seconds >= 0.7 * slice_seconds:
            break
        times = max(times + 1, min(4 * times, round(times * slice_seconds / max(seconds, 1e-7))))
    return times


def _summary(rounds: list[_Round], retried: int, calm: bool, stopped_early: bool) -> tuple[Timing, float]:
    candidate = [seconds for taken in rounds for seconds in taken.candidate]
    reference = [seconds for taken in rounds for seconds in taken.reference]
    ratios = [taken.ratio for taken in rounds]
    timing = Timing(
        p10=_quantile(candidate, 0.1),
        p50=statistics.median(candidate),
        p90=_quantile(candidate, 0.9),
        reference_p50=statistics.median(reference),
        ratio=statistics.median(ratios),
        ratio_iqr=_relative_iqr(ratios),
        rounds=len(rounds),
        retried=retried,
        calm=calm,
        stopped_early=stopped_early,
    )
    return timing, statistics.median(taken.reference_speed for taken in rounds)


def _relative_iqr(values: list[float]) -> float:
    return (_quantile(values, 0.75) - _quantile(values, 0.25)) / statistics.median(values)


def _quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)
