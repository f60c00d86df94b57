"""Candidates of one workload on one target as steps: those that take the same steps with other numbers, together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tcl_iree.features.program import Nest
from tcl_iree.features.script_ops import read_script
from tcl_iree.features.templates import Templates
from tcl_iree.features.walk import ROW_NUMBERS, Row, walk
from tcl_iree.target import Target
from tcl_iree.transform_dialect.names import ENTRY
from tcl_iree.transform_dialect.schedule import DEFAULT_FAMILY, Schedule
from tcl_iree.workload.model import Workload


@dataclass(frozen=True)
class ScriptText:
    """A script that starts at another sequence than usual."""

    text: str
    entry: str = ENTRY


Candidate = Schedule | ScriptText | str | None
"""A family's schedule, a script, or None for IREE's default, which has no script."""


@dataclass(frozen=True)
class Steps:
    """Candidates that take the same steps with other numbers.

    Attributes:
        positions: of the candidates among those asked for.
        rows: the steps; their own numbers are those of one candidate.
        nests: what the steps leave of each op; likewise.
        row_numbers: gives candidate x row x number of a row.
        nest_numbers: gives candidate x number, those of all nests one after the other.
    """

    positions: np.ndarray
    rows: tuple[Row, ...]
    nests: tuple[Nest, ...]
    row_numbers: Callable[[], np.ndarray]
    nest_numbers: Callable[[], np.ndarray]


class StepReader:
    """Reads candidates; what it learns of a family's variants is kept for the next ones."""

    def __init__(self, workload: Workload, target: Target) -> None:
        self.workload, self.target = workload, target
        self._templates = Templates(workload, target)

    def read(self, candidates: Sequence[Candidate]) -> Iterator[Steps]:
        """The candidates' steps, in groups.

        Raises:
            FeatureError: a script is no valid MLIR.
        """
        made: list[tuple[int, Schedule]] = []
        texts: dict[ScriptText | None, list[int]] = {}
        for position, candidate in enumerate(candidates):
            if isinstance(candidate, Schedule) and candidate.family != DEFAULT_FAMILY:
                made.append((position, candidate))
            else:
                script = ScriptText(candidate) if isinstance(candidate, str) else candidate
                texts.setdefault(None if isinstance(script, Schedule) else script, []).append(position)
        places = np.array([position for position, _ in made], np.int64)
        for chosen, template, values in self._templates.sort([schedule for _, schedule in made]):
            yield Steps(
                places[chosen],
                template.rows,
                template.nests,
                lambda template=template, values=values: template.row_numbers(values),  # type: ignore[misc]
                lambda template=template, values=values: template.nest_numbers(values),  # type: ignore[misc]
            )
        for script, positions in texts.items():
            yield self._plain(script, np.array(positions))

    def _plain(self, script: ScriptText | None, positions: np.ndarray) -> Steps:
        walked = walk(read_script(script.text, script.entry) if script else [], self.workload)
        row_numbers = np.array([row.numbers for row in walked.rows], np.int64).reshape(1, -1, ROW_NUMBERS)
        nest_numbers = np.array([number for nest in walked.nests for number in nest.numbers], np.int64)[None]
        count = len(positions)
        return Steps(
            positions,
            walked.rows,
            walked.nests,
            lambda: np.repeat(row_numbers, count, 0),
            lambda: np.repeat(nest_numbers, count, 0),
        )
