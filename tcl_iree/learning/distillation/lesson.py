"""What a learner gets of one platform."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcl_iree.errors import LearningError
from tcl_iree.learning.groups import Group, candidates_in
from tcl_iree.target import Target


@dataclass(frozen=True)
class Lesson:
    """Programs of one platform.

    Attributes:
        platform: the target's key, which names the machine too.
        labelled: what was measured, to learn from.
        validation: what was measured, to stop by and to choose by.
        pool: programs that labels could have been bought for, the labelled ones among them; nobody reads their times.
            Without any, the labelled ones stand for it.

    Raises:
        LearningError: there is nothing to learn from, or nothing to stop by.
    """

    platform: str
    labelled: Sequence[Group]
    validation: Sequence[Group]
    pool: Sequence[Group] = ()

    def __post_init__(self) -> None:
        if not candidates_in(self.labelled) or not candidates_in(self.validation):
            raise LearningError(
                f"{self.platform} has {candidates_in(self.labelled)} measured programs to learn from and "
                f"{candidates_in(self.validation)} to stop by; both are needed: measure more, of several workloads"
            )

    @property
    def programs(self) -> Sequence[Group]:
        """Everything that can be read without labels."""
        return self.pool or self.labelled

    @property
    def target(self) -> Target:
        """What the programs are for."""
        return self.labelled[0].target

    @property
    def labels(self) -> int:
        """Measured programs that are learned from, failures included."""
        return candidates_in(self.labelled)
