"""How to tune."""

from __future__ import annotations

from dataclasses import dataclass

from tcl_iree.errors import OptionError
from tcl_iree.search import STRATEGIES
from tcl_iree.workflows.guide import BASE
from tcl_iree.workflows.layouts import AUTO, LAYOUTS

# How many schedules to try for each workload; none picks by the cost model alone.
EFFORTS = {"none": 0, "quick": 16, "default": 64, "max": 256}
SCOPES = ("quick", "standard", "all")


@dataclass(frozen=True)
class TuneOptions:
    """How to tune.

    Attributes:
        effort: `none` (the cost model picks, nothing is timed), `quick`, `default` or `max`.
        trials: schedules to try for each distinct workload, in place of what the effort says.
        strategy: `guided` by a cost model, AutoTVM's `annealing`, `evolutionary` by measurement, or `random`.
        model: the cost model: `base`, which ships with the package, or a checkpoint's path.
        seed: the same seed and database give the same proposals.
        time_limit: seconds for the search; None searches until all trials are done.
        base: flags to form the dispatches under: `auto`, a flag set's name, or flags.
        layouts: `keep` those the model has, `change` to channels last with packed weights, or let `auto` find out.
        scope: which of IREE's flag sets to compare with: `quick`, `standard` or `all`.
        top: tune only so many workloads, those with most time.
        min_share: leave workloads to IREE whose default takes less than this share of what the tuned model may take.
        seconds: time for an interleaved run of whole models; the first one ends when flag sets can be told apart.
        again: tune anew what was tuned before with the same options; trials of that are used.

    Raises:
        OptionError: a value that means nothing, before any work is done.
    """

    effort: str = "default"
    trials: int | None = None
    strategy: str = "guided"
    model: str = BASE
    seed: int = 0
    time_limit: float | None = None
    base: str = "auto"
    layouts: str = AUTO
    scope: str = "standard"
    top: int | None = None
    min_share: float = 0.005
    seconds: float = 20.0
    again: bool = False

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise OptionError(f"there is no search strategy {self.strategy!r}; known: {', '.join(STRATEGIES)}")
        if self.scope not in SCOPES:
            raise OptionError(f"there is no scope {self.scope!r}; known: {', '.join(SCOPES)}")
        if self.layouts not in LAYOUTS:
            raise OptionError(f"there are no layouts {self.layouts!r}; known: {', '.join(LAYOUTS)}")
        if self.effort not in EFFORTS:
            raise OptionError(f"there is no effort {self.effort!r}; known: {', '.join(EFFORTS)}")
        if self.effort == "none" and self.trials is not None:
            raise OptionError("effort none tries nothing; leave trials out, or take another effort")
        if self.trials is not None and self.trials < 1:
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

    @property
    def budget(self) -> int:
        """Schedules to try for each distinct workload."""
        return EFFORTS[self.effort] if self.trials is None else self.trials
