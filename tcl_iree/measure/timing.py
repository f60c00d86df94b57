"""Time a kernel on a machine that others disturb.

Short slices of the reference and of the candidate alternate, R C R C ..., in rounds of some tens of
milliseconds. A round counts only if the reference ran near its calm speed in it; otherwise it is thrown
away and taken again. What is reported is the candidate's quantiles over the calm rounds, and its ratio
to the reference of the same rounds, which cancels whatever slowed both.

Disturbance only ever adds time, so the ratio is taken over the faster half of the slices. Slices come in
two lengths: one dispatch or a few (late wake-ups of a thread weigh more), and several times that (they weigh
less); both are alike for reference and candidate, and averaging them is steadier than either.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tcl_iree.measure.results import Timing

Slice = Callable[[int], float]
"""Runs a kernel so many times and returns the seconds."""

_GROUPS = 4


@dataclass(frozen=True)
class TimingPolicy:
    """How much time to spend on one candidate.

    Attributes:
        slice_seconds: aimed lengths of slices; a kernel runs at least once in each.
        round_seconds: aimed length of one round; it holds at least one slice of each kernel and length.
        min_rounds, max_rounds: calm rounds to take.
        precision: stop between the two once the standard error of the ratio is below this.
        disturbed: a round whose reference is this much slower than its calm speed is disturbed.
        patience: seconds after which rounds are used as they are, few or disturbed.
        give_up_at: a candidate this many times slower than the best is timed in one round only.
        slow_reference: a reference that takes longer than this is run once or twice, and not in every round.
        calibrate: False keeps every round (to show what calibration brings).

    With several threads use `several_threads()`: their rounds spread widely even on a calm machine.
    """

    slice_seconds: tuple[float, ...] = (0.001, 0.005)
    round_seconds: float = 0.03
    min_rounds: int = 8
    max_rounds: int = 80
    precision: float = 0.004
    disturbed: float = 0.08
    patience: float = 5.0
    give_up_at: float = 4.0
    slow_reference: float = 0.1
    calibrate: bool = True

    def several_threads(self) -> TimingPolicy:
        """The same for dispatches that run on several threads, whose rounds spread widely by themselves."""
        return replace(self, disturbed=max(self.disturbed, 0.3))


@dataclass(frozen=True)
class _Round:
    """Seconds per dispatch of the slices of one round, one list for each slice length."""

    reference: list[list[float]]
    candidate: list[list[float]]

    @property
    def reference_speed(self) -> float:
        return _quantile(self.reference[0], 0.3)


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
        The timing, and how fast the reference was at its calmest.
    """
    held = _slow(reference, policy, floor)
    lengths = _slice_lengths((reference, candidate) if held is None else (_known(held), candidate), policy)

    def take_round() -> _Round:
        taken = _Round([[] for _ in lengths], [[] for _ in lengths])
        end = time.perf_counter() + policy.round_seconds
        while not taken.candidate[0] or time.perf_counter() < end:
            for index, (reference_times, candidate_times) in enumerate(lengths):
                seconds = reference(reference_times) / reference_times if held is None else held
                taken.reference[index].append(seconds)
                taken.candidate[index].append(candidate(candidate_times) / candidate_times)
        return taken

    rounds: list[_Round] = []
    deadline = time.monotonic() + policy.patience
    while True:
        rounds.append(take_round())
        calm = _calm_rounds(rounds, policy, floor)
        judged = calm or rounds[1:]  # one disturbed round alone is not enough
        stopped_early = bool(judged) and math.exp(_log_ratio(judged)) * policy.give_up_at < best_ratio
        if stopped_early or _precise(calm, policy):
            break
        if time.monotonic() > deadline and len(rounds) >= (3 if held is None else 1):
            break
    is_calm = _enough(calm, rounds, 1 if stopped_early else policy.min_rounds)
    used = calm if is_calm else rounds
    return _summary(used, len(rounds) - len(used), is_calm, stopped_early)


def time_together(
    reference: Slice, candidates: Sequence[Slice], policy: TimingPolicy, floor: float | None = None
) -> tuple[list[Timing], float]:
    """Time several candidates and the reference in the same rounds, R A B C ..., so that they can be compared.

    Args:
        floor: the reference's calm seconds per dispatch, from recent measurements on this machine.

    Returns:
        One timing for each candidate, and how fast the reference was at its calmest.
    """
    lengths = _slice_lengths((reference, *candidates), policy)
    rounds: list[list[_Round]] = [[] for _ in candidates]

    def take_round() -> None:
        shared: list[list[float]] = [[] for _ in lengths]
        taken = [_Round(shared, [[] for _ in lengths]) for _ in candidates]
        end = time.perf_counter() + policy.round_seconds
        while not shared[0] or time.perf_counter() < end:
            for index, (reference_times, *candidate_times) in enumerate(lengths):
                shared[index].append(reference(reference_times) / reference_times)
                for entry, candidate, times in zip(taken, candidates, candidate_times, strict=True):
                    entry.candidate[index].append(candidate(times) / times)
        for kept, entry in zip(rounds, taken, strict=True):
            kept.append(entry)

    deadline = time.monotonic() + policy.patience
    while True:
        take_round()
        calm = [_calm_rounds(taken, policy, floor) for taken in rounds]
        if all(_precise(taken, policy) for taken in calm):
            break
        if time.monotonic() > deadline and len(rounds[0]) >= 3:
            break
    is_calm = _enough(calm[0], rounds[0], policy.min_rounds)
    used = calm if is_calm else rounds
    summaries = [_summary(taken, len(rounds[0]) - len(taken), is_calm, False) for taken in used]
    return [timing for timing, _ in summaries], summaries[0][1]


