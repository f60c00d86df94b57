#translation = #iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<TileAndFuse> workgroup_size = [1024, 1, 1] subgroup_size = 32, {gpu_pipeline_options = #iree_gpu.pipeline_options<prefetch_num_stages = 2, no_reduce_shared_memory_bank_conflicts = true>}>
#compilation = #iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{promote_operands = [0, 1], reduction = [0, 0, 32], thread = [2, 2, 0], workgroup = [64, 64, 0]}>, translation_info = #translation>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @schedule(%function: !transform.any_op {transform.readonly}) attributes {tcl.decisions = {pad_banks = false, promote = true, stages = 2 : i64, step2 = 32 : i64, x_threads = 32 : i64, x_tile = 2 : i64, y_threads = 32 : i64, y_tile = 2 : i64}, tcl.family = "cuda_simt"} {
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
