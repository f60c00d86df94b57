"""Groups with times that nobody measured, so that learning can be tested in seconds."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
from conftest import workload_of
from shapes import contraction

from tcl_iree.learning.groups import Group
from tcl_iree.target import Target
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.space import Space

SIZES = [(48, 64, 80), (64, 96, 40), (33, 70, 64), (96, 48, 56)]
PROGRAMS = 24
PLATFORM = Target.parse("cpu:avx2,threads=1")


def made_up_seconds(schedule: Schedule) -> float:
    """A time that follows from the decisions, so that it can be learned; no claim about any machine."""
    sizes = [math.log2(max(1, value)) for _, value in schedule.decisions if type(value) is int]
    return 1e-3 * (1.0 + abs(sum(sizes) / max(1, len(sizes)) - 3.0) + (schedule.family == "config"))


def made_up_groups(
    folder: Path, target: Target, seconds: Callable[[Schedule], float] = made_up_seconds, programs: int = PROGRAMS
) -> list[Group]:
    """One group for each of a few contractions."""
    made = []
    for seed, (m, n, k) in enumerate(SIZES):
        workload = workload_of(contraction({"m": m, "n": n, "k": k}), folder, target)
        schedules = list(islice(Space(workload, target).samples(Random(seed)), programs))
        times = [4e-3, *(seconds(schedule) for schedule in schedules)]
        times[7] = float("nan")  # one that failed
        made.append(Group(workload, target, target.key, (None, *schedules), np.array(times)))
    return made
