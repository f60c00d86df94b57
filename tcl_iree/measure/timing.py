"""Time a kernel on a machine that others disturb.

Slices of the reference and of the candidate alternate: R C R C R. A candidate slice counts only if the
reference slices on both its sides ran at the reference's calm speed; otherwise it is thrown away and
taken again. What is reported is the candidate's quantiles, and its ratio to the neighbouring reference
slices, which cancels whatever slowed both.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tcl_iree.measure.results import Timing

Slice = Callable[[int], float]
"""Runs a kernel so many times and returns the seconds."""


@dataclass(frozen=True)
class TimingPolicy:
    """How much time to spend on one candidate.

    Attributes:
        slice_seconds: aimed length of one slice; a kernel runs at least once in it.
        min_slices, max_slices: calm candidate slices to take.
        spread: stop between the two once the ratio's standard error is below this.
        disturbed: a reference slice this much above its floor marks its surroundings as disturbed.
        patience: seconds to wait in all for calm before disturbed slices are used after all.
        give_up_at: a candidate this many times slower than the best is timed in one slice only.
        calibrate: False times without looking at the reference (to show what calibration brings).
    """

    slice_seconds: float = 0.008
    min_slices: int = 7
    max_slices: int = 25
    spread: float = 0.006
    disturbed: float = 0.10
    patience: float = 6.0
    give_up_at: float = 4.0
    calibrate: bool = True


@dataclass
class _Samples:
    """Candidate slices, each with the reference slices before and after it."""

    candidate: list[float] = field(default_factory=list)
    reference: list[float] = field(default_factory=list)

    def add(self, before: float, taken: float, after: float) -> None:
        self.candidate.append(taken)
        self.reference.append((before + after) / 2)

    @property
    def ratios(self) -> list[float]:
        return [reference / candidate for reference, candidate in zip(self.reference, self.candidate, strict=True)]


def time_kernel(
    reference: Slice,
    candidate: Slice,
    policy: TimingPolicy,
    floor: float | None = None,
    best_ratio: float = 0.0,
) -> tuple[Timing, float]:
    """Time `candidate` against `reference`.

    Args:
        floor: the reference's calm seconds per dispatch, from earlier measurements on this machine.
        best_ratio: reference / best candidate so far; 0 if there is none.

    Returns:
        The timing, and the floor seen in this measurement.
    """
    reference_times = _repeats(reference, policy.slice_seconds)
    candidate_times = _repeats(candidate, policy.slice_seconds)
    floor = min(floor or float("inf"), min(reference(reference_times) / reference_times for _ in range(3)))
    calm, disturbed = _Samples(), _Samples()
    deadline = time.monotonic() + policy.patience
    seen: list[float] = []

    def reference_slice() -> float:
        seconds = reference(reference_times) / reference_times
        seen.append(seconds)
        return seconds

    def is_calm(seconds: float) -> bool:
        return not policy.calibrate or seconds <= floor * (1 + policy.disturbed)

    before = reference_slice()
    stopped_early = False
    while not _enough(calm, policy):
        if len(calm.candidate) + len(disturbed.candidate) >= policy.max_slices and time.monotonic() > deadline:
            break
        if not is_calm(before) and time.monotonic() < deadline:
            time.sleep(0.02)  # let the disturbance pass
            before = reference_slice()
            floor = min(floor, before)
            continue
        taken = candidate(candidate_times) / candidate_times
        after = reference_slice()
        floor = min(floor, after)
        (calm if is_calm(before) and is_calm(after) else disturbed).add(before, taken, after)
        ratio = (before + after) / 2 / taken
        if best_ratio and ratio * policy.give_up_at < best_ratio:
            stopped_early = True
            break
        before = after
    is_quiet = len(calm.candidate) >= policy.min_slices or (stopped_early and bool(calm.candidate))
    used = calm if is_quiet else _Samples(calm.candidate + disturbed.candidate, calm.reference + disturbed.reference)
    retried = len(disturbed.candidate) if is_quiet else 0
    return _summary(used, retried, is_quiet, stopped_early), _quantile(seen, 0.1)


def _repeats(run: Slice, slice_seconds: float) -> int:
    """Dispatches that fill one slice; also warms the kernel up."""
    run(1)
    once = min(run(1), run(1))
    times = max(1, round(slice_seconds / max(once, 1e-7)))
    if times > 1:  # one dispatch alone is mostly overhead when it is short
        times = max(1, round(times * slice_seconds / max(run(times), 1e-7)))
    return min(times, 100_000)


def _enough(samples: _Samples, policy: TimingPolicy) -> bool:
    count = len(samples.candidate)
    if count < policy.min_slices:
        return False
    if count >= policy.max_slices:
        return True
    ratios = samples.ratios
    iqr = _quantile(ratios, 0.75) - _quantile(ratios, 0.25)
    # Standard error of a median, from the interquartile range.
    return 0.93 * iqr / statistics.median(ratios) / count**0.5 < policy.spread


def _summary(samples: _Samples, retried: int, calm: bool, stopped_early: bool) -> Timing:
    ratios = samples.ratios
    ratio = statistics.median(ratios)
    return Timing(
        p10=_quantile(samples.candidate, 0.1),
        p50=statistics.median(samples.candidate),
        p90=_quantile(samples.candidate, 0.9),
        reference_p50=statistics.median(samples.reference),
        ratio=ratio,
        ratio_iqr=(_quantile(ratios, 0.75) - _quantile(ratios, 0.25)) / ratio,
        slices=len(ratios),
        retried=retried,
        calm=calm,
        stopped_early=stopped_early,
    )


def _quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)
