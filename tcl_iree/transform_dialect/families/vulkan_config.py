"""IREE's BaseVectorize pipeline for Vulkan with other tile sizes.

#iree_codegen.lowering_config<tile_sizes = [[16, 256], [8, 8], [0, 0, 4]]>      workgroup_size = [32, 2, 1]
"""

from __future__ import annotations

from tcl_iree.target import Target
from tcl_iree.transform_dialect.family import Decision, Family
from tcl_iree.transform_dialect.gpu_grid import grid_for, grid_of
from tcl_iree.transform_dialect.gpu_root import annotate_root
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import Script
from tcl_iree.transform_dialect.vulkan_alignment import is_misaligned
from tcl_iree.workload.model import Workload


class VulkanConfig(Family):
    """Tile sizes for any root with parallel loops."""

    name = "vulkan_config"

    def why_not(self, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        if target.kind != "vulkan":
            return "it is for Vulkan"
        if workload.gathers:
            return "reads by index do not become vectors of SPIR-V"
        grid = grid_of(workload)
        return grid if isinstance(grid, str) else None

    def decisions(self, workload: Workload, target: Target) -> tuple[Decision, ...]:
        """See `Family`."""
        return grid_for(workload).decisions(target.hardware)

    def why_illegal(self, schedule: Schedule, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        grid = grid_for(workload)
        # The pipeline leaves windows scalar.
        if is_misaligned(workload, grid, schedule["x_tile"], windows=False):
            return "vectors along x would be read or written between two of the buffer's"
        return grid.why_illegal(schedule, target.hardware)

    def emit(self, script: Script, schedule: Schedule, workload: Workload, target: Target) -> None:
        """See `Family`."""
        grid = grid_for(workload)
        levels = [grid.workgroup(schedule, others=1), grid.tile(schedule, others=1)]
        if grid.reductions:
            levels.append(grid.steps(schedule))
        config = f"#iree_codegen.lowering_config<tile_sizes = {levels}>"
        pipeline = f"pipeline = #iree_gpu.spirv_pipeline<BaseVectorize> workgroup_size = {grid.threads(schedule)}"
        annotate_root(script, workload, config, pipeline)
