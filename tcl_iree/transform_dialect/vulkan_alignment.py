"""Which vectors Vulkan code would read from the wrong place.

IREE's SPIR-V back end (pass `iree-spirv-vectorize-load-store` of 3.13) makes a buffer one of vectors of two or four
where every access is such a vector and rows are a multiple of it, and divides indices by that size. An access that
starts between two vectors, as a window's next position or the inside of a padded row does, is then rounded down:

    row of 16, tile of 2 along x, kernel column 1:   a[h, 2 * x + 1 .. 2 * x + 2]  becomes  a[h, 2 * x .. 2 * x + 1]
"""

from __future__ import annotations

from tcl_iree.transform_dialect.gpu_grid import Grid
from tcl_iree.transform_dialect.view import indices
from tcl_iree.workload.model import Workload


def is_misaligned(workload: Workload, grid: Grid, x_tile: int, windows: bool) -> bool:
    """Whether a tile along x would be read or written between two vectors.

    Args:
        windows: whether reads of a window become vectors.
    """
    width = 4 if x_tile % 4 == 0 else 2 if x_tile % 2 == 0 else 1
    rows = _shifted_rows(workload) | (_window_rows(grid) if windows else set())
    return width > 1 and any(row % width == 0 for row in rows)


def _window_rows(grid: Grid) -> set[int]:
    """Row lengths of operands that x addresses together with another loop."""
    inner = [(indices(operand)[-1], operand.shape[-1]) for operand in grid.root.operands if operand.shape]
    return {row for index, row in inner if grid.axes[0] in index and len(index) > 1}


def _shifted_rows(workload: Workload) -> set[int]:
    """Row lengths of buffers of which the dispatch reads or writes only a part, at whatever offset that lies."""
    whole = {operand.shape for op in workload.ops for operand in op.operands}
    return {binding.shape[-1] for binding in workload.bindings if binding.shape and binding.shape not in whole}
