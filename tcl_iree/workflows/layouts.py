"""Which layouts to give a model before its dispatches form."""

from __future__ import annotations

from dataclasses import replace

from tcl_iree.frontend import Extraction, Model, extract
from tcl_iree.frontend.model_ops import model_ops
from tcl_iree.target import Target
from tcl_iree.transform_dialect.graph_layouts import Layouts
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workflows.base_flags import Base, with_stack
from tcl_iree.workload.structure import ATTENTION

KEEP, CHANGE, AUTO = "keep", "change", "auto"
LAYOUTS = (AUTO, KEEP, CHANGE)


def formed(model: Model, target: Target, base: Base) -> Extraction:
    """The model's dispatches under a base's flags and layouts.

    Raises:
        ModelError: the model does not compile, or has nothing to tune.
    """
    extraction = extract(model, target, with_stack(base.flag_set, target).flags, base.graph)
    extraction.require_tunable()
    return extraction


def with_layouts(model: Model, target: Target, base: Base) -> tuple[Base, Extraction] | None:
    """The same flags with channels last and weights packed while compiling, and the dispatches of that.

    Attention that no family can schedule is taken apart: IREE's own code for it is slow.

    Returns:
        None if the model has nothing that could be changed.

    Raises:
        ModelError: the model does not compile that way.
    """
    family = Layouts(model_ops(model, target), target)
    if not family.serves:
        return None
    for attention in (False, True):
        schedule = family.usual(attention)
        changed = replace(base, layouts=schedule, graph=family.script(schedule))
        extraction = formed(model, target, changed)
        if not _unserved_attention(extraction, target):
            break
    return changed, extraction


def _unserved_attention(extraction: Extraction, target: Target) -> bool:
    workloads = [entry.workload for entry in extraction.dispatches if entry.workload.root.kind == ATTENTION]
    return any(not Space(workload, target).families for workload in workloads)
