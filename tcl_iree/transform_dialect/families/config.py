"""IREE's own CPU pipelines with other tile sizes: the family that has something to offer for any root with loops.

The script only annotates the root with a `lowering_config` and a pipeline, or with a textual pass pipeline; IREE does
the rest. A config says, for every loop, how it is distributed, tiled for registers, and reduced.
"""

from __future__ import annotations

from tcl_iree.target import Target
from tcl_iree.transform_dialect.cpu_limits import cpu_limits
from tcl_iree.transform_dialect.family import Decision, Family
from tcl_iree.transform_dialect.names import MARKER
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import Script
from tcl_iree.transform_dialect.sizes import divisors, spread
from tcl_iree.workload.model import StructuredOp, Workload

# IREE refuses vectors of more than this many native vectors.
_MAX_NATIVE_VECTORS = 64
_TEXTUAL = (
    "iree-codegen-tile-and-distribute-to-workgroups-using-forall-op,"
    "iree-codegen-bufferize-dispatch-tensor-load-store,canonicalize,cse,"
    "iree-llvmcpu-tile-and-fuse-producer-consumer{tiling-level=vector_common_parallel anchor-on-root-op=true},"
    "iree-llvmcpu-tile-and-fuse-producer-consumer{tiling-level=vector_reduction anchor-on-root-op=true "
    "only-fuse-producer-input-operands=true},"
    "iree-codegen-forall-to-for,iree-codegen-generic-vectorization,canonicalize,cse,"
    "iree-codegen-llvmcpu-bufferization-pipeline,iree-codegen-llvmcpu-vector-lowering-pipeline"
)
# Named by what users see; each is a `translation_info`.
_PIPELINES = {
    "double_tiling": "<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>>",
    "double_tiling_peeled": "<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>, {enable_loop_peeling}>",
    "passes": f'<pipeline = #iree_codegen.pass_pipeline<"{_TEXTUAL}">>',
}


class Config(Family):
    """Tile sizes for IREE's own pipelines."""

    name = "config"

    def why_not(self, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        root = workload.root
        if target.kind != "cpu":
            return "it is for CPUs"
        if not root.kind.startswith("linalg.") or root.kind == "linalg.softmax":
            return "IREE takes no config for the root"
        if not any(loop.kind == "parallel" for loop in root.loops):
            return "the root has no parallel loop"
        reduces = any(loop.kind == "reduction" for loop in root.loops)
        products = "mul" in root.body and sum(bool(o.shape) and not o.is_output for o in root.operands) > 1
        if reduces and not products and any(op.role in ("producer", "consumer") for op in workload.ops):
            return "IREE would not tile what is fused to a reduction"
        if any(sign in operand.map.partition("->")[2] for operand in root.operands for sign in "+*"):
            return "IREE rebuilds convolutions after a config was set on them, and loses it"
        return None

    def decisions(self, workload: Workload, target: Target) -> tuple[Decision, ...]:
        """See `Family`."""
        limits = cpu_limits(target, workload.root.operands[-1].dtype)
        found = [Decision("pipeline", tuple(_PIPELINES))]
        innermost = max(index for index, loop in enumerate(workload.root.loops) if loop.kind == "parallel")
        for index, loop in enumerate(workload.root.loops):
            if loop.kind == "parallel":
                found.append(Decision(f"workgroup{index}", (0, *spread(divisors(loop.size), 8))))
                found.append(Decision(f"tile{index}", _tiles(loop.size, limits.lanes, index == innermost)))
            else:
                steps = [size for size in (1, 2, 4, 8, limits.lanes, 2 * limits.lanes) if size <= loop.size]
                found.append(Decision(f"step{index}", tuple(sorted(set(steps)))))
        return tuple(found)

    def why_illegal(self, schedule: Schedule, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        root = workload.root
        limits = cpu_limits(target, root.operands[-1].dtype)
        elements = 1
        for index, loop in enumerate(root.loops):
            size = schedule[f"tile{index}"] if loop.kind == "parallel" else schedule[f"step{index}"]
            elements *= size
            workgroup = schedule[f"workgroup{index}"] if loop.kind == "parallel" else 0
            if workgroup and size > workgroup:
                return "a register tile is larger than its workgroup's"
        if elements > _MAX_NATIVE_VECTORS * limits.lanes:
            return "vectors are too large"
        if schedule["pipeline"] == "passes" and any(_left_over(root, schedule)):
            return "the textual pipeline takes only tiles that divide their loop"
        if sum(schedule[f"workgroup{i}"] > 0 for i, loop in enumerate(root.loops) if loop.kind == "parallel") > 3:
            return "workgroups have three dimensions at most"
        return None

    def emit(self, script: Script, schedule: Schedule, workload: Workload, target: Target) -> None:
        """See `Family`."""
        root = workload.root
        same_kind = [op for op in workload.ops if op.kind == root.kind]
        script.phase("Set the root's config; IREE's own pipeline does the rest.")
        handles = script.match([root.kind], "root", len(same_kind))
        info = f"#iree_codegen.compilation_info<lowering_config = {_config(root, schedule)}, "
        info += f"translation_info = {_PIPELINES[schedule['pipeline']]}>"
        script.annotate(handles[same_kind.index(root)], "compilation_info", info)
        script.annotate(script.function, MARKER)


def _tiles(size: int, lanes: int, innermost: bool) -> tuple[int, ...]:
    wanted = (lanes // 2, lanes, 2 * lanes, 4 * lanes) if innermost else (1, 2, 4, 6, 8, 12, 14, 16)
    return tuple(tile for tile in wanted if 0 < tile <= size) or (size,)


def _left_over(root: StructuredOp, schedule: Schedule) -> list[int]:
    """What each loop's tiles leave over."""
    left = []
    for index, loop in enumerate(root.loops):
        if loop.kind == "parallel":
            left.append((schedule[f"workgroup{index}"] or loop.size) % schedule[f"tile{index}"])
        else:
            left.append(loop.size % schedule[f"step{index}"])
    return left


def _config(root: StructuredOp, schedule: Schedule) -> str:
    parallel = [loop.kind == "parallel" for loop in root.loops]
    levels = {
        "distribution": [schedule[f"workgroup{i}"] if flag else 0 for i, flag in enumerate(parallel)],
        "vector_common_parallel": [schedule[f"tile{i}"] if flag else 0 for i, flag in enumerate(parallel)],
    }
    if not all(parallel):
        levels["vector_reduction"] = [0 if flag else schedule[f"step{i}"] for i, flag in enumerate(parallel)]
    return f"#iree_cpu.lowering_config<{', '.join(f'{name} = {sizes}' for name, sizes in levels.items())}>"
