"""Build schedules where their device is missing: code, what can be told of it, and records marked `unmeasured`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random

from tcl_iree.database import Database, ScheduleRecord
from tcl_iree.errors import MeasureError
from tcl_iree.measure.builder import Builder, Candidate
from tcl_iree.transform_dialect.names import ENTRY
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workflows.jobs import Job
from tcl_iree.workflows.trials import DEFAULT, trial_of, workload_record
from tcl_iree.workload.model import Workload


def sample_schedules(workload: Workload, builder: Builder, count: int, seed: int) -> list[ScheduleRecord]:
    """Up to `count` random schedules of a workload, with their scripts."""
    space = Space(workload, builder.target)
    found = islice(space.samples(Random(seed)), count)
    return [ScheduleRecord(entry.family, entry.plain, space.script(entry), ENTRY) for entry in found]


def build_unmeasured(
    workload: Workload, schedules: Sequence[ScheduleRecord], builder: Builder, database: Database
) -> Iterator[Job]:
    """Build IREE's default and each schedule, and record all of them; yields those that could be built.

    For CUDA the builder also runs `ptxas`, whose figures are kept with the record and the job.

    Raises:
        MeasureError: IREE's default cannot be built.
    """
    default = builder.build_default(workload)
    if not default.artifact:
        assert default.failure
        raise MeasureError(f"IREE's default for {workload.label} cannot be built: {default.failure.detail}")
    candidates = [Candidate(schedule.script or "", schedule.entry) for schedule in schedules]
    built = [default, *builder.build_many(workload, candidates)]
    for schedule, result in zip([DEFAULT, *schedules], built, strict=True):
        trial = trial_of(workload, builder, schedule, result, default.artifact, None)
        database.add_trial(workload_record(workload), schedule, trial)
        if result.artifact and schedule is not DEFAULT:
            yield Job(workload, schedule, result, default)
