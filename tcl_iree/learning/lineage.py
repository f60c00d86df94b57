"""Which platforms a model has learned, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tcl_iree.errors import LearningError
from tcl_iree.hardware import Hardware
from tcl_iree.learning.groups import Group, candidates_in
from tcl_iree.target import Target

LABELS = "labels"


@dataclass(frozen=True)
class Stage:
    """What a model learned at one time.

    Attributes:
        platforms: keys of targets, each with the target as users write it; several if they were learned together.
        labels: measured programs that were learned from, failures included.
        training_keys: of the workloads they are of, those that training was stopped by included.
        metrics: on validation of these platforms, right after.
        teacher: `labels` where the model learned from them itself, or what was distilled into it.
        weights: a name for the weights afterwards.
        hardware: the figures of each platform's hardware, by key.
    """

    platforms: dict[str, str]
    labels: int
    training_keys: tuple[str, ...]
    metrics: dict[str, float]
    teacher: str
    weights: str
    hardware: dict[str, dict[str, int | str]] = field(default_factory=dict)

    @property
    def targets(self) -> list[Target]:
        """The platforms as cost models see them."""
        return [
            Target.elsewhere(self.platforms[key], Hardware(**figures))  # type: ignore[arg-type]
            for key, figures in self.hardware.items()
        ]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"training_keys": list(self.training_keys)}

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Stage:
        """As it was written."""
        return Stage(**{**plain, "training_keys": tuple(plain["training_keys"])})


def stage_of(
    labelled: Sequence[Group], validation: Sequence[Group], metrics: dict[str, float], teacher: str, weights: str
) -> Stage:
    """The stage of having learned groups."""
    return Stage(
        {group.platform: str(group.target) for group in labelled},
        candidates_in(labelled),
        tuple(sorted({group.workload.key for group in (*labelled, *validation)})),
        metrics,
        teacher,
        weights,
        {group.platform: group.target.hardware.as_dict() for group in labelled},
    )


def refuse_merge(lineages: Mapping[str, Sequence[Stage]]) -> None:
    """Raise if there is more than one lineage to go on from.

    Args:
        lineages: of models, by where they are.

    Raises:
        LearningError: why two cannot become one, and what to do.
    """
    if len(lineages) < 2:
        return
    (one, first), (other, second), *_ = lineages.items()
    # Stages that taught nothing keep the weights, so the platforms count too.
    alike = [
        (mine.weights, mine.platforms) == (theirs.weights, theirs.platforms)
        for mine, theirs in zip(first, second, strict=False)
    ]
    shared = (*alike, False).index(False)
    if shared == min(len(first), len(second)):
        longer = one if len(first) > len(second) else other
        raise LearningError(f"{longer} has learned all that the other has: go on from it alone")
    left = [", ".join(_names(stages[shared:])) for stages in (first, second)]
    raise LearningError(
        f"{one} and {other} cannot be merged: they learned apart after {shared} platforms in common ({left[0]}; "
        f"{left[1]}), and what one holds fixed for its platforms says nothing about the other's weights. Go on from "
        "one of them and learn the other's platforms again; measured programs can be merged (`tcl-iree db merge`)"
    )


def _names(stages: Sequence[Stage]) -> list[str]:
    return [name for stage in stages for name in stage.platforms.values()]