def _calm_rounds(rounds: list[_Round], policy: TimingPolicy, floor: float | None) -> list[_Round]:
    if not policy.calibrate:
        return rounds
    speeds = [taken.reference_speed for taken in rounds]
    limit = min([*speeds, *([floor] if floor else [])]) * (1 + policy.disturbed)
    return [taken for taken, speed in zip(rounds, speeds, strict=True) if speed <= limit]


def _enough(calm: list[_Round], rounds: list[_Round], wanted: int) -> bool:
    """Whether the calm rounds tell the speed: as many as wanted, or all there are of a slow kernel."""
    return len(calm) >= wanted or len(calm) == len(rounds)


def _precise(rounds: list[_Round], policy: TimingPolicy) -> bool:
    if len(rounds) < policy.min_rounds:
        return False
    return len(rounds) >= policy.max_rounds or _standard_error(rounds) < policy.precision


def _log_ratio(rounds: Sequence[_Round]) -> float:
    """Logarithm of reference / candidate: over the faster half of the slices, the mean over slice lengths."""
    found = []
    for index in range(len(rounds[0].reference)):
        reference = [seconds for taken in rounds for seconds in taken.reference[index]]
        candidate = [seconds for taken in rounds for seconds in taken.candidate[index]]
        found.append(fast_half(reference) - fast_half(candidate))
    return statistics.fmean(found)


def fast_half(slices: list[float]) -> float:
    """Mean logarithm of the faster half: disturbance only ever adds time."""
    kept = sorted(slices)[: max(1, len(slices) // 2)]
    return statistics.fmean(math.log(seconds) for seconds in kept)


def _standard_error(rounds: Sequence[_Round]) -> float:
    """Standard error of the log ratio, from groups of rounds that are spread over the whole measurement."""
    if len(rounds) < 2 * _GROUPS:
        return math.inf
    return statistics.stdev(_log_ratio(rounds[first::_GROUPS]) for first in range(_GROUPS)) / math.sqrt(_GROUPS)


def _slice_lengths(kernels: Sequence[Slice], policy: TimingPolicy) -> list[tuple[int, ...]]:
    """Dispatches per slice of each kernel, for each distinct slice length."""
    found: list[tuple[int, ...]] = []
    for seconds in policy.slice_seconds:
        if found and set(found[-1]) == {1}:  # one dispatch of each already fills the shorter slice
            break
        found.append(tuple(_repeats(kernel, seconds) for kernel in kernels))
    return list(dict.fromkeys(found))


def _slow(reference: Slice, policy: TimingPolicy, floor: float | None) -> float | None:
    """Seconds of a reference whose rounds would cost far more than they tell; None if it is not that slow.

    It is run once, and again if that was disturbed.
    """
    if floor is not None and floor <= policy.slow_reference:
        return None
    seconds = reference(1)
    if seconds <= policy.slow_reference:
        return None
    if floor is not None and seconds > floor * (1 + policy.disturbed):
        seconds = min(seconds, reference(1))
    return seconds


def _known(seconds: float) -> Slice:
    """A kernel whose time is known, not to be run for it."""
    return lambda times: times * seconds


def _repeats(run: Slice, slice_seconds: float) -> int:
    """Dispatches that fill one slice; also warms the kernel up."""
    if run(1) > 50 * slice_seconds:
        return 1
    times = 1
    while times < 100_000:
        seconds = min(run(times), run(times))
        if seconds >= 0.7 * slice_seconds:
            break
        times = max(times + 1, min(4 * times, round(times * slice_seconds / max(seconds, 1e-7))))
    return times


def _summary(rounds: list[_Round], retried: int, calm: bool, stopped_early: bool) -> tuple[Timing, float]:
    candidate = [seconds for taken in rounds for slices in taken.candidate for seconds in slices]
    reference = [seconds for taken in rounds for slices in taken.reference for seconds in slices]
    error = _standard_error(rounds)
    timing = Timing(
        p10=_quantile(candidate, 0.1),
        p50=statistics.median(candidate),
        p90=_quantile(candidate, 0.9),
        reference_p50=statistics.median(reference),
        ratio=math.exp(_log_ratio(rounds)),
        ratio_error=error if math.isfinite(error) else None,
        rounds=len(rounds),
        retried=retried,
        calm=calm,
        stopped_early=stopped_early,
    )
    return timing, _quantile([taken.reference_speed for taken in rounds], 0.1)


def _quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)
