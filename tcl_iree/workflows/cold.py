"""Dispatches are timed one by one, but have to be fast inside the model: whose constants come from memory there?"""

from __future__ import annotations

from dataclasses import replace

from tcl_iree.frontend import Extraction
from tcl_iree.target import Target


def as_in_the_model(extraction: Extraction, target: Target) -> Extraction:
    """The same dispatches; if the model has more constants than the last cache holds, they are measured cold.

    Between two runs of a dispatch all other constants pass through the cache, so its own are gone. Inputs and results
    are left as they are: the dispatch before has just written them.
    """
    if target.kind != "cpu" or not 0 < target.hardware.l3_bytes < extraction.constant_bytes:
        return extraction
    cold = tuple(
        replace(entry, workload=replace(entry.workload, cold=entry.constants)) for entry in extraction.dispatches
    )
    return replace(extraction, dispatches=cold)
