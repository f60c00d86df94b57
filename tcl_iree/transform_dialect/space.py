"""The space of schedules of one workload on one target: all families that serve it, as one."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tcl_iree.target import Target
from tcl_iree.transform_dialect.families import FAMILIES, family_of
from tcl_iree.transform_dialect.family import Family
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.workload.model import Workload

# IREE's own pipelines with other tile sizes seldom win, and packing seldom does where memory order allows lanes anyway.
_CONFIG_WEIGHT = 0.15
_PACKED_BESIDE_DIRECT_WEIGHT = 0.4
_ATTEMPTS = 50
# Draws in a row without a legal schedule after which a family is given up.
_EMPTY = 3


class Space:
    """Samples, mutates and crosses schedules over every family that serves a workload.

    Args:
        without: a family that is left out where any other serves the workload.
    """

    def __init__(self, workload: Workload, target: Target, without: str = "") -> None:
        self.workload, self.target = workload, target
        serving = tuple(family for family in FAMILIES if not family.why_not(workload, target))
        self.families: tuple[Family, ...] = tuple(family for family in serving if family.name != without) or serving

    def samples(self, rng: Random) -> Iterator[Schedule]:
        """Distinct random schedules until the space seems used up."""
        seen: set[Schedule] = set()
        names = [family.name for family in self.families]
        weights = [1.0] * len(names)
        if "config" in names:
            weights[names.index("config")] = _CONFIG_WEIGHT
        if "packed" in names and not {"contraction", "filter_panels"}.isdisjoint(names):
            weights[names.index("packed")] = _PACKED_BESIDE_DIRECT_WEIGHT
        misses, empty = 0, [0] * len(names)
        while any(weights) and misses < _ATTEMPTS:
            (at,) = rng.choices(range(len(names)), weights)
            schedule = self.families[at].sample(self.workload, self.target, rng)
            if schedule is None:  # hardly any of its combinations are legal
                empty[at] += 1
                weights[at] = weights[at] if empty[at] < _EMPTY else 0.0
                continue
            empty[at] = 0
            if schedule in seen:
                misses += 1
                continue
            misses = 0
            seen.add(schedule)
            yield schedule

    def mutate(self, schedule: Schedule, rng: Random) -> Schedule:
        """A neighbour of a schedule, in its own family."""
        return family_of(schedule.family).mutate(schedule, self.workload, self.target, rng)

    def cross(self, one: Schedule, other: Schedule, rng: Random) -> Schedule:
        """A child of two schedules; of the first alone if they are of different families."""
        if one.family != other.family:
            return self.mutate(one, rng)
        return family_of(one.family).cross(one, other, self.workload, self.target, rng)

    def script(self, schedule: Schedule) -> str:
        """The script of a schedule."""
        return family_of(schedule.family).script(schedule, self.workload, self.target)
