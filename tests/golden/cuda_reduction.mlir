#translation = #iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<VectorDistribute> workgroup_size = [96, 1, 1] subgroup_size = 32>
#compilation = #iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{lane_basis = [[1, 32], [0, 1]], partial_reduction = [0, 96], subgroup_basis = [[1, 3], [0, 1]], thread = [0, 1], workgroup = [1, 0]}>, translation_info = #translation>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @schedule(%function: !transform.any_op {transform.readonly}) attributes {tcl.decisions = {neighbours = 1 : i64, warps = 3 : i64}, tcl.family = "cuda_reduction"} {
    // Set the root's config; IREE's own pipeline does the rest.
    %root = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>]} in %function : (!transform.any_op) -> !transform.any_op
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
