"""How the loops of a root become a grid of workgroups and threads, and what a GPU allows of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod

from tcl_iree.hardware import Hardware
from tcl_iree.transform_dialect.family import Decision
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.sizes import divisors, spread
from tcl_iree.transform_dialect.view import element_bytes, indices
from tcl_iree.workload.model import Operand, StructuredOp, Workload

_AXES = "xyz"
_THREADS = (1, 2, 4, 7, 8, 14, 16, 28, 32, 64, 128)
_WARP = 32
_TILES = (1, 2, 3, 4, 5, 7, 8, 14, 16)
# Where a thread can hold it beside a tile of the other axis.
_WIDE_TILE = 32
_STEPS = (1, 2, 3, 4, 7, 8, 16, 32)
_MAX_Z_THREADS = 64
# Thread tiles are unrolled; larger ones take minutes to compile and only spill.
_MAX_UNROLLED = 2048
# What a thread needs for addresses and loop counters beside its tile.
_SPARE_REGISTERS = 24


@dataclass(frozen=True)
class Grid:
    """The root's last parallel loops that run more than once, up to three, the innermost along x.

    A schedule decides `x_threads` and `x_tile` for each axis, a workgroup covering their product, and a `step` for each
    reduction; all other parallel loops are taken one iteration at a time.

    Attributes:
        axes: the loop along each axis, x first.
    """

    root: StructuredOp
    axes: tuple[int, ...]

    @property
    def reductions(self) -> list[int]:
        """The root's reduction loops."""
        return [index for index, loop in enumerate(self.root.loops) if loop.kind == "reduction"]

    @property
    def idle(self) -> list[int]:
        """Parallel loops that are on no axis and run more than once."""
        return [
            index
            for index, loop in enumerate(self.root.loops)
            if loop.kind == "parallel" and loop.size > 1 and index not in self.axes
        ]

    def decisions(self, hardware: Hardware) -> tuple[Decision, ...]:
        """Threads and tile of every axis, a step for every reduction."""
        found = []
        wanted = (*_TILES, _WIDE_TILE) if hardware.thread_registers > _WIDE_TILE * _TILES[-1] else _TILES
        for axis, loop in zip(_AXES, self.axes, strict=False):
            size = self.root.loops[loop].size
            threads = [count for count in _THREADS if count <= size] if _is_awkward(size) else _near(size, _THREADS)
            if max(threads) < min(size, _WARP):  # 1000, which 8 divides and 16 does not
                threads += [count for count in divisors(size) if max(threads) < count <= _THREADS[-1]]
            tiles = [tile for tile in wanted if tile <= size] if _is_awkward(size) else _near(size, wanted)
            found += [Decision(f"{axis}_threads", tuple(threads)), Decision(f"{axis}_tile", tuple(tiles))]
        for loop in self.reductions:
            found.append(Decision(f"step{loop}", spread(_near(self.root.loops[loop].size, _STEPS), 8)))
        return tuple(found)

    def threads(self, schedule: Schedule) -> list[int]:
        """Threads of a workgroup along x, y and z."""
        given = [schedule[f"{axis}_threads"] for axis in _AXES[: len(self.axes)]]
        return [*given, 1, 1, 1][:3]

    def tile(self, schedule: Schedule, others: int = 0) -> list[int]:
        """Size of one thread's tile in each of the root's loops; `others` for parallel loops on no axis."""
        sizes = [others if loop.kind == "parallel" else 0 for loop in self.root.loops]
        for axis, loop in zip(_AXES, self.axes, strict=False):
            sizes[loop] = schedule[f"{axis}_tile"]
        return sizes

    def workgroup(self, schedule: Schedule, others: int = 0) -> list[int]:
        """Size of a workgroup's tile in each of the root's loops; `others` for parallel loops on no axis."""
        sizes = self.tile(schedule, others)
        for axis, loop in zip(_AXES, self.axes, strict=False):
            sizes[loop] *= schedule[f"{axis}_threads"]
        return sizes

    def steps(self, schedule: Schedule) -> list[int]:
        """Iterations of each reduction taken at once."""
        return [schedule[f"step{i}"] if loop.kind == "reduction" else 0 for i, loop in enumerate(self.root.loops)]

    def shared_bytes(self, schedule: Schedule, operand: Operand) -> int:
        """Bytes of what one workgroup reads of an operand in one step of the reductions."""
        extents = [max(1, *pair) for pair in zip(self.workgroup(schedule, 1), self.steps(schedule), strict=True)]
        dims = (1 + sum(factor * (extents[loop] - 1) for loop, factor in index.items()) for index in indices(operand))
        return prod(dims) * element_bytes(operand)

    def why_illegal(self, schedule: Schedule, hardware: Hardware, partial: bool = False) -> str | None:
        """Which limit a schedule breaks, or None.

        Args:
            partial: whether workgroups may reach over the end of a loop that hardly divides (a prime).
        """
        for loop, size in enumerate(self.workgroup(schedule)):
            extent = self.root.loops[loop].size
            if size and extent % size and not (partial and _is_awkward(extent) and size <= extent):
                return "a workgroup's tile does not divide its loop"
        x, y, z = self.threads(schedule)
        threads = x * y * z
        if threads > hardware.max_threads or z > _MAX_Z_THREADS:
            return f"a workgroup has more threads than {hardware.max_threads}, or than {_MAX_Z_THREADS} along z"
        if threads < min(hardware.vector_bytes // 4, prod(self.root.loops[loop].size for loop in self.axes)):
            return "a workgroup does not fill a warp"
        held = [size or 1 for size in self.tile(schedule)]
        registers = min(hardware.thread_registers, hardware.vector_registers // threads or 1)
        if hardware.isa == "spirv":  # devices differ; what one holds is not known
            registers = hardware.thread_registers
        if prod(held) + sum(held) + _SPARE_REGISTERS > registers:
            return "a thread's tile does not fit its registers"
        if prod(held) * prod(step or 1 for step in self.steps(schedule)) > _MAX_UNROLLED:
            return "a thread's unrolled code is too long"
        return None


@cache
def grid_of(workload: Workload) -> Grid | str:
    """The grid of a workload's root, or why it has none."""
    root = workload.root
    if not root.kind.startswith("linalg.") or root.kind == "linalg.softmax":
        return "the root is no op with plain loops"
    axes = [index for index, loop in enumerate(root.loops) if loop.kind == "parallel" and loop.size > 1][-3:]
    return Grid(root, tuple(reversed(axes))) if axes else "the root has no parallel loop"


def grid_for(workload: Workload) -> Grid:
    """The grid of a workload that is known to have one."""
    grid = grid_of(workload)
    assert isinstance(grid, Grid)
    return grid


def _is_awkward(size: int) -> bool:
    """Whether no divisor is of use as a tile."""
    return size > 16 and not any(4 <= divisor <= 64 for divisor in divisors(size))


def _near(size: int, wanted: tuple[int, ...]) -> list[int]:
    """The wanted numbers that divide a loop; the loop itself if it is short and none but 1 does."""
    found = [number for number in wanted if size % number == 0]
    return found if len(found) > 1 or size > wanted[-1] else sorted({1, size})
