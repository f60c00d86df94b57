"""What is known of one dispatch, as values: what was tried, what failed, what a cost model saw, and what mattered."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MeasuredWorkload:
    """A workload in the database.

    Attributes:
        tried: schedules tried for it on one target.
        best: IREE's default's time over that of the fastest; None if nothing worked.
    """

    key: str
    label: str
    tried: int
    best: float | None


@dataclass(frozen=True)
class ExplainedSchedule:
    """A schedule that worked.

    Attributes:
        ratio: time of IREE's default over its time; `error` is the standard error of that, relative to it.
        rank: among all that worked, by time, from 1.
        predicted: its rank among them by the cost model; None where the model was not asked.
    """

    family: str
    schedule: str
    ratio: float
    error: float | None
    rank: int
    predicted: int | None


@dataclass(frozen=True)
class FamilyOutcome:
    """What came of a family's schedules: how many ended how, and the best ratio."""

    family: str
    tried: int
    outcomes: dict[str, int]
    best: float | None


@dataclass(frozen=True)
class FailureGroup:
    """Schedules that failed alike, with the words of the compiler or runtime for one of them."""

    kind: str
    count: int
    schedule: str
    detail: str


@dataclass(frozen=True)
class TokenRow:
    """One row of the sequence a cost model reads.

    Attributes:
        part: `target and workload` in front, a `step` of the script, or what that `leaves`.
        size: a step's own number, and `extent` the trip count of the loop it is for; None elsewhere.
        numbers: as the model gets them, scaled.
    """

    part: str
    kind: str
    role: str
    size: int | None
    extent: int | None
    numbers: tuple[float, ...]


@dataclass(frozen=True)
class DecisionValue:
    """One value of a decision: schedules that worked with it, and the best ratio among them."""

    value: str
    right: int
    best: float


@dataclass(frozen=True)
class DecisionEffect:
    """One decision of the best family, its values best first.

    Attributes:
        spread: the best ratio of the best value over that of the worst.
    """

    name: str
    spread: float
    values: tuple[DecisionValue, ...]


@dataclass(frozen=True)
class ModelView:
    """What a cost model makes of the schedules that worked.

    Attributes:
        model: its name.
        accuracy: share of pairs it puts in the right order.
        tokens: the winner as the model reads it.
    """

    model: str
    accuracy: float
    tokens: tuple[TokenRow, ...]


@dataclass(frozen=True)
class Explanation:
    """All of it.

    Attributes:
        flags: compile flags beyond the target's own, which the trials share.
        default_seconds: time of IREE's default.
        top: the fastest schedules.
        decisions: of the winner's family, those with most effect first.
        view: None where there is no model to ask; `notes` say why.
    """

    key: str
    label: str
    target: str
    iree: str
    flags: str
    default_seconds: float | None
    tried: int
    right: int
    top: tuple[ExplainedSchedule, ...]
    families: tuple[FamilyOutcome, ...]
    failures: tuple[FailureGroup, ...]
    decisions: tuple[DecisionEffect, ...]
    view: ModelView | None
    notes: tuple[str, ...]
