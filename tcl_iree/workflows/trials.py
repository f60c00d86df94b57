"""Measure schedules of one workload and record every attempt."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tcl_iree.database import UNMEASURED, Database, ScheduleRecord, Trial, WorkloadRecord
from tcl_iree.errors import MeasureError
from tcl_iree.measure.builder import IREE_VERSION, Candidate
from tcl_iree.measure.expectation import DRAWS
from tcl_iree.measure.inputs import make_buffers, mismatch, to_float
from tcl_iree.measure.results import Artifact, BuildResult, Failure, RunResult
from tcl_iree.measure.runner import Runner
from tcl_iree.target import Target
from tcl_iree.workload.evaluate import CannotEvaluate, evaluate
from tcl_iree.workload.model import Workload

DEFAULT = ScheduleRecord("default")
# A ratio from disturbed rounds may flatter: what others are given up against is this share of it.
_DISTURBED = 0.8


@dataclass(frozen=True)
class ReferenceCheck:
    """Whether IREE's default code was confirmed by numpy.

    Attributes:
        status: `confirmed`, `wrong`, or `unchecked`.
    """

    status: str
    detail: str


class CandidateSource(Protocol):
    """Where built candidates come from: a `Builder`, or a file of candidates that were built elsewhere."""

    target: Target
    flags: tuple[str, ...]

    def build_default(self, workload: Workload) -> BuildResult:
        """IREE's own code for a workload."""
        ...

    def build_ahead(self, workload: Workload, libraries: Sequence[Candidate]) -> Iterator[BuildResult]:
        """Many candidates of one workload, in order, for a caller that runs each in turn."""
        ...


class TrialSession:
    """Builds, runs and records schedules of one workload on one target.

    The default is measured first and is the reference of everything after it.

    Raises:
        MeasureError: IREE's default for this workload cannot be built, run or trusted.
    """

    def __init__(self, workload: Workload, builder: CandidateSource, runner: Runner, database: Database) -> None:
        self._workload, self._builder, self._runner, self._database = workload, builder, runner, database
        self._flags = " ".join(builder.flags)
        self._best = 0.0
        self._reference: Artifact | None = None
        built = builder.build_default(workload)
        self._reference = built.artifact
        self.default = self._finish(DEFAULT, built)
        if not self._reference or self.default.status != "ok":
            reason = (self.default.detail.splitlines() or [""])[0]
            raise MeasureError(f"IREE's default for {workload.label} gives {self.default.status}: {reason}")
        self.check = check_reference(workload, self._reference, runner)
        if self.check.status == "wrong":
            raise MeasureError(f"IREE's default for {workload.label} is wrong: {self.check.detail}")

    @property
    def reference(self) -> Artifact:
        """IREE's default code, which every schedule is timed beside."""
        assert self._reference
        return self._reference

    def measure(self, schedules: Sequence[ScheduleRecord], origins: Mapping[str, str] | None = None) -> Iterator[Trial]:
        """Build schedules and run them one by one; yields each once it is recorded.

        Args:
            origins: how schedules were come by, by their hash.
        """
        origins = origins or {}
        libraries = [Candidate(schedule.script or "", schedule.entry) for schedule in schedules]
        for schedule, built in zip(schedules, self._builder.build_ahead(self._workload, libraries), strict=True):
            yield self._finish(schedule, built, origins.get(schedule.sha, ""))

    def _finish(self, schedule: ScheduleRecord, built: BuildResult, origin: str = "") -> Trial:
        known = self._measured_before(built.artifact) if built.artifact else None
        if known:
            trial = replace(
                known,
                uid=uuid.uuid4().hex,
                spec=str(self._builder.target),
                schedule=schedule.sha,
                build_seconds=built.seconds,
                run_seconds=0.0,
                measured=False,
                created=time.time(),
                origin=origin,
            )
        else:
            run = None
            if built.artifact and self._reference:
                run = self._runner.measure(self._workload, built.artifact, self._reference, self._best)
            trial = trial_of(self._workload, self._builder, schedule, built, self._reference, run, origin)
        self._best = max(self._best, (trial.ratio or 0.0) * (1.0 if trial.calm else _DISTURBED))
        self._database.add_trial(workload_record(self._workload), schedule, trial)
        return trial

    def _measured_before(self, artifact: Artifact) -> Trial | None:
        """An earlier trial of this group with the very same code, beside the very same default."""
        found = self._database.trials(
            workload=self._workload.key,
            target=self._builder.target.key,
            iree=IREE_VERSION,
            flags=self._flags,
            artifact=artifact.sha,
        )
        reference = self._reference.sha if self._reference else None
        usable = [trial for trial in found if trial.status == "ok" and trial.calm and not trial.stopped_early]
        return next((trial for trial in usable if trial.reference == reference), None)


def trial_of(
    workload: Workload,
    builder: CandidateSource,
    schedule: ScheduleRecord,
    built: BuildResult,
    reference: Artifact | None,
    run: RunResult | None,
    origin: str = "",
) -> Trial:
    """The record of one attempt; `unmeasured` if it was built but not run."""
    failure: Failure | None = built.failure or (run.failure if run else None)
    timing = run.timing if run else None
    return Trial(
        uid=uuid.uuid4().hex,
        workload=workload.key,
        target=builder.target.key,
        spec=str(builder.target),
        iree=IREE_VERSION,
        flags=" ".join(builder.flags),
        schedule=schedule.sha,
        status=failure.kind.value if failure else "ok" if run else UNMEASURED,
        detail=failure.detail if failure else "",
        artifact=built.artifact.sha if built.artifact else None,
        reference=reference.sha if reference else None,
        p10=timing.p10 if timing else None,
        p50=timing.p50 if timing else None,
        p90=timing.p90 if timing else None,
        reference_p50=timing.reference_p50 if timing else None,
        ratio=timing.ratio if timing else None,
        ratio_error=timing.ratio_error if timing else None,
        calm=timing.calm if timing else None,
        stopped_early=timing.stopped_early if timing else None,
        error=run.error if run else None,
        build_seconds=built.seconds,
        run_seconds=run.seconds if run else 0.0,
        measured=timing is not None,
        created=time.time(),
        static=built.static,
        hardware=builder.target.hardware.to_json(),
        origin=origin,
    )


def workload_record(workload: Workload) -> WorkloadRecord:
    """A workload as the database keeps it."""
    return WorkloadRecord(workload.key, workload.label, workload.payload, workload.flops, workload.bytes)


def check_reference(workload: Workload, reference: Artifact, runner: Runner) -> ReferenceCheck:
    """Compare IREE's default code with numpy on the first draw of inputs."""
    buffers = make_buffers(workload, DRAWS[0])
    exact = [to_float(array, binding.dtype) for array, binding in zip(buffers, workload.bindings, strict=True)]
    try:
        expected = evaluate(workload, exact)
    except CannotEvaluate as reason:
        return ReferenceCheck("unchecked", str(reason))
    actual = runner.outputs(workload, reference, DRAWS[0])
    if isinstance(actual, Failure):
        return ReferenceCheck("unchecked", f"it could not be run: {actual.kind}")
    for index, values in expected.items():
        dtype = workload.bindings[index].dtype
        error = mismatch(workload, dtype, values, to_float(actual[index], dtype))
        if not error <= 1.0:
            return ReferenceCheck("wrong", f"output {index} is {error:.3g} tolerances from numpy's")
    return ReferenceCheck("confirmed", "")
