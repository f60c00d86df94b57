#config = #iree_codegen.lowering_config<tile_sizes = [[8, 128, 0], [8, 2, 0], [0, 0, 1]]>
#translation = #iree_codegen.translation_info<pipeline = #iree_gpu.spirv_pipeline<BaseVectorize> workgroup_size = [64, 1, 1]>
#compilation = #iree_codegen.compilation_info<lowering_config = #config, translation_info = #translation>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @schedule(%function: !transform.any_op {transform.readonly}) attributes {tcl.decisions = {step2 = 1 : i64, x_threads = 64 : i64, x_tile = 2 : i64, y_threads = 1 : i64, y_tile = 8 : i64}, tcl.family = "vulkan_config"} {
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
