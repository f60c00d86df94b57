"""How the search of each dispatch went: what a report draws its curves from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TriedSchedule:
    """One schedule that was tried.

    Attributes:
        number: counted from 1 in the order of trying.
        batch: the round of proposals it came with, counted from 1.
        status: `ok`, or the kind of failure.
        ratio: time of IREE's default over its time; None if it failed.
        predicted: that ratio as the cost model thought it when it proposed the schedule; None where no model was
            asked. In the first batch, before anything was measured, such figures only put schedules in order.
    """

    number: int
    batch: int
    schedule: str
    status: str
    ratio: float | None
    predicted: float | None


@dataclass(frozen=True)
class DispatchHistory:
    """One dispatch: what this run tried for it, what it chose, and what IREE does by itself.

    Attributes:
        key: the workload's.
        tried: in the order of trying; trials that the database had from other searches are not among them.
        script: the transform script in the library; None where IREE's default is left in place.
        default: how IREE configures the dispatch by itself, by op; empty where that was not asked.
    """

    key: str
    tried: tuple[TriedSchedule, ...] = ()
    script: str | None = None
    default: str = ""


def best_so_far(tried: tuple[TriedSchedule, ...]) -> list[float | None]:
    """The best ratio after each trial; None while nothing has worked."""
    best: float | None = None
    curve = []
    for entry in tried:
        best = max(filter(None, (best, entry.ratio)), default=None)
        curve.append(best)
    return curve
