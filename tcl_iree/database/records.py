"""The rows of the database as values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tcl_iree.transform_dialect.names import ENTRY

# A trial's status where the code was built but no device was there to run it.
UNMEASURED = "unmeasured"


@dataclass(frozen=True)
class WorkloadRecord:
    """A workload as stored: enough to build and run it again anywhere."""

    key: str
    label: str
    payload: str
    flops: int
    bytes: int


@dataclass(frozen=True)
class ScheduleRecord:
    """A schedule as stored.

    Attributes:
        family: the family it belongs to; `script` for scripts brought as text, `default` for IREE's own code.
        decisions: the family's decisions, from which the script is made again; empty for plain scripts.
        script: the text; None where family and decisions say it all.
        entry: the named sequence to start at.
    """

    family: str
    decisions: dict[str, Any] = field(default_factory=dict)
    script: str | None = None
    entry: str = ENTRY

    @property
    def sha(self) -> str:
        """Content hash, the schedule's name in the database."""
        return hashlib.sha256(
            "\0".join([self.family, self.decisions_json, self.script or "", self.entry]).encode()
        ).hexdigest()

    @property
    def decisions_json(self) -> str:
        """Decisions in one canonical text."""
        return json.dumps(self.decisions, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class Trial:
    """One attempt to build and run a schedule, whatever came of it.

    Attributes:
        uid: unique over all databases, so that merging never doubles a trial.
        target: the target's key; `spec` is how users write that target.
        flags: compile flags beyond the target's own.
        status: `ok`, a failure kind, or `unmeasured`: it was built where its device is missing.
        ratio: time of IREE's default, interleaved, over this one's; the label to learn from.
        artifact, reference: content hashes of the code that was timed and of IREE's default beside it.
        measured: False where an equal artifact's time was reused.
        created: seconds since the epoch.
        static: what can be told of the code without running it (registers, spills, shared memory), as JSON.
        hardware: the figures of the machine's hardware that schedules and cost models see, as JSON.
        origin: how the schedule was come by: `random`, `evolved`, or empty where that is not known.
    """

    uid: str
    workload: str
    target: str
    spec: str
    iree: str
    flags: str
    schedule: str
    status: str
    detail: str
    artifact: str | None
    reference: str | None
    p10: float | None
    p50: float | None
    p90: float | None
    reference_p50: float | None
    ratio: float | None
    ratio_error: float | None
    calm: bool | None
    stopped_early: bool | None
    error: float | None
    build_seconds: float
    run_seconds: float
    measured: bool
    created: float
    static: str | None = None
    hardware: str | None = None
    origin: str = ""


def usual_default(trials: Sequence[Trial]) -> float:
    """Seconds of IREE's default as trials of one group found it: the middle of undisturbed ones, if there are any."""
    timed = [trial for trial in trials if trial.reference_p50]
    calm = [trial for trial in timed if trial.calm] or timed
    return median(trial.reference_p50 or 0.0 for trial in calm) if calm else 0.0
