"""IREE's TileAndFuse pipeline on plain CUDA cores: workgroup, thread and reduction tiles, operands in shared memory.

#iree_gpu.lowering_config<{workgroup = [32, 64, 0], thread = [4, 4, 0], reduction = [0, 0, 16],
                           promote_operands = [0, 1]}>
"""

from __future__ import annotations

from tcl_iree.target import Target
from tcl_iree.transform_dialect.family import Decision, Family
from tcl_iree.transform_dialect.gpu_grid import Grid, grid_for, grid_of
from tcl_iree.transform_dialect.gpu_root import annotate_root
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import Script
from tcl_iree.workload.model import StructuredOp, Workload

WARP = 32
# Stages of software pipelining; 0 keeps loads and arithmetic of one step together.
STAGES = (0, 2, 3)


class CudaSimt(Family):
    """Tile sizes for any root with parallel loops: contractions, convolutions, reductions, elementwise ops."""

    name = "cuda_simt"

    def why_not(self, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        if target.kind != "cuda":
            return "it is for CUDA"
        grid = grid_of(workload)
        return grid if isinstance(grid, str) else None

    def decisions(self, workload: Workload, target: Target) -> tuple[Decision, ...]:
        """See `Family`."""
        grid = grid_for(workload)
        if not _promotable(grid.root):
            return grid.decisions(target.hardware)
        return (
            *grid.decisions(target.hardware),
            Decision("promote", (False, True)),
            Decision("stages", STAGES),
            Decision("pad_banks", (False, True)),
        )

    def why_illegal(self, schedule: Schedule, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        grid, hardware = grid_for(workload), target.hardware
        if reason := grid.why_illegal(schedule, hardware, partial=True):
            return reason
        if not _promotable(grid.root):
            return None
        if not schedule["promote"]:
            unused = schedule["stages"] or schedule["pad_banks"]
            return "nothing is in shared memory that stages or padding could serve" if unused else None
        shared = sum(grid.shared_bytes(schedule, grid.root.operands[index]) for index in _promotable(grid.root))
        if shared * max(1, schedule["stages"]) > hardware.shared_bytes:
            return "the promoted operands do not fit shared memory"
        return None

    def emit(self, script: Script, schedule: Schedule, workload: Workload, target: Target) -> None:
        """See `Family`."""
        grid = grid_for(workload)
        levels = [f"workgroup = {grid.workgroup(schedule, others=1)}", f"thread = {grid.tile(schedule, others=1)}"]
        if grid.reductions:
            levels.append(f"reduction = {grid.steps(schedule)}")
        options = ""
        if promotable := _promotable(grid.root):
            if schedule["promote"]:
                levels.append(f"promote_operands = {promotable}")
            options = f", {{{pipeline_options(schedule)}}}"
        config = f"#iree_gpu.lowering_config<{{{', '.join(levels)}}}>"
        annotate_root(script, workload, config, tile_and_fuse(_thread_count(grid, schedule)) + options)


def tile_and_fuse(threads: int) -> str:
    """The pipeline with whole warps of threads."""
    return f"pipeline = #iree_gpu.pipeline<TileAndFuse> workgroup_size = [{threads}, 1, 1] subgroup_size = {WARP}"


def pipeline_options(schedule: Schedule) -> str:
    """Software pipelining and padding of shared memory rows against bank conflicts, as options of the pipeline."""
    unpadded = "false" if schedule["pad_banks"] else "true"
    stages = f"prefetch_num_stages = {schedule['stages']}"
    options = f"<{stages}, no_reduce_shared_memory_bank_conflicts = {unpadded}>"
    return f"gpu_pipeline_options = #iree_gpu.pipeline_options{options}"


def _thread_count(grid: Grid, schedule: Schedule) -> int:
    x, y, z = grid.threads(schedule)
    return -(-x * y * z // WARP) * WARP


def _promotable(root: StructuredOp) -> list[int]:
    """Operands worth a copy in shared memory: both of a contraction or convolution, which threads read repeatedly."""
    inputs = [index for index, operand in enumerate(root.operands) if not operand.is_output and operand.shape]
    reduces = any(loop.kind == "reduction" for loop in root.loops)
    return inputs if reduces and len(inputs) == 2 and "mul" in root.body else []
