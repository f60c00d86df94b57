"""Dispatches are timed one by one, but have to be fast inside the model: whose constants come from memory there?"""

from __future__ import annotations

from dataclasses import replace

from tcl_iree.frontend import Extraction
from tcl_iree.target import Target

# Smaller ones take no time to read wherever they are.
_LEAST_BYTES = 1 << 16


def outgrows_cache(extraction: Extraction, target: Target) -> bool:
    """Whether a model has more constants than the last cache holds: between two runs of a dispatch its own are gone."""
    return target.kind == "cpu" and 0 < target.hardware.l3_bytes < extraction.constant_bytes


def with_cold_constants(extraction: Extraction, target: Target) -> Extraction:
    """The same dispatches, to be measured with constants that come from memory.

    Inputs and results are left as they are: the dispatch before has just written them.
    """
    made = []
    for entry in extraction.dispatches:
        bindings = entry.workload.bindings
        cold = tuple(index for index in entry.constants if bindings[index].size_bytes >= _LEAST_BYTES)
        cache = target.hardware.l3_bytes if cold else 0
        made.append(replace(entry, workload=replace(entry.workload, cold=cold, cache_bytes=cache)))
    return replace(extraction, dispatches=tuple(made))
