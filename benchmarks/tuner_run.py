"""How a run of the tuner went, from the trials it left in its database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.curve import Curve
from tcl_iree.database import Database
from tcl_iree.report.tune import TuneReport
from tcl_iree.transform_dialect.schedule import DEFAULT_FAMILY


@dataclass(frozen=True)
class TunerRun:
    """Every trial of one run with a database of its own, whichever dispatch it was for.

    Attributes:
        trials: in order: seconds since the beginning, the dispatch's key, and IREE's default's time over the
            schedule's, None if it failed.
        weights: seconds of one inference in each dispatch by default.
    """

    trials: tuple[tuple[float, str, float | None], ...]
    weights: Mapping[str, float]

    @staticmethod
    def of(database: Database, report: TuneReport, began: float | None = None) -> TunerRun:
        """From what a run left behind.

        Args:
            began: when, in seconds since the epoch; by default when the search did, with all defaults measured.
        """
        records = database.schedules()
        held = database.trials()
        defaults = [trial.created for trial in held if records[trial.schedule].family == DEFAULT_FAMILY]
        start = max(defaults) if began is None else began
        trials = tuple(
            (trial.created - start, trial.workload, trial.ratio)
            for trial in held
            if records[trial.schedule].family != DEFAULT_FAMILY
        )
        weights = {row.key: row.occurrences * (row.default_seconds or 0.0) for row in report.workloads}
        return TunerRun(trials, weights)

    @property
    def dispatches(self) -> int:
        """How many dispatches were searched."""
        return len({key for _, key, _ in self.trials})

    def curve(self, weights: Mapping[str, float] | None = None) -> Curve:
        """Seconds that all dispatches of one inference take with the best of each so far; IREE's default at first.

        Args:
            weights: instead of its own, where several runs are compared.
        """
        weights = self.weights if weights is None else weights
        best = dict.fromkeys(weights, 1.0)
        steps: list[tuple[float, float | None]] = []
        for seconds, key, ratio in self.trials:
            if key in best:
                best[key] = max(best[key], ratio or 0.0)
            steps.append((seconds, sum(weight / best[name] for name, weight in weights.items())))
        return Curve.of(steps, sum(weights.values()))

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        return {"trials": [list(trial) for trial in self.trials], "weights": dict(self.weights)}

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> TunerRun:
        """What `plain` gave."""
        return TunerRun(tuple((seconds, key, ratio) for seconds, key, ratio in plain["trials"]), plain["weights"])
