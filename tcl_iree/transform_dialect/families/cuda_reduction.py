"""IREE's VectorDistribute pipeline for reductions along a contiguous dimension: warps of a workgroup share one row.

    #iree_gpu.lowering_config<{workgroup = [1, 0], partial_reduction = [0, 384], thread = [0, 4],
                               subgroup_basis = [[1, 3], [0, 1]], lane_basis = [[1, 32], [0, 1]]}>

Each lane adds up a few neighbours, lanes of a warp add up by shuffles, warps through shared memory.
"""

from __future__ import annotations

from tcl_iree.target import Target
from tcl_iree.transform_dialect.families.cuda_simt import WARP
from tcl_iree.transform_dialect.family import Decision, Family
from tcl_iree.transform_dialect.gpu_root import annotate_root
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import Script
from tcl_iree.transform_dialect.view import element_bytes, plain_loops
from tcl_iree.workload.model import StructuredOp, Workload

# A lane reads at most this much at once.
_LOAD_BYTES = 16


class CudaReduction(Family):
    """Warps of a row, neighbours of a lane, steps taken at once."""

    name = "cuda_reduction"

    def why_not(self, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        if target.kind != "cuda":
            return "it is for CUDA"
        if any(op.role in ("producer", "consumer") for op in workload.ops):
            return "what is fused to a reduction would need a config of its own"
        root = workload.root
        inputs = [operand for operand in root.operands if not operand.is_output and operand.shape]
        reductions = [index for index, loop in enumerate(root.loops) if loop.kind == "reduction"]
        if len(reductions) != 1 or len(reductions) == len(root.loops) or not inputs:
            return "the root is not a reduction of rows along one loop"
        if any((plain_loops(operand) or [-1])[-1] != reductions[0] for operand in inputs):
            return "what is reduced is not contiguous along the reduction"
        if not any(len(operand.shape) == len(root.loops) for operand in inputs):
            return "every row would be read many times"
        if root.loops[reductions[0]].size % WARP:
            return "rows are no multiple of a warp"
        return None

    def decisions(self, workload: Workload, target: Target) -> tuple[Decision, ...]:
        """See `Family`."""
        widest = max(1, _LOAD_BYTES // max(element_bytes(operand) for operand in workload.root.operands))
        return (
            Decision("warps", (1, 2, 3, 4, 6, 8, 16)),
            Decision("neighbours", tuple(width for width in (1, 2, 4, 8) if width <= widest)),
        )

    def why_illegal(self, schedule: Schedule, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        size = next(loop.size for loop in workload.root.loops if loop.kind == "reduction")
        if size % _step(schedule):
            return "a step of all warps does not divide the rows"
        return "too many threads" if schedule["warps"] * WARP > target.hardware.max_threads else None

    def emit(self, script: Script, schedule: Schedule, workload: Workload, target: Target) -> None:
        """See `Family`."""
        root = workload.root
        order = list(range(len(root.loops)))
        levels = [
            f"workgroup = {_placed(root, 0, 1)}",
            f"partial_reduction = {_placed(root, _step(schedule), 0)}",
            f"thread = {_placed(root, schedule['neighbours'], 0)}",
            f"subgroup_basis = [{_placed(root, schedule['warps'], 1)}, {order}]",
            f"lane_basis = [{_placed(root, WARP, 1)}, {order}]",
        ]
        threads = schedule["warps"] * WARP
        pipeline = f"pipeline = #iree_gpu.pipeline<VectorDistribute> workgroup_size = [{threads}, 1, 1]"
        config = f"#iree_gpu.lowering_config<{{{', '.join(levels)}}}>"
        annotate_root(script, workload, config, f"{pipeline} subgroup_size = {WARP}")


def _step(schedule: Schedule) -> int:
    """Elements of a row that all lanes take at once."""
    return int(schedule["warps"] * schedule["neighbours"] * WARP)


def _placed(root: StructuredOp, reduction: int, parallel: int) -> list[int]:
    return [reduction if loop.kind == "reduction" else parallel for loop in root.loops]
