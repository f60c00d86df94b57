"""What a dispatch must compute: random inputs, and what the reference makes of them.

Every candidate of a workload is held against the same, so the first one's process works it out and leaves it in files;
the others map them, read-only.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import iree.runtime as runtime
import numpy as np

from tcl_iree.measure.copies import copies
from tcl_iree.measure.device import Buffers, Kernel
from tcl_iree.measure.inputs import make_buffers, to_float
from tcl_iree.workload.model import Workload

DRAWS = (1, 2)
# More than this is not worth its place on the disk.
_MOST_BYTES = 256 << 20


@dataclass(frozen=True)
class Draw:
    """One draw of inputs.

    Attributes:
        buffers: one array a binding; NaN, or a pattern, where it is only written.
        wanted: what the reference leaves in each binding that is written.
    """

    seed: int
    buffers: list[np.ndarray]
    wanted: dict[int, np.ndarray]


def expectation(place: Path, workload: Workload, reference: Kernel, device: runtime.HalDevice) -> list[Draw]:
    """The draws of a workload: from `place` if they are there, else worked out and left there."""
    if not place.is_dir():
        made = _worked_out(workload, reference, device)
        if not _left(place, made):
            return made
    return [_read(place, workload, seed) for seed in DRAWS]


def written(workload: Workload) -> list[int]:
    """The bindings that a dispatch writes."""
    return [index for index, binding in enumerate(workload.bindings) if binding.access != "readonly"]


def one_run(device: runtime.HalDevice, workload: Workload, arrays: list[np.ndarray]) -> Buffers:
    """Buffers to run a kernel once or twice and look at what it gives."""
    return Buffers(device, arrays, 1 if copies(workload) else None)


def _worked_out(workload: Workload, reference: Kernel, device: runtime.HalDevice) -> list[Draw]:
    """Inputs are kept positive if the reference makes something infinite of those of either sign."""
    made = [_draw(workload, reference, device, seed, positive=False) for seed in DRAWS]
    finite = all(
        np.isfinite(to_float(array, workload.bindings[index].dtype)).all()
        for draw in made
        for index, array in draw.wanted.items()
    )
    return made if finite else [_draw(workload, reference, device, seed, positive=True) for seed in DRAWS]


def _draw(workload: Workload, reference: Kernel, device: runtime.HalDevice, seed: int, positive: bool) -> Draw:
    arrays = make_buffers(workload, seed, positive)
    buffers = one_run(device, workload, arrays)
    reference(buffers)
    return Draw(seed, arrays, {index: buffers.read(index) for index in written(workload)})


def _left(place: Path, draws: list[Draw]) -> bool:
    """Whether the draws are in files now; a full disk costs no more than working them out again."""
    arrays = {f"{draw.seed}-{index}": array for draw in draws for index, array in enumerate(draw.buffers)}
    arrays |= {f"{draw.seed}-{index}-wanted": array for draw in draws for index, array in draw.wanted.items()}
    if sum(array.nbytes for array in arrays.values()) > _MOST_BYTES:
        return False
    begun = place.with_name(f"{place.name}.{os.getpid()}")
    try:
        begun.mkdir()
        for name, array in arrays.items():
            np.save(begun / f"{name}.npy", array)
        begun.rename(place)
    except OSError:
        shutil.rmtree(begun, ignore_errors=True)
        return False
    return True


def _read(place: Path, workload: Workload, seed: int) -> Draw:
    def read(name: str) -> np.ndarray:
        return np.load(place / f"{seed}-{name}.npy", mmap_mode="r")

    buffers = [read(f"{index}") for index in range(len(workload.bindings))]
    return Draw(seed, buffers, {index: read(f"{index}-wanted") for index in written(workload)})
