"""IREE's TileAndFuse pipeline on tensor cores: contractions of 16-bit operands, in tiles of one mma instruction.

    #iree_gpu.lowering_config<{mma_kind = #iree_gpu.mma_layout<NV_MMA_SYNC_F32_16x8x16_F16>, workgroup = [64, 64, 0],
                               subgroup = [2, 4, 0], reduction = [0, 0, 2], promote_operands = [0, 1]}>

`subgroup` and `reduction` count instructions, not elements.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcl_iree.target import Target
from tcl_iree.transform_dialect.families.cuda_simt import STAGES, WARP, pipeline_options, tile_and_fuse
from tcl_iree.transform_dialect.family import Decision, Family
from tcl_iree.transform_dialect.gpu_root import annotate_root
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import Script
from tcl_iree.transform_dialect.view import plain_loops
from tcl_iree.workload.model import StructuredOp, Workload

# By type of the operands and of the accumulator; sm_80 and later have them.
_KINDS = {
    ("f16", "f32"): "NV_MMA_SYNC_F32_16x8x16_F16",
    ("f16", "f16"): "NV_MMA_SYNC_F16_16x8x16_F16",
    ("bf16", "f32"): "NV_MMA_SYNC_F32_16x8x16_BF16",
}
_M, _N, _K = 16, 8, 16
_OPERAND_BYTES = 2
_SPARE_REGISTERS = 40


@dataclass(frozen=True)
class _Dims:
    """The loops of a contraction that an instruction runs over, and which instruction."""

    m: int
    n: int
    k: int
    kind: str


class CudaMma(Family):
    """Warps of a workgroup, mma tiles of a warp, steps of k, stages of software pipelining."""

    name = "cuda_mma"

    def why_not(self, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        if target.kind != "cuda":
            return "it is for CUDA"
        if int(target.arch.removeprefix("sm_")) < 80:
            return "IREE uses tensor cores from sm_80 on"
        dims = _dims(workload.root)
        return dims if isinstance(dims, str) else None

    def decisions(self, workload: Workload, target: Target) -> tuple[Decision, ...]:
        """See `Family`."""
        return (
            Decision("m_warps", (1, 2, 4)),
            Decision("n_warps", (1, 2, 4)),
            Decision("m_tiles", (1, 2, 3, 4, 8)),
            Decision("n_tiles", (1, 2, 3, 4, 6, 8, 16)),
            Decision("k_tiles", (1, 2, 3, 4, 8)),
            Decision("stages", STAGES),
            Decision("pad_banks", (False, True)),
        )

    def why_illegal(self, schedule: Schedule, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        root, hardware = workload.root, target.hardware
        dims = _found(root)
        m, n, k = _tile(schedule)
        for loop, size in ((dims.m, m), (dims.n, n), (dims.k, k)):
            if root.loops[loop].size % size:
                return "a tile does not divide its loop"
        if (m + n) * k * _OPERAND_BYTES * max(1, schedule["stages"]) > hardware.shared_bytes:
            return "the operands' tiles do not fit shared memory"
        # A warp's accumulators and operand tiles, in 32-bit registers of one lane.
        held = schedule["m_tiles"] * schedule["n_tiles"] * (_M * _N // WARP)
        held += schedule["m_tiles"] * 4 + schedule["n_tiles"] * 2
        threads = schedule["m_warps"] * schedule["n_warps"] * WARP
        if held + _SPARE_REGISTERS > min(hardware.thread_registers, hardware.vector_registers // threads):
            return "a warp's tiles do not fit its registers"
        return None

    def emit(self, script: Script, schedule: Schedule, workload: Workload, target: Target) -> None:
        """See `Family`."""
        root = workload.root
        dims = _found(root)
        m, n, _ = _tile(schedule)
        others = [1 if loop.kind == "parallel" else 0 for loop in root.loops]
        workgroup = _placed(others, {dims.m: m, dims.n: n})
        subgroup = _placed(others, {dims.m: schedule["m_tiles"], dims.n: schedule["n_tiles"]})
        reduction = _placed([0] * len(root.loops), {dims.k: schedule["k_tiles"]})
        levels = f"mma_kind = #iree_gpu.mma_layout<{dims.kind}>, promote_operands = [0, 1], "
        levels += f"workgroup = {workgroup}, subgroup = {subgroup}, reduction = {reduction}"
        pipeline = tile_and_fuse(schedule["m_warps"] * schedule["n_warps"] * WARP)
        options = f", {{{pipeline_options(schedule)}}}"
        annotate_root(script, workload, f"#iree_gpu.lowering_config<{{{levels}}}>", pipeline + options)


def _tile(schedule: Schedule) -> tuple[int, int, int]:
    """A workgroup's tile in elements."""
    m = schedule["m_warps"] * schedule["m_tiles"] * _M
    return m, schedule["n_warps"] * schedule["n_tiles"] * _N, schedule["k_tiles"] * _K


def _placed(sizes: list[int], given: dict[int, int]) -> list[int]:
    return [given.get(loop, size) for loop, size in enumerate(sizes)]


def _dims(root: StructuredOp) -> _Dims | str:
    inputs = [operand for operand in root.operands if not operand.is_output and operand.shape]
    outputs = [operand for operand in root.operands if operand.is_output]
    if len(inputs) != 2 or len(outputs) != 1 or "mul" not in root.body or "add" not in root.body:
        return "the root is not a sum of products of two tensors"
    kind = _KINDS.get((inputs[0].dtype, outputs[0].dtype))
    if not kind or inputs[0].dtype != inputs[1].dtype:
        return "tensor cores take f16 and bf16 operands and accumulate in f32 (f16 also in f16)"
    loops = [plain_loops(operand) for operand in (*inputs, *outputs)]
    reductions = [index for index, loop in enumerate(root.loops) if loop.kind == "reduction"]
    if None in loops or len(reductions) != 1:
        return "the operands are not addressed by one loop each, or there is not just one reduction"
    first, second = set(loops[0] or []), set(loops[1] or [])
    m, n = sorted(first - second), sorted(second - first)
    if not m or not n:
        return "an operand has no dimension of its own"
    # The innermost of several; the others are taken one at a time.
    dims = _Dims(m[-1], n[-1], reductions[0], kind)
    sizes = ((dims.m, _M), (dims.n, _N), (dims.k, _K))
    if any(root.loops[loop].size % size for loop, size in sizes):
        return f"a dimension is no multiple of the instruction's {_M}x{_N}x{_K}"
    return dims


def _found(root: StructuredOp) -> _Dims:
    dims = _dims(root)
    assert isinstance(dims, _Dims)
    return dims
