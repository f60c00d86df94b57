"""Ways to learn platform after platform, by name."""

from __future__ import annotations

from tcl_iree.errors import OptionError
from tcl_iree.learning.distillation.continual import ContinualDistillation, PlainDistillation
from tcl_iree.learning.distillation.fine_tuning import FineTuning, HeldFineTuning, Replay
from tcl_iree.learning.distillation.from_scratch import FromScratch
from tcl_iree.learning.distillation.learner import Learner
from tcl_iree.learning.distillation.options import Distillation
from tcl_iree.learning.distillation.with_all_data import JointTraining, MtlTlp
from tcl_iree.learning.neural import NeuralModel

LEARNERS: dict[str, type[Learner]] = {
    made.name: made
    for made in (
        ContinualDistillation,
        FromScratch,
        FineTuning,
        MtlTlp,
        JointTraining,
        PlainDistillation,
        HeldFineTuning,
        Replay,
    )
}


def make_learner(name: str, options: Distillation | None = None, start: NeuralModel | None = None) -> Learner:
    """The learner of a name.

    Args:
        start: a model that has learned the first platform already, for those that can use it.

    Raises:
        OptionError: there is none.
    """
    if name not in LEARNERS:
        raise OptionError(f"there is no way {name!r} to learn platforms; choose from {', '.join(LEARNERS)}")
    return LEARNERS[name](options, start)
