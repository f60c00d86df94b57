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
        constants: of a model with more of them than the last cache holds, they come from memory.
        others: inputs and results. The dispatches before have just written the former, to whichever core's cache.
    """

    constants: int = 0
    others: int = 0


def surroundings(extraction: Extraction, target: Target) -> Surroundings:
    """Where a model's dispatches find what they read."""
    hardware = target.hardware
    near, last = hardware.l2_bytes * hardware.cores, hardware.l3_bytes
    constants, flowing = extraction.constant_bytes, extraction.flowing_bytes
    if target.kind != "cpu" or not near or constants + flowing <= near:
        return Surroundings()
    # Half of the last cache is surely still in it, whatever else is.
    others = min(_power_above(flowing), 2 * near, last // 2 or 2 * near)
    if constants > last:
        return Surroundings(max(_FROM_MEMORY, 2 * last), others)
    return Surroundings(max(min(_power_above(constants), last // 2), others) if constants else 0, others)


def placed(extraction: Extraction, around: Surroundings) -> Extraction:
    """The same dispatches, to be measured with their buffers where they are in the model."""
    made = []
    for entry in extraction.dispatches:
        sizes = [binding.size_bytes for binding in entry.workload.bindings]
        large = {index for index, size in enumerate(sizes) if size >= _LEAST_BYTES}
        spans = [0] * len(sizes)
        for bytes_, own in (
            (around.constants, large & set(entry.constants)),
            (around.others, large - set(entry.constants)),
        ):
            for index in own:  # together they take as much
                spans[index] = max(1, bytes_ * sizes[index] // sum(sizes[each] for each in own)) if bytes_ else 0
        made.append(replace(entry, workload=replace(entry.workload, spans=tuple(spans) if any(spans) else ())))
    return replace(extraction, dispatches=tuple(made))


def _power_above(size: int) -> int:
    """Rounded up, so that models of about the same size share what is measured."""
    return 1 << max(0, size - 1).bit_length() if size else 0
