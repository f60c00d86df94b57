"""All numbers that carrying knowledge from platform to platform depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tcl_iree.errors import OptionError

LISTWISE, SQUARES = "listwise", "squares"


@dataclass(frozen=True)
class Distillation:
    """How a column learns beside the base, and how the base then learns from the column.

    Attributes:
        lateral: whether the column gets the base's rows after every block.
        residual: whether the column's score is added to the base's, so that it starts as good as the base is.
        bottleneck: columns that the base's rows are squeezed through on their way.
        columns: so many learn from the same labels, each from a start of its own; what they agree on counts.
        gate: whether a model trained from scratch takes the columns' place where it does better on validation, and the
            base stays as it is where neither does.
        loss: what the base is taught by: `listwise`, the order of the candidates of one group, or `squares`, scores.
        distillation: weight of that loss.
        temperature: scores are divided by it before they become chances of being the best; they spread by about 2.5.
        ewc: strength of what holds weights that earlier platforms need; 0 is plain distillation.
        keep: share of earlier platforms' Fisher information that stays when a platform is added.
        recall: of the new platform's workloads, this share is imagined on each earlier platform's target, where the
            base is held to what it said before. It takes those targets' figures and no programs of theirs.
        rate: of learning from labels, for weights that do not start afresh.
        slow_rate: of learning what the columns know.
        fisher_lists: lists of candidates that the Fisher information is estimated from.
        buffer: programs of each platform that replay keeps; nothing else keeps any.

    Raises:
        OptionError: a value that means nothing.
    """

    lateral: bool = True
    residual: bool = True
    bottleneck: int = 8
    columns: int = 3
    gate: bool = True
    loss: str = LISTWISE
    distillation: float = 1.0
    temperature: float = 2.0
    ewc: float = 25.0
    keep: float = 0.99
    recall: float = 1.0
    rate: float = 2e-3
    slow_rate: float = 1e-3
    fisher_lists: int = 128
    buffer: int = 256

    def __post_init__(self) -> None:
        if self.loss not in (LISTWISE, SQUARES):
            raise OptionError(f"the base can be taught by {LISTWISE} or {SQUARES}, not {self.loss!r}")
        for name in (
            "bottleneck",
            "columns",
            "distillation",
            "temperature",
            "rate",
            "slow_rate",
            "fisher_lists",
            "buffer",
        ):
            if not getattr(self, name) > 0:
                raise OptionError(f"the setting {name} must be more than 0, not {getattr(self, name):g}")
        for name in ("bottleneck", "columns", "fisher_lists", "buffer"):
            if getattr(self, name) != int(getattr(self, name)):
                raise OptionError(f"the setting {name} must be a whole number, not {getattr(self, name):g}")
        for name in ("ewc", "recall"):
            if not getattr(self, name) >= 0:
                raise OptionError(f"the setting {name} must not be negative, but is {getattr(self, name):g}")
        if not 0 <= self.keep <= 1:
            raise OptionError(f"the setting keep must be from 0 to 1, not {self.keep:g}")

    @staticmethod
    def of(config: Mapping[str, Any]) -> Distillation:
        """With some settings changed.

        Raises:
            OptionError: there is no such setting, or not of this value.
        """
        known = {field.name for field in fields(Distillation)}
        unknown = sorted(set(config) - known)
        if unknown:
            raise OptionError(f"there is no setting {unknown[0]!r}; choose from {', '.join(sorted(known))}")
        return Distillation(**config)
