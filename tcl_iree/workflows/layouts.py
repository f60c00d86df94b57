"""Which layouts to give a model before its dispatches form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tcl_iree.frontend import Extraction, Model, extract
from tcl_iree.frontend.iree_compile import compile_model
from tcl_iree.frontend.model_ops import model_ops
from tcl_iree.target import Target
from tcl_iree.transform_dialect.graph_layouts import Layouts
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workflows.base_flags import Base, with_stack
from tcl_iree.workflows.model_runs import ModelRuns
from tcl_iree.workflows.profile import dispatch_seconds
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


def with_layouts(model: Model, target: Target, base: Base, cut: bool = False) -> tuple[Base, Extraction] | None:
    """The same flags with channels last and weights packed while compiling, and the dispatches of that.

    Attention that no family can schedule is taken apart: IREE's own code for it is slow.

    Args:
        cut: filters and matrices in narrow panels, see `Layouts.usual`.

    Returns:
        None if the model has nothing that could be changed, or nothing to cut.

    Raises:
        ModelError: the model does not compile that way.
    """
    family = Layouts(model_ops(model, target), target)
    if not family.serves or (cut and family.usual() == family.usual(cut=True)):
        return None
    for attention in (False, True):
        schedule = family.usual(attention, cut)
        changed = replace(base, layouts=schedule, graph=family.script(schedule))
        extraction = formed(model, target, changed)
        if not _unserved_attention(extraction, target):
            break
    return changed, extraction


def untunable_seconds(model: Model, target: Target, base: Base, extraction: Extraction, directory: Path) -> float:
    """What one inference takes in dispatches that are left to IREE; 0 where there is no profiler.

    Args:
        directory: where the model is compiled to.

    Raises:
        TclIreeError: it does not compile or run.
    """
    names = {entry.name for entry in extraction.untunable}
    if not names:
        return 0.0
    path = directory / "untuned.vmfb"
    flags = [*target.compile_flags, *with_stack(base.flag_set, target).flags]
    compile_model(model.path, flags, path, graph=base.graph)
    with ModelRuns(target) as runs:
        taken = dispatch_seconds(runs, path, runs.draws(model, path)[0], target)
    return sum(seconds for name, seconds in taken.items() if name in names)


def _unserved_attention(extraction: Extraction, target: Target) -> bool:
    workloads = [entry.workload for entry in extraction.dispatches if entry.workload.root.kind == ATTENTION]
    return any(not Space(workload, target).families for workload in workloads)
