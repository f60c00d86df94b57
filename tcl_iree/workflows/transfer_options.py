"""What a transfer to another platform depends on."""

from __future__ import annotations

from dataclasses import dataclass, field

from tcl_iree.errors import OptionError
from tcl_iree.learning.distillation.options import Distillation
from tcl_iree.learning.sampling import SAMPLERS

_FEWEST = 10


@dataclass(frozen=True)
class TransferOptions:
    """How much to measure, and how to learn.

    Attributes:
        labels: programs of the new platform to learn from. Where they have to be measured, a fifth of them only says
            when to stop; where they are recorded, whatever the data has of validation workloads does that.
        sampler: what chooses them.
        per_workload: random programs of each workload in the pool they are chosen from.
        base_flags: flags to form networks' dispatches under, and to measure under.
        longest: leave out workloads whose default takes more seconds than this.
        everything: learn from test workloads too.
        distillation: how to learn.

    Raises:
        OptionError: a value that means nothing.
    """

    labels: int = 512
    sampler: str = "rdu"
    per_workload: int = 64
    base_flags: str = "plain"
    longest: float = 0.25
    epochs: int = 60
    seed: int = 0
    everything: bool = False
    distillation: Distillation = field(default_factory=Distillation)

    def __post_init__(self) -> None:
        if self.labels < _FEWEST:
            raise OptionError(f"there must be at least {_FEWEST} labels to learn from, not {self.labels}")
        if self.sampler not in SAMPLERS:
            raise OptionError(f"there is no sampler {self.sampler!r}; choose from {', '.join(SAMPLERS)}")
        if self.per_workload < 1:
            raise OptionError(f"programs per workload must be at least 1, not {self.per_workload}")
        if self.epochs < 1 or self.seed < 0:
            raise OptionError(
                "there must be at least one epoch, and the seed must not be negative "
                f"(not {self.epochs} and {self.seed})"
            )
        if not self.longest > 0:
            raise OptionError(f"the longest default must be more than 0 seconds, not {self.longest:g}")
