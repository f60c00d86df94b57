"""Time contenders side by side: all stay ready, one at a time runs a slice of calls, round after round.

Each contender lives in a process of its own, so thread pools of one library do not spin while another is timed, and
who crashes harms nobody. The order is shuffled in every round, and before each slice there is a pause in which the
pool that ran last goes to sleep.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.contender import Contender, Running
from tcl_iree.errors import MeasureError
from tcl_iree.measure.exclusive import exclusive
from tcl_iree.measure.timing import fast_half
from tcl_iree.report.progress import Step, silent
from tcl_iree.target import Target
from tcl_iree.workflows.model_runs import agreement, depends_on_input

_SLICE_SECONDS = 0.05
# Pools of OpenMP and OpenBLAS spin for some milliseconds after their work.
_PAUSE_SECONDS = 0.03
_LEAST_ROUNDS = 5
_RESAMPLED = 300


@dataclass(frozen=True)
class Standing:
    """How one contender did.

    Attributes:
        about: what it is, as it says itself.
        difference: largest difference to the reference's outputs, relative to their size.
        slices: seconds per call, one figure a round.
    """

    about: str
    difference: float
    slices: tuple[float, ...]

    @property
    def median(self) -> float:
        """Of the slices."""
        return statistics.median(self.slices)

    @property
    def minimum(self) -> float:
        """Of the slices."""
        return min(self.slices)


@dataclass(frozen=True)
class Contest:
    """What came of it.

    Attributes:
        reference: whose outputs the others' were compared with.
        depends_on_input: whether its output moved with the input; if not, agreeing proves nothing.
        failed: who dropped out, and why.
    """

    reference: str
    depends_on_input: bool
    standings: dict[str, Standing]
    failed: dict[str, str]

    def ratio(self, name: str, to: str) -> tuple[float, float]:
        """One's time over another's in the same rounds, and the standard error of its logarithm.

        Over the faster half of the slices of each, since disturbance only ever adds time; the error is that of
        rounds drawn again and again with replacement.
        """
        rounds = list(zip(self.standings[name].slices, self.standings[to].slices, strict=True))
        rng = random.Random(0)
        again = [_log_ratio(rng.choices(rounds, k=len(rounds))) for _ in range(_RESAMPLED)]
        return math.exp(_log_ratio(rounds)), statistics.stdev(again)


def contest(
    contenders: Sequence[Contender],
    target: Target,
    draws: Sequence[Sequence[np.ndarray]],
    seconds: float,
    limit: float,
    directory: Path,
    say: Step = silent,
) -> Contest:
    """Set all contenders up, compare their outputs, and time them in turn.

    Args:
        contenders: the first that starts is the reference for outputs.
        target: whose cores and thread count all are given.
        draws: two draws of inputs.
        seconds: for each contender.
        limit: seconds a contender has to get ready.
        directory: what contenders print goes there.

    Raises:
        MeasureError: none of them starts.
    """
    with ExitStack() as stack:
        running: dict[str, Running] = {}
        failed: dict[str, str] = {}
        say("setting contenders up", total=len(contenders))
        for number, contender in enumerate(contenders):
            say(f"setting up {contender.name}")
            started = _start(contender, target, draws, directory / f"contender{number}.log", limit)
            if isinstance(started, Running):
                running[contender.name] = started
                stack.callback(started.close)
            else:
                failed[contender.name] = started
            say("set up", 1)
        if not running:
            raise MeasureError(f"no contender starts: {'; '.join(failed.values())}")
        reference, *_ = running
        wanted, differences = running[reference].outputs, {}
        for name in list(running):
            status, differences[name] = agreement(wanted, running[name].outputs)
            if status != "ok":
                failed[name] = status
                running.pop(name).close()
        say(f"timing {len(running)} contenders in turn")
        with exclusive():
            taken = _rounds(running, seconds, failed)
        standings = {
            name: Standing(running[name].about, differences[name], tuple(times)) for name, times in taken.items()
        }
        return Contest(reference, depends_on_input(wanted), standings, failed)


def _start(
    contender: Contender, target: Target, draws: Sequence[Sequence[np.ndarray]], log: Path, limit: float
) -> Running | str:
    """A contender, or whoever stands in for it; or why there is none."""
    try:
        return Running(contender, target, draws, log, limit)
    except MeasureError as error:
        if not contender.instead:
            return str(error)
        started = _start(contender.instead, target, draws, log, limit)
        if isinstance(started, Running):
            started.about += f" ({contender.name}: {error})"
            return started
        return f"{error}; {contender.instead.name}: {started}"


def _rounds(running: dict[str, Running], seconds: float, failed: dict[str, str]) -> dict[str, list[float]]:
    """Seconds per call of everyone in each round; who fails on the way is moved to `failed`."""
    calls: dict[str, int] = {}
    taken: dict[str, list[float]] = {name: [] for name in running}
    rng = random.Random(0)

    def ask(name: str) -> None:
        time.sleep(_PAUSE_SECONDS)
        try:
            if name not in calls:
                once = min(running[name].slice(1) for _ in range(3))
                calls[name] = math.ceil(_SLICE_SECONDS / once)
            taken[name].append(running[name].slice(calls[name]))
        except MeasureError as error:
            failed[name] = str(error)
            del taken[name]

    deadline = time.monotonic() + seconds * len(running)
    rounds = 0
    while taken and (rounds < _LEAST_ROUNDS or time.monotonic() < deadline):
        rounds += 1
        for name in rng.sample(list(taken), len(taken)):
            ask(name)
    return taken


def _log_ratio(rounds: Sequence[tuple[float, float]]) -> float:
    ones, others = zip(*rounds, strict=True)
    return fast_half(list(ones)) - fast_half(list(others))
