"""How to tune."""

from __future__ import annotations

from dataclasses import dataclass

from tcl_iree.errors import OptionError
from tcl_iree.search import STRATEGIES

SCOPES = ("quick", "standard", "all")


@dataclass(frozen=True)
class TuneOptions:
    """How to tune.

    Attributes:
        trials: schedules to try for each distinct workload.
        strategy: `random` or `evolutionary`.
        seed: the same seed and database give the same proposals.
        time_limit: seconds for the search; None searches until all trials are done.
        base: flags to form the dispatches under: `auto`, a flag set's name, or flags.
        scope: which of IREE's flag sets to compare with: `quick`, `standard` or `all`.
        top: tune only so many workloads, those with most time.
        min_share: leave workloads with less than this share of the time to IREE.
        seconds: time for each interleaved run of whole models.

    Raises:
        OptionError: a value that means nothing, before any work is done.
    """

    trials: int = 64
    strategy: str = "evolutionary"
    seed: int = 0
    time_limit: float | None = None
    base: str = "auto"
    scope: str = "standard"
    top: int | None = None
    min_share: float = 0.005
    seconds: float = 20.0

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise OptionError(f"there is no search strategy {self.strategy!r}; known: {', '.join(STRATEGIES)}")
        if self.scope not in SCOPES:
            raise OptionError(f"there is no scope {self.scope!r}; known: {', '.join(SCOPES)}")
        if self.trials < 1:
            raise OptionError(f"trials must be at least 1, not {self.trials}")
        if self.top is not None and self.top < 1:
            raise OptionError(f"top must be at least 1, not {self.top}; leave it out to tune all workloads")
        if self.time_limit is not None and not self.time_limit > 0:
            raise OptionError(
                f"the time limit must be more than 0 seconds, not {self.time_limit:g}; leave it out to search until "
                "all trials are done"
            )
        if not 0 <= self.min_share <= 1:
            raise OptionError(f"the smallest share must be from 0 to 1, not {self.min_share:g}")
        if not self.seconds >= 0:
            raise OptionError(f"seconds must not be negative, but are {self.seconds:g}")
