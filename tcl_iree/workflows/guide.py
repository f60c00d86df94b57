"""The cost model that guides a search: the one that ships with the package, or one of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import tcl_iree.learning
from tcl_iree.errors import LearningError

if TYPE_CHECKING:
    from tcl_iree.learning.checkpoint import Checkpoint

BASE = "base"
BASE_PATH = Path(tcl_iree.learning.__file__).parent / "base" / "mamba"


def checkpoint_path(wanted: str) -> Path:
    """Where the model asked for is: `base`, or a checkpoint's path."""
    return BASE_PATH if wanted == BASE else Path(wanted)


def load_guide(wanted: str) -> Checkpoint | str:
    """The model asked for; if that is only the shipped one and it does not fit this version of IREE, why not.

    Args:
        wanted: `base`, or a checkpoint's path.

    Raises:
        LearningError: a checkpoint was named that cannot be used.
    """
    from tcl_iree.learning.checkpoint import load_checkpoint  # torch takes seconds to import

    try:
        return load_checkpoint(checkpoint_path(wanted))
    except LearningError as error:
        if wanted == BASE:
            return str(error)
        raise
