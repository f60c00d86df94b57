"""Which layouts to give a model before its dispatches form."""

from __future__ import annotations

from dataclasses import replace

from tcl_iree.frontend import Model
from tcl_iree.frontend.model_ops import model_ops
from tcl_iree.target import Target
from tcl_iree.transform_dialect.graph_layouts import Layouts
from tcl_iree.workflows.base_flags import Base

KEEP, CHANGE, AUTO = "keep", "change", "auto"
LAYOUTS = (AUTO, KEEP, CHANGE)


def with_layouts(model: Model, target: Target, base: Base) -> Base | None:
    """The same flags, with channels last and weights packed while compiling; None if the model has nothing to pack."""
    family = Layouts(model_ops(model, target), target)
    if not family.serves:
        return None
    schedule = family.usual()
    return replace(base, layouts=schedule, graph=family.script(schedule))
