"""What every schedule family offers: its decisions, its rules, and the script of a schedule."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from random import Random

from tcl_iree.errors import ScheduleError
from tcl_iree.target import Target
from tcl_iree.transform_dialect.schedule import Schedule, Value
from tcl_iree.transform_dialect.script import Script, read_schedule
from tcl_iree.workload.model import Workload

_ATTEMPTS = 400


@dataclass(frozen=True)
class Decision:
    """One choice a family leaves open for a workload."""

    name: str
    choices: tuple[Value, ...]


class Family(ABC):
    """A set of schedules of one structure.

    A subclass says which decisions there are for a workload, which combinations are illegal and why, and how to
    write a legal one as a script. Sampling, enumerating, mutating, crossing and reading back follow from these.
    """

    name: str

    @abstractmethod
    def why_not(self, workload: Workload, target: Target) -> str | None:
        """Why this family cannot serve the workload on this target, or None if it can."""

    @abstractmethod
    def decisions(self, workload: Workload, target: Target) -> tuple[Decision, ...]:
        """What is to be decided, each with its choices."""

    @abstractmethod
    def why_illegal(self, schedule: Schedule, workload: Workload, target: Target) -> str | None:
        """Which rule a combination of choices breaks, or None if it is legal."""

    @abstractmethod
    def emit(self, script: Script, schedule: Schedule, workload: Workload, target: Target) -> None:
        """Write a legal schedule's transform ops."""

    def script(self, schedule: Schedule, workload: Workload, target: Target) -> str:
        """The script of a schedule.

        Raises:
            ScheduleError: the schedule is illegal for this workload.
        """
        if reason := self.why_not(workload, target) or self.why_illegal(schedule, workload, target):
            raise ScheduleError(f"{schedule} does not fit {workload.label}: {reason}")
        script = Script(schedule)
        self.emit(script, schedule, workload, target)
        return script.text()

    def parse(self, text: str, workload: Workload, target: Target) -> Schedule:
        """The schedule a script was built from.

        Raises:
            ScheduleError: the text is no script of this family, or was changed since.
        """
        schedule = read_schedule(text)
        if schedule.family != self.name:
            raise ScheduleError(f"the script is of family {schedule.family!r}, not {self.name!r}")
        if self.script(schedule, workload, target).strip() != text.strip():
            raise ScheduleError("the script's ops are not those its own decisions give; it was edited or is older")
        return schedule

    def size(self, workload: Workload, target: Target) -> int:
        """Number of combinations, illegal ones included."""
        return math.prod(len(decision.choices) for decision in self.decisions(workload, target))

    def enumerate(self, workload: Workload, target: Target) -> Iterator[Schedule]:
        """Every legal schedule."""
        decisions = _decisions(self, workload, target)
        for values in product(*(decision.choices for decision in decisions)):
            schedule = self._schedule(decisions, values)
            if not self.why_illegal(schedule, workload, target):
                yield schedule

    def sample(self, workload: Workload, target: Target, rng: Random) -> Schedule | None:
        """A random legal schedule, or None if none was found."""
        decisions = _decisions(self, workload, target)
        for _ in range(_ATTEMPTS):
            schedule = self._schedule(decisions, [rng.choice(decision.choices) for decision in decisions])
            if not self.why_illegal(schedule, workload, target):
                return schedule
        return None

    def mutate(self, schedule: Schedule, workload: Workload, target: Target, rng: Random) -> Schedule:
        """A legal neighbour: one decision changed, to a choice nearby more often than far away."""
        decisions = _decisions(self, workload, target)
        open_ones = [index for index, decision in enumerate(decisions) if len(decision.choices) > 1]
        for _ in range(_ATTEMPTS if open_ones else 0):
            index = rng.choice(open_ones)
            values = [schedule[decision.name] for decision in decisions]
            choices = decisions[index].choices
            values[index] = _another(choices, values[index], rng)
            mutant = self._schedule(decisions, values)
            if not self.why_illegal(mutant, workload, target):
                return mutant
        return schedule

    def cross(self, one: Schedule, other: Schedule, workload: Workload, target: Target, rng: Random) -> Schedule:
        """A legal child that takes each decision from either parent."""
        decisions = _decisions(self, workload, target)
        for _ in range(_ATTEMPTS):
            values = [rng.choice((one, other))[decision.name] for decision in decisions]
            child = self._schedule(decisions, values)
            if not self.why_illegal(child, workload, target):
                return child
        return one

    def nearest(self, schedule: Schedule, workload: Workload, target: Target) -> Schedule | None:
        """A schedule of another workload as this one can have it: each decision as near as there is a choice.

        None if that is illegal, or the schedule decides other things.
        """
        given = dict(schedule.decisions)
        decisions = _decisions(self, workload, target)
        if set(given) != {decision.name for decision in decisions}:
            return None
        values = [min(decision.choices, key=partial(_apart, given[decision.name])) for decision in decisions]
        found = self._schedule(decisions, values)
        return None if self.why_illegal(found, workload, target) else found

    def _schedule(self, decisions: tuple[Decision, ...], values: object) -> Schedule:
        assert isinstance(values, list | tuple)
        names = (decision.name for decision in decisions)
        return Schedule(self.name, tuple(zip(names, values, strict=True)))


@lru_cache(maxsize=1024)
def _decisions(family: Family, workload: Workload, target: Target) -> tuple[Decision, ...]:
    """A search samples thousands of schedules of one workload."""
    return family.decisions(workload, target)


def _apart(one: Value, other: Value) -> float:
    """How different two values of a decision are: sizes by their ratio, anything else only by being another."""
    if one == other:
        return 0.0
    if isinstance(one, bool | str) or isinstance(other, bool | str):
        return math.inf
    ones, others = ((value if isinstance(value, tuple) else (value,)) for value in (one, other))
    if len(ones) != len(others):
        return math.inf
    return sum(abs(math.log2((1 + a) / (1 + b))) for a, b in zip(ones, others, strict=True))


def _another(choices: tuple[Value, ...], value: Value, rng: Random) -> Value:
    """Another choice; half the time a direct neighbour, since choices are listed in order."""
    if value in choices and rng.random() < 0.5:
        at = choices.index(value)
        near = [choices[index] for index in (at - 1, at + 1) if 0 <= index < len(choices)]
        return rng.choice(near)
    return rng.choice([choice for choice in choices if choice != value])
