"""Every kind of row and role a sequence can hold, in a fixed order; its hash goes into checkpoints."""

from __future__ import annotations

import hashlib

VERSION = 3
PADDING, UNKNOWN = "<padding>", "<unknown>"
# Numbers of a row, after scaling.
COLUMNS = 10

# In front of every script: the target, the workload's ops, their loops and operands.
_PREFIX = (
    "target:avx512", "target:avx2", "target:sse4", "target:neon", "target:cuda", "target:vulkan", "target:other",
    "op:contraction", "op:conv", "op:pool", "op:reduction", "op:elementwise", "op:attention", "op:softmax",
    "op:other", "loop", "operand",
)  # fmt: skip
_OPS = (
    "structured.tile_using_for", "structured.tile_using_forall", "structured.tile_using_forall:block",
    "structured.tile_using_forall:thread", "structured.tile_using_forall:warp",
    "structured.tile_reduction_using_for", "structured.tile_reduction_using_forall", "structured.fuse",
    "structured.fuse_into_containing_op", "structured.pack", "structured.pack_transpose", "structured.lower_pack",
    "structured.lower_unpack", "structured.pad", "structured.hoist_pad", "structured.interchange",
    "structured.generalize", "structured.specialize", "structured.decompose", "structured.split",
    "structured.split_reduction", "structured.multitile_sizes", "structured.vectorize",
    "structured.vectorize_children_and_apply_patterns", "structured.promote", "structured.scalarize",
    "structured.convert_conv2d_to_img2col", "structured.winograd_conv2d", "structured.bufferize_to_allocation",
    "structured.rewrite_in_destination_passing_style", "structured.insert_slice_to_copy",
    "structured.flatten_elementwise",
    "structured.eliminate_empty_tensors", "structured.hoist_redundant_vector_transfers",
    "structured.transpose_conv2d", "structured.transpose_matmul", "structured.linalg_copy_to_memref",
    "structured.gpu.map_copy_to_threads", "structured.continuous_tile_sizes", "structured.replace",
    "loop.peel", "loop.unroll", "loop.unroll_and_jam", "loop.pipeline", "loop.coalesce", "loop.fuse_sibling",
    "loop.hoist_loop_invariant_subsets", "loop.outline", "loop.promote_if_one_iteration", "loop.forall_to_for",
    "loop.forall_to_parallel", "apply_licm",
    "iree.copy_tensor_operand", "iree.bufferize", "iree.eliminate_empty_tensors", "iree.forall_to_workgroup",
    "iree.map_nested_forall_to_gpu_threads", "iree.hoist_static_alloc", "iree.gpu_distribute_shared_memory_copy",
    "iree.fuse_consumer", "iree.flatten_forall_mapping", "iree.pack_shared_memory_alloc", "iree.reorder_transpose",
    "iree.unroll_vectors_gpu_mma_sync", "iree.vector.to_warp_execute_on_lane_0", "iree.vector.warp_distribute",
    "iree.prefetch_shared_memory_copies", "iree.share_forall_operands", "iree.synchronize_loop",
    "iree.convert_conv2d_to_img2col_and_adjust_workgroup_count_region", "iree.create_async_groups",
    "iree.pipeline_shared_memory_copies", "iree.gpu_reorder_workgroups", "iree.test_gpu_vector_distribution",
    "iree.amdgpu_distribute_vectors", "iree.fuse_forall", "iree.generalize_named_ops", "iree.lower_pad_to_vector",
    "memref.multibuffer", "memref.alloca_to_global", "bufferization.one_shot_bufferize",
    "gpu.map_forall_to_blocks", "gpu.map_nested_forall_to_threads", "annotate", "patterns",
)  # fmt: skip
CONFIG_LEVELS = (
    "distribution", "workgroup", "cache_parallel", "cache_reduction", "subgroup", "thread",
    "vector_common_parallel", "vector_inner_parallel", "vector_reduction", "reduction", "partial_reduction",
)  # fmt: skip
_CONFIG = (
    "workgroup_size", "subgroup_size", "promote_operands", "prefetch_num_stages", "subgroup_m_count",
    "subgroup_n_count", "subgroup_basis", "lane_basis", "padding", "tile_sizes",
)  # fmt: skip
_CONFIG_WORDS = (
    "DoubleTilingExpert", "ConvTileAndDecomposeExpert", "Mmt4dTilingExpert", "BufferOpsTileAndVectorize", "DataTiling",
    "LinalgExtTileAndVectorize", "Default", "no_pipeline", "TileAndFuse", "VectorDistribute", "Distribute", "Vectorize",
    "WarpReduction", "SimpleDistribute", "BaseLowering", "BaseVectorize", "MatmulPromoteVectorize",
    "CooperativeMatrixVectorize", "SubgroupReduce", "SPIRVBaseVectorize", "SPIRVMatmulPromoteVectorize",
    "SPIRVSubgroupReduce", "SPIRVBaseDistribute", "enable_loop_peeling", "enable_decomposition",
    "no_reduce_shared_memory_bank_conflicts", "prefetch_shared_memory", "pass_pipeline",
    "NV_MMA_SYNC_F32_16x8x16_F16", "NV_MMA_SYNC_F16_16x8x16_F16", "WMMAR3_F32_16x16x16_F16",
)  # fmt: skip
_PASSES = (
    "iree-codegen-generic-vectorization", "iree-codegen-optimize-tensor-insert-extract-slices", "canonicalize", "cse",
    "iree-codegen-hoist-statically-bound-allocations", "iree-codegen-drop-vector-unit-dims",
    "iree-llvmcpu-virtual-vector-lowering", "iree-codegen-vector-transfer-lowering",
    "iree-llvmcpu-vector-transpose-lowering", "iree-llvmcpu-vector-shape-cast-lowering",
    "iree-codegen-decompose-pack-unpack-ops", "iree-global-opt-convert-strided-contraction-to-contraction",
    "iree-codegen-tile-and-distribute-to-workgroups-using-forall-op", "iree-linalg-ext-decompose-attention",
    "iree-codegen-bufferize-dispatch-tensor-load-store", "iree-llvmcpu-tile-and-fuse-producer-consumer",
    "iree-codegen-forall-to-for", "iree-codegen-llvmcpu-bufferization-pipeline",
    "iree-codegen-llvmcpu-vector-lowering-pipeline", "iree-spirv-initial-vector-lowering",
    "iree-spirv-final-vector-lowering", "fold-memref-alias-ops", "loop-invariant-code-motion",
    "iree-codegen-reconcile-translation-info", "iree-codegen-remove-single-iteration-loop",
    "iree-codegen-convert-to-destination-passing-style", "iree-codegen-concretize-pad-result-shape",
    "iree-codegen-gpu-distribute", "iree-codegen-vectorize-memref-copy", "iree-llvmcpu-tile", "iree-llvmcpu-peel",
)  # fmt: skip
_OPTIONS = (
    "enable-vector-masking=false", "enable-vector-masking=true", "split-transfers=linalg-copy",
    "split-transfers=shuffle", "use-exp2=true", "use-exp2=false", "tiling-level=vector_common_parallel",
    "tiling-level=vector_reduction", "anchor-on-root-op=true", "only-fuse-producer-input-operands=true",
)  # fmt: skip
# Behind every script: the loops it leaves around the root op, how these use its tensors, and what is left inside each
# op.
_NEST = ("workgroup", "thread", "warp", "serial", "inside", "tensor")

KINDS: tuple[str, ...] = (
    PADDING,
    UNKNOWN,
    *_PREFIX,
    *_OPS,
    *(f"config:{name}" for name in (*CONFIG_LEVELS, *_CONFIG, *_CONFIG_WORDS)),
    *(f"pass:{name}" for name in _PASSES),
    *(f"option:{name}" for name in _OPTIONS),
    *(f"nest:{name}" for name in _NEST),
)
ROLES: tuple[str, ...] = ("", "root", "fill", "producer", "consumer", "pack", "unpack", "function", "loop", "unknown")

KIND_INDEX = {name: index for index, name in enumerate(KINDS)}
ROLE_INDEX = {name: index for index, name in enumerate(ROLES)}


def vocabulary_hash() -> str:
    """A short hash that changes when a kind, a role, their order or the meaning of numbers changes."""
    text = "\n".join((str(VERSION), *KINDS, "--", *ROLES))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
