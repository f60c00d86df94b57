#config = #iree_cpu.lowering_config<distribution = [15, 50, 0], vector_common_parallel = [1, 32, 0], vector_reduction = [0, 0, 32]>
#translation = #iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>, {enable_loop_peeling}>
#compilation = #iree_codegen.compilation_info<lowering_config = #config, translation_info = #translation>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @schedule(%function: !transform.any_op {transform.readonly}) attributes {tcl.decisions = {pipeline = "double_tiling_peeled", step2 = 32 : i64, tile0 = 1 : i64, tile1 = 32 : i64, workgroup0 = 15 : i64, workgroup1 = 50 : i64}, tcl.family = "config"} {
    // Set the root's config; IREE's own pipeline does the rest.
    %root = transform.structured.match ops{["linalg.generic"]} in %function : (!transform.any_op) -> !transform.any_op
    %root_0:2 = transform.split_handle %root : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %compilation_info = transform.param.constant #compilation -> !transform.any_param
    transform.annotate %root_0#0 "compilation_info" = %compilation_info : !transform.any_op, !transform.any_param
    transform.annotate %function "tcl.applied" : !transform.any_op
    transform.yield 
  }
  transform.named_sequence @__kernel_config(%module: !transform.any_op {transform.consumed}) {
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @schedule failures(propagate) (%function) : (!transform.any_op) -> ()
    transform.yield 
  }
}
