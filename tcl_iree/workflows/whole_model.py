"""A model compiled with the schedules found for it: checked, timed in context, and thinned where they hurt."""

from __future__ import annotations

import hashlib
import logging
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tcl_iree.errors import LibraryError, MeasureError, ModelError
from tcl_iree.frontend import Dispatch, Model
from tcl_iree.frontend.iree_compile import compile_model
from tcl_iree.measure.timing import fast_half
from tcl_iree.report.bench import BenchReport
from tcl_iree.report.tune import ModelRow
from tcl_iree.target import Target
from tcl_iree.transform_dialect.library import Library
from tcl_iree.transform_dialect.library_text import library_flags
from tcl_iree.workflows.apply import apply_library
from tcl_iree.workflows.flag_sets import PLAIN, FlagSet
from tcl_iree.workflows.model_runs import Draws, ModelRuns, depends_on_input
from tcl_iree.workflows.profile import dispatch_seconds

TUNED = "tuned"
NOT_TOGETHER = "not used: with all schedules together the model does not compile or is wrong"
# A schedule that is not this much faster than the default inside the model is tried without.
_HELPS = 1.02
# IREE's flag sets that take part in the last comparison, fastest first, besides plain.
_RIVALS = 3

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Compiled:
    """One way to compile the model.

    Attributes:
        flags: compile flags beyond the target's own.
        error: largest difference to plain's outputs, relative to their size.
        library: the schedules in it.
    """

    name: str
    flags: tuple[str, ...]
    path: Path
    error: float
    library: Library | None = None


def compiled_by_bench(bench: BenchReport, directory: Path) -> list[Compiled]:
    """The modules of IREE's own flag sets that a `bench` left in a directory, fastest first.

    Raises:
        MeasureError: there is nothing to compare with: plain IREE gave no time.
    """
    ordered = sorted((row for row in bench.rows if row.median and not row.same_as), key=lambda row: row.median or 0)
    if PLAIN.name not in {row.name for row in ordered}:
        status = next((row.status for row in bench.rows if row.name == PLAIN.name), "it was not run")
        raise MeasureError(f"IREE without flags gave no time to compare with: {status}")
    return [Compiled(row.name, row.flags, directory / f"{row.name}.vmfb", row.error or 0.0) for row in ordered]


