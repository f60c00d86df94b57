// Tiles that do not divide the matmul, what is left over peeled off.
#config = #iree_cpu.lowering_config<distribution = [20, 48, 0], vector_common_parallel = [5, 16, 0], vector_reduction = [0, 0, 8]>
#translation = #iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>, {enable_loop_peeling}>
#compilation = #iree_codegen.compilation_info<lowering_config = #config, translation_info = #translation>
module attributes { transform.with_named_sequence } {
  transform.named_sequence @__kernel_config(%module: !transform.any_op {transform.consumed}) {
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %function : (!transform.any_op) -> !transform.any_op
    %info = transform.param.constant #compilation -> !transform.any_param
    transform.annotate %matmul "compilation_info" = %info : !transform.any_op, !transform.any_param
    transform.annotate %function "tcl.applied" : !transform.any_op
    transform.yield
  }
}
