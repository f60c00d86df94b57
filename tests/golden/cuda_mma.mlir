#translation = #iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<TileAndFuse> workgroup_size = [128, 1, 1] subgroup_size = 32, {gpu_pipeline_options = #iree_gpu.pipeline_options<prefetch_num_stages = 2, no_reduce_shared_memory_bank_conflicts = false>}>
#compilation = #iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{mma_kind = #iree_gpu.mma_layout<NV_MMA_SYNC_F32_16x8x16_F16>, promote_operands = [0, 1], reduction = [0, 0, 1], subgroup = [1, 4, 0], workgroup = [32, 64, 0]}>, translation_info = #translation>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @schedule(%function: !transform.any_op {transform.readonly}) attributes {tcl.decisions = {k_tiles = 1 : i64, m_tiles = 1 : i64, m_warps = 2 : i64, n_tiles = 4 : i64, n_warps = 2 : i64, pad_banks = true, stages = 2 : i64}, tcl.family = "cuda_mma"} {
    // Set the root's config; IREE's own pipeline does the rest.
    %root = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>]} in %function : (!transform.any_op) -> !transform.any_op
    %compilation_info = transform.param.constant #compilation -> !transform.any_param
    transform.annotate %root "compilation_info" = %compilation_info : !transform.any_op, !transform.any_param
    transform.annotate %function "tcl.applied" : !transform.any_op
    transform.yield 
  }
  transform.named_sequence @__kernel_config(%module: !transform.any_op {transform.consumed}) {
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @schedule failures(propagate) (%function) : (!transform.any_op) -> ()
    transform.yield 
  }
}