class WholeModel:
    """Compiles a model in several ways, checks each against plain IREE, and times them interleaved.

    Args:
        base: the flags the schedules were found under, beyond the target's own.
        graph: the graph script that the dispatches were formed under, or nothing.
        directory: where compiled modules are kept; it holds those of `bench` already.
        own: the model under IREE's own flag sets, fastest first; plain must be among them.
    """

    def __init__(
        self,
        model: Model,
        target: Target,
        base: FlagSet,
        runs: ModelRuns,
        directory: Path,
        own: Sequence[Compiled],
        graph: str = "",
    ) -> None:
        self._model, self._target, self._base, self._runs = model, target, base, runs
        self._directory, self._graph = directory, graph
        self._own = {made.name: made for made in own}
        plain = self._own[PLAIN.name]
        self._draws: Draws = runs.draws(model, plain.path)
        self._reference: Draws = runs.outputs(plain.path, self._draws)
        self.depends_on_input = depends_on_input(self._reference)
        self.problems: dict[str, str] = {}
        self.compared: dict[str, Path] = {}

    def base(self) -> Compiled:
        """The model under the base flags and with the base's layouts, without any schedule."""
        name, flags = self._base.name, self._base.flags
        if name in self._own and self._own[name].flags == flags and not self._graph:
            return self._own[name]
        name += ", layouts" if self._graph else ""
        path = self._directory / f"{name}.vmfb"
        compile_model(self._model.path, [*self._target.compile_flags, *flags], path, graph=self._graph)
        status, error = self._runs.compare(self._reference, path, self._draws)
        if status != "ok":
            raise MeasureError(f"under {' '.join(flags)} {self._model.name} is not what it is without: {status}")
        return Compiled(name, flags, path, error or 0.0)

    def tuned(self, library: Library) -> Compiled | None:
        """The model with a library, or with as much of it as compiles and keeps the outputs right."""
        made = self._try(library)
        keys = [entry.key for entry in library.entries]
        if made or len(keys) < 2:
            return made
        middle = len(keys) // 2
        halves = [half for part in (keys[middle:], keys[:middle]) if (half := self.tuned(library.without(part)))]
        kept = [{entry.key for entry in half.library.entries} for half in halves if half.library]
        both = set().union(*kept)
        if len(halves) == 2 and len(both) < len(keys) and (made := self._try(library.without(set(keys) - both))):
            return made
        return max(halves, key=lambda half: len(half.library.entries) if half.library else 0, default=None)

    def without_harm(self, tuned: Compiled, base: Compiled, dispatches: Sequence[Dispatch]) -> Compiled | None:
        """The tuned model without the schedules that do not help inside it; None if all do."""
        before, after = (
            dispatch_seconds(self._runs, made.path, self._draws[0], self._target) for made in (base, tuned)
        )
        doubtful = {
            dispatch.workload.key
            for dispatch in dispatches
            if all(name in before and name in after for name in dispatch.names)
            and sum(after[name] for name in dispatch.names) * _HELPS > sum(before[name] for name in dispatch.names)
        }
        assert tuned.library
        kept = tuned.library.without(doubtful)
        return self._try(kept) if 0 < len(kept.entries) < len(tuned.library.entries) else None

    def compare(self, candidates: Sequence[Compiled], seconds: float) -> list[ModelRow]:
        """Latencies of plain IREE, IREE's fastest flag sets and `candidates`, interleaved in one run."""
        own = list(self._own.values())[:_RIVALS]
        field = {made.name: made for made in [self._own[PLAIN.name], *own, *candidates]}
        self.compared = {name: made.path for name, made in field.items()}
        taken = self._runs.interleave(self.compared, self._draws[0], seconds)
        plain = fast_half(taken[PLAIN.name])
        rows = []
        for name, made in field.items():
            p10, *_, p90 = statistics.quantiles(taken[name], n=10)
            ratio = math.exp(plain - fast_half(taken[name]))
            rows.append(ModelRow(name, made.flags, statistics.median(taken[name]), p10, p90, ratio, made.error))
        return rows

    def own(self, name: str) -> Compiled:
        """The model under one of IREE's own flag sets."""
        return self._own[name]

    def as_printed(self, tuned: Compiled) -> Compiled:
        """The same compiled by the very command that users are given, without the traces that proof needs."""
        assert tuned.library
        source, path = self._directory / "library.mlir", self._directory / "model.vmfb"
        source.write_text(tuned.library.text(), encoding="utf-8")
        flags = [*tuned.library.header.compile_flags, *library_flags(source)]
        compile_model(self._model.path, flags, path)
        status, error = self._runs.compare(self._reference, path, self._draws)
        if status != "ok":
            raise MeasureError(f"the same library gave another module this time: {status}")
        return replace(tuned, path=path, error=error or 0.0)

    def _try(self, library: Library) -> Compiled | None:
        """Compile with a library and check the outputs; a schedule that is known to fail is named in `problems`."""
        text = library.text()
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        source, path = (self._directory / f"{name}.{ending}" for ending in ("mlir", "vmfb"))
        source.write_text(text, encoding="utf-8")
        try:
            parts = apply_library(self._model, self._target, source, path).parts
            unfit = {part.entry.key: part.status for part in parts if not part.took_effect}
            if unfit:
                self.problems |= unfit
                fitting = library.without(unfit)
                return self._try(fitting) if fitting.entries else None
            status, difference = self._runs.compare(self._reference, path, self._draws)
        except (ModelError, LibraryError) as error:
            status, difference = str(error), None
        if status == "ok":
            return Compiled(TUNED, self._base.flags, path, difference or 0.0, library)
        _log.warning("%d schedules together: %s", len(library.entries), status)
        if len(library.entries) == 1:
            self.problems[library.entries[0].key] = status
        return None
