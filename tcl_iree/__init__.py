"""tcl-iree: measured, learned schedules for IREE's dispatches.

The public names; each is loaded when first used, so that importing a part does not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "Builder": "tcl_iree.measure.builder",
    "Candidate": "tcl_iree.measure.builder",
    "Database": "tcl_iree.database",
    "Library": "tcl_iree.transform_dialect.library",
    "Runner": "tcl_iree.measure.runner",
    "ScheduleRecord": "tcl_iree.database",
    "Target": "tcl_iree.target",
    "TclIreeError": "tcl_iree.errors",
    "TimingPolicy": "tcl_iree.measure.timing",
    "TrialSession": "tcl_iree.workflows.trials",
    "TuneOptions": "tcl_iree.workflows.tune_options",
    "TuneResult": "tcl_iree.workflows.tuned",
    "Workload": "tcl_iree.workload.model",
    "bench": "tcl_iree.workflows.bench",
    "extract": "tcl_iree.frontend",
    "load_model": "tcl_iree.frontend",
    "tune": "tcl_iree.workflows.tune",
}
__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'tcl_iree' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
