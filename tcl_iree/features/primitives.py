"""Scripts as TLP reads schedules: one row a primitive, its kind and its raw arguments, nothing else.

No scaling, no target, no workload but for the extents that primitives name: as published, on this project's
primitives. A primitive is one step on one loop, as TVM's steps are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcl_iree.features.steps import Candidate, StepReader
from tcl_iree.features.vocabulary import KIND_INDEX, ROLE_INDEX, UNKNOWN
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

# Longer scripts are cut off, shorter ones filled with zeros.
PRIMITIVES = 64
ARGUMENTS = 4


class PrimitiveEncoder:
    """Makes TLP's rows of one workload's candidates."""

    def __init__(self, workload: Workload, target: Target) -> None:
        self._reader = StepReader(workload, target)

    def primitives(self, candidates: Sequence[Candidate]) -> tuple[np.ndarray, np.ndarray]:
        """Kind of candidate x primitive, and its arguments: what it acts on, which loop, that loop's extent, a size."""
        kinds = np.zeros((len(candidates), PRIMITIVES), np.int64)
        arguments = np.zeros((len(candidates), PRIMITIVES, ARGUMENTS), np.float32)
        for steps in self._reader.read(candidates):
            rows = steps.rows[:PRIMITIVES]
            numbers = steps.row_numbers()[:, : len(rows)]
            kinds[steps.positions, : len(rows)] = [KIND_INDEX.get(row.kind, KIND_INDEX[UNKNOWN]) for row in rows]
            for number, row in enumerate(rows):
                arguments[steps.positions, number, 0] = ROLE_INDEX.get(row.role, ROLE_INDEX["unknown"])
            arguments[steps.positions, : len(rows), 1:] = numbers[..., [4, 1, 0]]
        return kinds, arguments
