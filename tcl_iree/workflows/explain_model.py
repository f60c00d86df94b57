"""What a cost model makes of measured schedules: the rows it reads of the fastest, and how it ranks all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcl_iree.database import ScheduleRecord, Trial, WorkloadRecord
from tcl_iree.errors import TclIreeError
from tcl_iree.features.steps import Candidate, StepReader
from tcl_iree.features.tokens import Tokenizer
from tcl_iree.features.vocabulary import KINDS, ROLES
from tcl_iree.learning.groups import readable_candidates, target_of
from tcl_iree.learning.metrics import Ranked, pairwise_accuracy
from tcl_iree.measure.builder import IREE_VERSION
from tcl_iree.report.explanation import ModelView, TokenRow
from tcl_iree.target import Target
from tcl_iree.workflows.guide import load_guide
from tcl_iree.workload.analysis import analyse
from tcl_iree.workload.model import Workload


@dataclass(frozen=True)
class ModelOpinion:
    """A model's view, and the rank it gives each schedule, from 1; None for what it cannot read."""

    view: ModelView
    ranks: tuple[int | None, ...]


def model_opinion(
    record: WorkloadRecord, ranked: Sequence[ScheduleRecord], ratios: Sequence[float], trial: Trial, wanted: str
) -> ModelOpinion | str:
    """Ask a model about schedules of one workload.

    Args:
        ranked: what worked, fastest first; `ratios` says how fast.
        trial: one of theirs, which tells the target.
        wanted: the model, as `load_guide` takes it.

    Returns:
        Its opinion, or why it cannot be asked.

    Raises:
        LearningError: a model was named that cannot be used.
    """
    if trial.iree != IREE_VERSION:
        return f"the trials are of IREE {trial.iree}, here is {IREE_VERSION}"
    target = target_of(trial)
    if target is None:
        return f"the hardware behind {trial.target} is not known here"
    guide = load_guide(wanted)
    if isinstance(guide, str):
        return guide
    try:
        workload = analyse(record.payload)
    except TclIreeError as error:
        return str(error)
    candidates = readable_candidates(ranked, workload, target)
    read = [place for place, candidate in enumerate(candidates) if candidate is not None]
    if not read or read[0] != 0:
        return "the fastest script cannot be read"
    scores = guide.model.predict(workload, target, [candidates[place] for place in read])
    ranks: list[int | None] = [None] * len(candidates)
    for rank, place in enumerate(np.argsort(-scores, kind="stable")):
        ranks[read[place]] = rank + 1
    seconds = 1.0 / np.array([ratios[place] for place in read])
    accuracy = pairwise_accuracy(Ranked(workload.key, workload.key, 1.0, 1.0, seconds, scores))
    view = ModelView(guide.model.name, accuracy, tuple(_tokens(workload, target, candidates[0])))
    return ModelOpinion(view, tuple(ranks))


def _tokens(workload: Workload, target: Target, winner: Candidate) -> list[TokenRow]:
    tokenizer = Tokenizer(workload, target)
    rows = tokenizer.sequences([winner])
    (steps,) = StepReader(workload, target).read([winner])
    start = tokenizer.prefix_length
    plain = steps.row_numbers()[0]
    made = []
    for place in range(int(rows.lengths[0])):
        part, size, extent = "target and workload" if place < start else "leaves", None, None
        if start <= place < start + len(plain):
            part, size, extent = "step", int(plain[place - start][0]), int(plain[place - start][1])
        kind, role = KINDS[rows.kinds[0, place]], ROLES[rows.roles[0, place]]
        made.append(TokenRow(part, kind, role, size, extent, tuple(map(float, rows.numbers[0, place]))))
    return made
