"""Dispatches are timed one by one, but have to be fast inside the model: what is in which cache when they run?"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tcl_iree.frontend import Extraction
from tcl_iree.target import Target

# Smaller ones take no time to read wherever they are.
_LEAST_BYTES = 1 << 16
# What is to come from memory takes so many bytes, and twice what the last cache holds.
_FROM_MEMORY = 64 << 20


@dataclass(frozen=True)
class Surroundings:
    """How many bytes go by before a dispatch comes to the same place again; 0 if they leave it in the nearest cache.

    Attributes:
        constants: the model's constants. More of them than the last cache holds come from memory, and so does all of
            what comes around only after them.
        others: inputs and results. The dispatches before have just written the former, to whichever core's cache.
    """

    constants: int = 0
    others: int = 0


def surroundings(extraction: Extraction, target: Target) -> Surroundings:
    """Where a model's dispatches find what they read."""
    hardware = target.hardware
    near = hardware.l2_bytes * hardware.cores
    if target.kind != "cpu" or not near:
        return Surroundings()
    constants, flowing = extraction.constant_bytes, extraction.flowing_bytes
    if constants + flowing <= near:
        return Surroundings()
    if 0 < hardware.l3_bytes < constants:
        constants = max(_FROM_MEMORY, 2 * hardware.l3_bytes)
    return Surroundings(_power_above(constants), min(_power_above(flowing), 2 * near))


def _power_above(size: int) -> int:
    """Rounded up, so that models of about the same size share what is measured."""
    return 1 << max(0, size - 1).bit_length() if size else 0


def placed(extraction: Extraction, around: Surroundings) -> Extraction:
    """The same dispatches, to be measured with their buffers where they are in the model."""
    made = []
    for entry in extraction.dispatches:
        spans = tuple(
            0 if binding.size_bytes < _LEAST_BYTES else around.constants if index in entry.constants else around.others
            for index, binding in enumerate(entry.workload.bindings)
        )
        made.append(replace(entry, workload=replace(entry.workload, spans=spans if any(spans) else ())))
    return replace(extraction, dispatches=tuple(made))
