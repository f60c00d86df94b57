"""Sequences for cost models: the target and workload, what a script does, one row a step, and what it leaves."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcl_iree.features.nest_rows import NestRows, nest_rows
from tcl_iree.features.prefix import prefix
from tcl_iree.features.steps import Candidate, StepReader, Steps
from tcl_iree.features.vocabulary import COLUMNS, KIND_INDEX, ROLE_INDEX, UNKNOWN
from tcl_iree.features.walk import Row
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

_LOG = logging.getLogger(__name__)
_warned: set[str] = set()
_KEPT = 4096


@dataclass(frozen=True)
class Sequences:
    """Rows of many scripts, padded to one length.

    Attributes:
        kinds, roles: what each row is and acts on; 0 is padding. One row of the array a script.
        numbers: `COLUMNS` of each row.
        lengths: rows that are not padding.
    """

    kinds: np.ndarray
    roles: np.ndarray
    numbers: np.ndarray
    lengths: np.ndarray

    def __len__(self) -> int:
        return len(self.lengths)


class Tokenizer:
    """Makes sequences of one workload on one target."""

    def __init__(self, workload: Workload, target: Target) -> None:
        self._workload, self._hardware = workload, target.hardware
        rows = prefix(workload, target)
        self._kinds = np.array([_index(KIND_INDEX, row.kind) for row in rows], np.int16)
        self._roles = np.array([_index(ROLE_INDEX, row.role) for row in rows], np.int16)
        self._numbers = np.array([row.numbers for row in rows], np.float32)
        self._reader = StepReader(workload, target)
        self._known: dict[int, tuple[tuple[Row, ...], list[int], list[int]]] = {}

    @property
    def prefix_length(self) -> int:
        """Rows in front that all sequences share."""
        return len(self._kinds)

    def sequences(self, candidates: Sequence[Candidate]) -> Sequences:
        """One sequence a candidate; those of families' schedules without building their scripts one by one."""
        found = list(self._reader.read(candidates))
        left = nest_rows(self._workload, self._hardware, found)
        longest = max((len(steps.rows) + len(rows.names) for steps, rows in zip(found, left, strict=True)), default=0)
        made = self._empty(len(candidates), longest)
        for steps, rows in zip(found, left, strict=True):
            self._put(made, steps, rows)
        return made

    def _indices(self, rows: tuple[Row, ...]) -> tuple[list[int], list[int]]:
        """Kinds and roles of a variant's rows; its rows are one and the same object every time."""
        known = self._known.get(id(rows))
        if known is None or known[0] is not rows:
            if len(self._known) >= _KEPT:
                self._known.clear()
            kinds = [_index(KIND_INDEX, row.kind) for row in rows]
            known = self._known[id(rows)] = (rows, kinds, [_index(ROLE_INDEX, row.role) for row in rows])
        return known[1], known[2]

    def _empty(self, count: int, rows: int) -> Sequences:
        start, length = len(self._kinds), len(self._kinds) + rows
        made = Sequences(
            np.zeros((count, length), np.int16), np.zeros((count, length), np.int16),
            np.zeros((count, length, COLUMNS), np.float32), np.full(count, start, np.int64),
        )  # fmt: skip
        made.kinds[:, :start], made.roles[:, :start], made.numbers[:, :start] = self._kinds, self._roles, self._numbers
        return made

    def _put(self, into: Sequences, steps: Steps, left: NestRows) -> None:
        start = len(self._kinds)
        middle, end = start + len(steps.rows), start + len(steps.rows) + len(left.names)
        at = steps.positions
        into.kinds[at, start:middle], into.roles[at, start:middle] = self._indices(steps.rows)
        into.numbers[at, start:middle] = scale(steps.row_numbers(), max(1, self._hardware.vector_bytes))
        into.kinds[at, middle:end] = [_index(KIND_INDEX, kind) for kind, _ in left.names]
        into.roles[at, middle:end] = [_index(ROLE_INDEX, role) for _, role in left.names]
        into.numbers[at, middle:end] = left.numbers
        into.lengths[at] = end


def scale(numbers: np.ndarray, vector_bytes: int) -> np.ndarray:
    """Numbers of script rows as a network gets them: logarithms, and how a size divides the loop it is for."""
    value, extent, width, reduction, position = (numbers[..., column].astype(np.float32) for column in range(5))
    sized, looped = value > 0, (extent > 0) & (value > 0)
    safe = np.maximum(value, 1.0)
    trips = np.ceil(extent / safe)
    made = np.zeros((*numbers.shape[:-1], COLUMNS), np.float32)
    made[..., 0] = np.log2(safe) / 8.0
    made[..., 1] = np.log2(np.maximum(extent, 1.0)) / 8.0
    made[..., 2] = np.where(looped, np.log2(np.maximum(trips, 1.0)) / 8.0, 0.0)
    made[..., 3] = np.where(looped, np.mod(extent, safe) / safe, 0.0)
    made[..., 4] = np.where(sized & (width > 0), np.log2(np.maximum(safe * width, 1.0) / vector_bytes) / 8.0, 0.0)
    made[..., 5] = reduction
    made[..., 6] = position / 4.0
    made[..., 7] = sized
    return made


def _index(table: dict[str, int], name: str) -> int:
    if name not in table:
        if name not in _warned:
            _warned.add(name)
            _LOG.warning("a script uses %s, which cost models do not know; it is taken as unknown", name)
        return table.get(UNKNOWN, table.get("unknown", 0))
    return table[name]
