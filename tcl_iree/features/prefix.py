"""What stands in front of every script: the target, and the workload's ops, loops and operands, as rows of numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tcl_iree.features.vocabulary import COLUMNS
from tcl_iree.target import Target
from tcl_iree.transform_dialect.view import Index, indices
from tcl_iree.workload.model import DTYPE_BYTES, Operand, StructuredOp, Workload
from tcl_iree.workload.structure import ATTENTION, SOFTMAX

_ISA = {"avx512", "avx2", "sse4", "neon"}


@dataclass(frozen=True)
class PrefixRow:
    """One row; what its numbers mean is said where it is made."""

    kind: str
    role: str
    numbers: tuple[float, ...]


def prefix(workload: Workload, target: Target) -> list[PrefixRow]:
    """Rows that all scripts of one workload on one target share."""
    rows = [_target_row(target)]
    rows += [_op_row(op) for op in workload.ops if op.role != "fill"]
    root = workload.root
    lanes = max(1, target.hardware.vector_bytes // DTYPE_BYTES.get(root.operands[-1].dtype, 4))
    rows += [_loop_row(root, number, lanes) for number in range(len(root.loops))]
    rows += [_operand_row(root, operand, target) for operand in root.operands if operand.shape]
    return rows


def log2(number: float) -> float:
    """Logarithm on a scale a network can use; 0 for nothing."""
    return math.log2(number) / 8.0 if number > 0 else 0.0


def _row(kind: str, role: str, *numbers: float) -> PrefixRow:
    return PrefixRow(kind, role, (*numbers, *(0.0 for _ in range(COLUMNS - len(numbers)))))


def target_kind(target: Target) -> str:
    """The kind of a target's row: its instruction set, or the kind of device."""
    isa = target.hardware.isa
    return f"target:{isa if isa in _ISA else target.kind if target.kind != 'cpu' else 'other'}"


def _target_row(target: Target) -> PrefixRow:
    """Vector width and registers, cores, L1, L2, shared memory, threads of a workgroup, registers of a thread."""
    hardware = target.hardware
    return _row(
        target_kind(target), "", log2(hardware.vector_bytes), log2(hardware.vector_registers), log2(hardware.cores),
        log2(hardware.l1_bytes) - 1.5, log2(hardware.l2_bytes) - 2.0, log2(hardware.shared_bytes) / 2,
        log2(hardware.max_threads), log2(hardware.thread_registers),
    )  # fmt: skip


def _op_row(op: StructuredOp) -> PrefixRow:
    """Size of its iteration space, work a point, loops, reductions, operands."""
    reductions = sum(loop.kind == "reduction" for loop in op.loops)
    return _row(
        f"op:{_op_class(op)}", op.role, log2(op.points) / 3, log2(op.flops / max(1, op.points)), len(op.loops) / 8,
        reductions / 4, sum(bool(operand.shape) for operand in op.operands) / 4,
    )  # fmt: skip


def _loop_row(op: StructuredOp, number: int, lanes: int) -> PrefixRow:
    """Size, whether vectors divide it, and how the operands depend on it."""
    loop = op.loops[number]
    touched = [operand for operand in op.operands if operand.shape and _factor(operand, number)]
    contiguous = [operand for operand in touched if indices(operand)[-1].get(number) == 1]
    twos = (loop.size & -loop.size).bit_length() - 1
    return _row(
        "loop", "", log2(loop.size), float(loop.size % lanes == 0), min(twos, 8) / 8.0, loop.kind == "reduction",
        (len(op.loops) - 1 - number) / 4, len(touched) / 4, len(contiguous) / 4,
        max((_factor(operand, number) for operand in touched), default=0) / 4,
    )  # fmt: skip


def _operand_row(op: StructuredOp, operand: Operand, target: Target) -> PrefixRow:
    """Size, size beside the caches, how often each element is used, and what runs along its innermost dimension."""
    elements, width = math.prod(operand.shape), DTYPE_BYTES.get(operand.dtype, 4)
    dims: list[Index] = indices(operand)
    inner = dims[-1] if dims else {}
    innermost = max(inner, default=0)
    reuse = math.prod(loop.size for number, loop in enumerate(op.loops) if not _factor(operand, number))
    return _row(
        "operand", "", log2(elements) / 3, log2(elements * width / max(1, target.hardware.l2_bytes)), log2(reuse) / 2,
        width / 8, operand.is_output, len(operand.shape) / 4, op.loops[innermost].kind == "reduction",
        any(len(index) > 1 for index in dims),
    )  # fmt: skip


def _factor(operand: Operand, loop: int) -> int:
    return max((index.get(loop, 0) for index in indices(operand)), default=0)


def _op_class(op: StructuredOp) -> str:
    named = {ATTENTION: "attention", SOFTMAX: "softmax"}
    return named.get(op.kind) or (op.computes if op.kind.startswith("linalg.") else "other")
