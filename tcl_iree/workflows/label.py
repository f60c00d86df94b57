"""Labels for chosen programs: draw a pool, measure some of it, and hand these back as groups to learn from."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from random import Random

from tcl_iree.database import Database, Trial
from tcl_iree.errors import MeasureError
from tcl_iree.frontend import Dispatch
from tcl_iree.learning.groups import Group, load_groups
from tcl_iree.measure.builder import Builder
from tcl_iree.measure.runner import Runner
from tcl_iree.report.progress import Step
from tcl_iree.search.given import Given
from tcl_iree.target import Target
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workflows.collect import LABELLING
from tcl_iree.workflows.workload_search import WorkloadSearch
from tcl_iree.workload.model import Workload


@dataclass(frozen=True)
class Labelled:
    """What came of measuring.

    Attributes:
        groups: everything that was asked for and could be measured.
        measured: programs measured in this run; `known` are those that the database had already.
        left: workloads that were left out, and why.
    """

    groups: tuple[Group, ...]
    measured: int
    known: int
    left: dict[str, str]


def draw_pool(workloads: Iterable[Workload], target: Target, each: int, seed: int) -> list[Group]:
    """Random schedules of workloads, `each` at most; workloads that no family serves are left out."""
    made = []
    for workload in workloads:
        found = list(islice(Space(workload, target).samples(Random(f"{seed} {workload.key} pool")), each))
        if found:
            made.append(Group.unmeasured(workload, target, found))
    return made


def measure_programs(
    chosen: Sequence[Group], target: Target, flags: Sequence[str], database: Database, longest: float, say: Step
) -> Labelled:
    """Measure every program of groups beside IREE's default; what the database has is not measured again.

    Args:
        longest: leave out workloads whose default takes more seconds than this.
    """
    trials: list[Trial] = []
    measured = known = 0
    left: dict[str, str] = {}
    records = database.schedules()
    say("measuring", total=sum(len(group) - 1 for group in chosen))
    with Builder(target, flags) as builder, Runner(target, LABELLING) as runner:
        for group in chosen:
            label = group.workload.label
            say(f"measuring {label}")
            schedules = [entry for entry in group.candidates if isinstance(entry, Schedule)]
            dispatch = Dispatch(group.workload, 1, ())
            strategy = partial(Given, schedules=schedules)
            try:
                search = WorkloadSearch(dispatch, builder, runner, database, records, strategy, seed=0)
            except MeasureError as error:
                left[label] = str(error)
                continue
            if search.default_seconds > longest:
                left[label] = f"IREE's default takes {search.default_seconds:.2g} s"
                continue
            trials.append(search.default)
            since = time.time()
            for trial in search.step(len(schedules)):
                trials.append(trial)
                measured += trial.created >= since
                known += trial.created < since
                say(f"measured {label}: {measured} new programs, {known} known", 1)
    if not trials:
        raise MeasureError(f"no workload could be measured on {target}: {next(iter(left.values()), 'there is none')}")
    return Labelled(tuple(load_groups(database, only=trials)), measured, known, left)
