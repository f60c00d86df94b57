"""Which workload of a model to tune next: the one whose next round is thought to gain the whole model most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Before anything is known, a round is thought to take so much off a workload's time; what rounds really took off
# replaces half of that belief each time.
_HOPE = 0.3
_LEARNED = 0.5


@dataclass
class Task:
    """How one workload stands.

    Attributes:
        weight: times it occurs in one inference.
        seconds: of the fastest code so far.
        hope: share of its time that the next round is thought to take off.
        rounds: it had so far.
        open: whether there is anything left to try.
    """

    weight: float
    seconds: float
    hope: float = _HOPE
    rounds: int = 0
    open: bool = True

    @property
    def total(self) -> float:
        """Seconds of one inference."""
        return self.weight * self.seconds

    @property
    def gain(self) -> float:
        """Seconds of one inference that the next round is thought to save."""
        return self.total * self.hope


class TaskScheduler:
    """Deals rounds out to workloads.

    Every workload gets a round first, the heaviest before the others. Then rounds go where they are thought to gain
    most, and end when none is thought to gain anything worth its time.

    Args:
        tasks: weight, and seconds of the fastest code there is already, of each.
        enough: a round that saves less than this share of the whole is not worth it; 0 goes on until told to close.
    """

    def __init__(self, tasks: Sequence[tuple[float, float]], enough: float = 0.0) -> None:
        self.tasks = [Task(weight, seconds) for weight, seconds in tasks]
        self._enough = enough

    def next(self) -> int | None:
        """The position of the next task, None if nothing is left to gain."""
        waiting = [task for task in self.tasks if task.open]
        if not waiting:
            return None
        best = max(waiting, key=lambda task: (task.rounds == 0, task.gain))
        whole = sum(task.total for task in self.tasks)
        if best.rounds and best.gain < self._enough * whole:
            return None
        return next(index for index, task in enumerate(self.tasks) if task is best)

    def tell(self, position: int, seconds: float | None, more: bool = True) -> None:
        """Take note of a round.

        Args:
            seconds: of the fastest code it found, None if nothing worked.
            more: whether there is anything left to try.
        """
        task = self.tasks[position]
        saved = max(0.0, 1.0 - seconds / task.seconds) if seconds else 0.0
        task.hope += _LEARNED * (saved - task.hope)
        task.seconds = min(task.seconds, seconds or task.seconds)
        task.rounds += 1
        task.open = more
