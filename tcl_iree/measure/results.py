"""What building and running a candidate give: a value or a typed failure, never an exception."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FailureKind(StrEnum):
    """Why a candidate gave no time."""

    NO_MATCH = "no_match"  # the script is valid but changed nothing in the dispatch
    VERIFY_ERROR = "verify_error"  # the script is not valid IR
    COMPILE_ERROR = "compile_error"  # the script or the compiler gave up
    COMPILE_TIMEOUT = "compile_timeout"
    CRASH = "crash"  # the compiler or the kernel died, or hit its memory limit
    RUN_TIMEOUT = "run_timeout"
    RUN_ERROR = "run_error"  # the runtime refused the artifact or a call
    WRONG_RESULT = "wrong_result"


@dataclass(frozen=True)
class Failure:
    """A failed candidate: the kind, and the compiler's or runtime's own words."""

    kind: FailureKind
    detail: str


@dataclass(frozen=True)
class Artifact:
    """A compiled dispatch with its harness.

    Attributes:
        vmfb: the module for the IREE runtime.
        sha: content hash; equal artifacts need measuring only once.
        configured: hash of the dispatch after configuration, where a schedule has left its mark.
    """

    vmfb: bytes
    sha: str
    configured: str


@dataclass(frozen=True)
class BuildResult:
    """Outcome of one compilation: exactly one of `artifact` and `failure` is set.

    Attributes:
        static: what can be told of the code without running it, as JSON.
    """

    artifact: Artifact | None
    failure: Failure | None
    seconds: float
    cached: bool = False
    static: str | None = None


@dataclass(frozen=True)
class Timing:
    """Times of one kernel beside the interleaved reference, in seconds per dispatch.

    Attributes:
        p10, p50, p90: quantiles of the candidate over the rounds used.
        reference_p50: median of the reference over the same rounds.
        ratio: reference / candidate over the faster half of the slices; above 1 the candidate is faster.
        ratio_error: standard error of that ratio, relative to it; None after too few rounds.
        rounds: rounds used. retried: rounds thrown away because the machine was disturbed.
        calm: False if the machine never calmed down and disturbed rounds had to be used.
        stopped_early: True if it was so much slower than the best that it was not timed in full.
    """

    p10: float
    p50: float
    p90: float
    reference_p50: float
    ratio: float
    ratio_error: float | None
    rounds: int
    retried: int
    calm: bool
    stopped_early: bool


@dataclass(frozen=True)
class RunResult:
    """Outcome of one run: exactly one of `timing` and `failure` is set.

    Attributes:
        error: largest difference to the reference, in units of the tolerance (≤ 1 passes).
    """

    timing: Timing | None
    failure: Failure | None
    seconds: float
    error: float = 0.0
