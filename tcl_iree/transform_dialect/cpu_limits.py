"""What a CPU target allows a script: vector registers, and stack for buffers inside a dispatch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tcl_iree.target import Target
from tcl_iree.workload.model import DTYPE_BYTES

# What schedules may ask for at compile time; IREE's own default is half of it.
STACK_LIMIT_BYTES = 64 << 10
# Worker threads of the stock runtime have 128 KiB in all, for these buffers and everything else.
_SAFE_STACK_BYTES = 48 << 10
_BUSY_ACCUMULATORS = 6
_MAX_WORKGROUPS = 512


def stack_flag(limit: int) -> str:
    """The compile flag that lets a dispatch use this many bytes of stack."""
    return f"--iree-llvmcpu-stack-allocation-limit={limit}"


STACK_FLAG = stack_flag(STACK_LIMIT_BYTES)


@dataclass(frozen=True)
class CpuLimits:
    """Limits for one element type.

    Attributes:
        lanes: elements in one vector register.
        registers: vector registers.
        threads: worker threads.
    """

    lanes: int
    registers: int
    threads: int = 1

    def accumulators(self, rows: int, lanes: int) -> int:
        """Vector registers that a register tile takes."""
        return rows * -(-lanes // self.lanes)

    def why_not_accumulators(self, rows: int, lanes: int) -> str | None:
        """Why a register tile does not fit, or None if it does: some registers are needed for operands."""
        needed = self.accumulators(rows, lanes)
        if needed > self.registers - 4:
            return f"{needed} accumulators do not fit {self.registers} vector registers"
        return None

    def why_not_busy(self, rows: int, lanes: int, most: int) -> str | None:
        """Why a register tile is too small, or None if it is not or there is no larger one.

        Sums wait for the sum before them; with fewer than this many at once the arithmetic units stand idle.

        Args:
            most: accumulators of the largest tile that can be chosen.
        """
        enough = min(_BUSY_ACCUMULATORS, most)
        if self.accumulators(rows, lanes) < enough:
            return f"fewer than {enough} accumulators leave the arithmetic units idle"
        return None

    def why_not_workgroups(self, count: int, most: int) -> str | None:
        """Why so many workgroups are too few or too many, or None; `most` is how many can be chosen."""
        if count < min(self.threads, most):
            return f"{count} workgroups leave threads without work"
        if count > _MAX_WORKGROUPS:
            return f"{count} workgroups cost more to start than they are worth"
        return None

    def why_not_stack(self, needed: int) -> str | None:
        """Why buffers of this many bytes are too many, or None if they are not."""
        if needed > _SAFE_STACK_BYTES:
            return f"{needed} bytes of buffers are more than the {_SAFE_STACK_BYTES} that stock worker threads can take"
        return None


@cache
def cpu_limits(target: Target, dtype: str) -> CpuLimits:
    """Limits of a CPU target for an element type."""
    hardware = target.hardware
    return CpuLimits(max(1, hardware.vector_bytes // DTYPE_BYTES[dtype]), hardware.vector_registers, target.threads)
