"""Elementwise ops of any rank: broadcasts, transposes, gathers.

    for each workgroup, for each tile of rows x lanes: result tile = op(operand tiles)

Lanes are the result's contiguous loop. Rows are the loop that is contiguous in the largest operand: where that is
another one, the tile is transposed in registers, and both loads and stores are whole vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod

from tcl_iree.target import Target
from tcl_iree.transform_dialect.backend import lower_to_vectors_and_buffers
from tcl_iree.transform_dialect.cpu_limits import cpu_limits
from tcl_iree.transform_dialect.family import Decision, Family
from tcl_iree.transform_dialect.names import GENERIC
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import Script
from tcl_iree.transform_dialect.sizes import workgroup_tiles
from tcl_iree.transform_dialect.view import plain_loops
from tcl_iree.workload.model import Workload


@dataclass(frozen=True)
class Dims:
    """The loops by what they do.

    Attributes:
        stored: all loops as the result is laid out, outermost first.
        loaded: all loops as the largest operand is laid out; those it lacks come first.
        rows, lanes: the loops of a register tile; equal where there is but one loop.
    """

    stored: tuple[int, ...]
    loaded: tuple[int, ...]
    rows: int
    lanes: int


@cache
def elementwise_dims(workload: Workload) -> Dims | str:
    """The loops of a workload this family can schedule, or why it cannot."""
    root = workload.root
    if len(workload.ops) != 1 or any(loop.kind != "parallel" for loop in root.loops):
        return "it is not a single elementwise op"
    if not root.loops:
        return "it has no loops"
    outputs = [plain_loops(operand) for operand in root.operands if operand.is_output]
    stored = next((loops for loops in outputs if loops and len(set(loops)) == len(root.loops)), None)
    if stored is None or any(loops is None for loops in outputs):
        return "no result is addressed by every loop"
    inputs = [(prod(operand.shape), plain_loops(operand)) for operand in root.operands if not operand.is_output]
    _, read = max(((size, loops) for size, loops in inputs if loops), default=(0, stored), key=lambda pair: pair[0])
    loaded = [*(loop for loop in stored if loop not in read), *dict.fromkeys(read)]
    rows = loaded[-1] if loaded[-1] != stored[-1] else stored[-2] if len(stored) > 1 else stored[-1]
    return Dims(tuple(stored), tuple(loaded), rows, stored[-1])


class Elementwise(Family):
    """Register tiles of rows x lanes."""

    name = "elementwise"

    def why_not(self, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        if target.kind != "cpu":
            return "it is for CPUs"
        found = elementwise_dims(workload)
        return found if isinstance(found, str) else None

    def decisions(self, workload: Workload, target: Target) -> tuple[Decision, ...]:
        """See `Family`."""
        dims = _found(workload)
        limits = cpu_limits(target, _result_dtype(workload))
        sizes = [loop.size for loop in workload.root.loops]
        lanes = [width for width in (limits.lanes * f // 2 for f in (1, 2, 4, 8)) if 2 <= width <= sizes[dims.lanes]]
        rows = [count for count in (1, 2, 4, 8, 16) if count <= sizes[dims.rows]] if dims.rows != dims.lanes else [1]
        return (
            Decision("workgroup", workgroup_tiles(sizes, range(len(sizes)))),
            Decision("order", ("stores", "loads") if dims.loaded != dims.stored else ("stores",)),
            Decision("rows", tuple(rows)),
            Decision("lanes", tuple(lanes) or (sizes[dims.lanes],)),
        )

    def why_illegal(self, schedule: Schedule, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        limits = cpu_limits(target, _result_dtype(workload))
        needed = schedule["rows"] * -(-schedule["lanes"] // limits.lanes)
        if needed > limits.registers:
            return f"{needed} vectors of a tile do not fit {limits.registers} registers"
        return None

    def emit(self, script: Script, schedule: Schedule, workload: Workload, target: Target) -> None:
        """See `Family`."""
        dims, root = _found(workload), workload.root
        order = dims.stored if schedule["order"] == "stores" else dims.loaded
        script.phase("The op, its loops in the order they shall run.")
        (op,) = script.match([root.kind], "root")
        if root.kind != GENERIC:
            op = script.generalize(op, "root")
        if list(order) != sorted(order):
            op = script.interchange(op, order, "root")
        script.phase("Distribute to workgroups.")
        workgroup = schedule["workgroup"]
        op, _ = script.tile_forall(op, [workgroup[loop] for loop in order], "workgroup")
        script.phase("Register tiles, smaller ones for what is left over.")
        sizes = [workgroup[loop] or root.loops[loop].size for loop in range(len(root.loops))]
        tile = dict.fromkeys(order, 1) | {dims.rows: schedule["rows"]} | {dims.lanes: schedule["lanes"]}
        tiled = [loop for loop in order if tile[loop] < sizes[loop]]
        _, loops = script.tile(op, [tile[loop] if loop in tiled else 0 for loop in order], "tile")
        for loop, handle in reversed(list(zip(tiled, loops, strict=True))):
            if sizes[loop] % tile[loop]:
                script.peel(handle, "rest")
        script.canonicalize()
        lower_to_vectors_and_buffers(script)


def _found(workload: Workload) -> Dims:
    found = elementwise_dims(workload)
    assert not isinstance(found, str)
    return found


def _result_dtype(workload: Workload) -> str:
    return next(operand.dtype for operand in workload.root.operands if operand.is_output)
