"""Whole scripts for GPUs: workgroups, threads, a register tile each, accumulators in registers over the reductions.

forall workgroup (z, y, x)
  forall thread (z, y, x)
    for each reduction, by its step
      accumulators(tile) += operands(tile)      # unrolled into short vectors
    consumers(tile)                             # while the accumulators are still in registers
"""

from __future__ import annotations

from tcl_iree.target import Target
from tcl_iree.transform_dialect.family import Decision, Family
from tcl_iree.transform_dialect.gpu_grid import Grid, grid_for, grid_of
from tcl_iree.transform_dialect.gpu_root import find_ops, kind_on_gpu
from tcl_iree.transform_dialect.names import FILL, GENERIC, MARKER
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import Script
from tcl_iree.transform_dialect.view import View, indices, view_of
from tcl_iree.transform_dialect.vulkan_alignment import is_misaligned
from tcl_iree.workload.model import Workload


class GpuThreads(Family):
    """Tiles of a root and the elementwise ops after it, spread over workgroups and threads."""

    name = "gpu_threads"

    def why_not(self, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        if target.kind not in ("cuda", "vulkan"):
            return "it is for GPUs"
        grid, view = grid_of(workload), view_of(workload)
        if isinstance(grid, str):
            return grid
        if isinstance(view, str):
            return view
        if grid.idle:
            return "a grid has three dimensions, and the root has more parallel loops"
        if any(kind_on_gpu(op) not in (GENERIC, FILL) for op in workload.ops):
            return "an op is no generic"
        if target.kind == "vulkan" and (workload.gathers or grid.axes[0] in _scalar_loops(grid)):
            return "reads by index, or with a stride along x, do not become vectors of SPIR-V"
        return None

    def decisions(self, workload: Workload, target: Target) -> tuple[Decision, ...]:
        """See `Family`."""
        return grid_for(workload).decisions(target.hardware)

    def why_illegal(self, schedule: Schedule, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        grid = grid_for(workload)
        sizes = [max(pair) for pair in zip(grid.tile(schedule), grid.steps(schedule), strict=True)]
        if any(sizes[loop] > 1 for loop in _scalar_loops(grid)):
            return "a window's loops, and those with a stride, are taken one by one: more would not become vectors"
        if target.kind == "vulkan" and schedule["x_tile"] == 1 < grid.root.loops[grid.axes[0]].size:
            return "a thread's tile has no vector along x, which SPIR-V code is built of"
        if target.kind == "vulkan" and is_misaligned(workload, grid, schedule["x_tile"], windows=True):
            return "vectors along x would be read or written between two of the buffer's"
        return grid.why_illegal(schedule, target.hardware)

    def emit(self, script: Script, schedule: Schedule, workload: Workload, target: Target) -> None:
        """See `Family`."""
        grid, view = grid_for(workload), view_of(workload)
        assert isinstance(view, View)
        _distribute(script, schedule, grid, view)
        _lower_vectors(script, target)
        _lower_buffers(script, grid.threads(schedule), target)


def _scalar_loops(grid: Grid) -> set[int]:
    """Loops that address an operand together with another: a kernel's height and width, and outputs with a stride."""
    summed = [index for operand in grid.root.operands for index in indices(operand) if len(index) > 1]
    pairs = [pair for index in summed for pair in index.items()]
    return {loop for loop, factor in pairs if loop in grid.reductions or factor > 1}


def _distribute(script: Script, schedule: Schedule, grid: Grid, view: View) -> None:
    handles = find_ops(script, view.workload)
    # The op that writes the result is tiled; all before it are pulled in, last first.
    inner = [position for position in reversed(handles) if position != view.tail]
    for name, sizes, tile in (
        ("workgroup", grid.workgroup(schedule), script.tile_forall),
        ("thread", grid.tile(schedule), script.tile_threads),
    ):
        script.phase(f"One tile of the result for each {name}.")
        given = view.tail_sizes(dict(enumerate(sizes))) if view.chain else sizes
        handles[view.tail], loop = tile(handles[view.tail], given, name)
        for position in sorted(inner, reverse=True):
            op = view.workload.ops[position]
            handles[position], loop = script.fuse(handles[position], loop, op.role)
    for position in inner:
        if view.workload.ops[position].kind == FILL:
            # A generic loses its loops of one iteration as the root does, so that the two still fit.
            script.generalize(handles[position], "fill")
    if any(steps := grid.steps(schedule)):
        script.phase("Step through the reductions.")
        script.tile(handles[view.root], steps, "step")
    # Twice: dropping loops of one iteration makes shapes static that hide more of them.
    script.canonicalize(fold_units=True)
    script.canonicalize(fold_units=True)


def _lower_vectors(script: Script, target: Target) -> None:
    script.phase("Vectors: accumulators become values that loops carry.")
    script.run_pass("iree-codegen-generic-vectorization", enable_vector_masking=False)
    if target.kind == "vulkan":  # SPIR-V has vectors of up to four: unroll to them first
        script.run_pass("iree-spirv-initial-vector-lowering")
        script.run_pass("cse")
    script.run_pass("iree-codegen-optimize-tensor-insert-extract-slices")
    if target.kind == "vulkan":
        script.run_pass("iree-spirv-final-vector-lowering")
    script.run_pass("canonicalize")
    script.run_pass("cse")


def _lower_buffers(script: Script, threads: list[int], target: Target) -> None:
    script.phase("Buffers, workgroups and threads.")
    script.iree_op("eliminate_empty_tensors")
    script.iree_op("bufferize", result=True, target_gpu="unit")
    script.iree_op("forall_to_workgroup")
    dims = ", ".join(map(str, threads))
    script.iree_op("map_nested_forall_to_gpu_threads", workgroup_dims=f"array<i64: {dims}>")
    script.canonicalize()
    script.run_pass("fold-memref-alias-ops")
    script.canonicalize()
    if target.kind == "vulkan":  # the op above asks for warps of 32, which not every device has
        pipeline = f"pipeline = #iree_codegen.no_pipeline workgroup_size = {threads}"
        script.annotate(script.function, "translation_info", f"#iree_codegen.translation_info<{pipeline}>")
    # A tile that is not in registers would be one in shared memory, which all threads of a workgroup write.
    script.require_none(["memref.alloc"], "accumulators")
    script.annotate(script.function, MARKER)
