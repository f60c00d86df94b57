// A level for the cache between workgroups and vectors.
#config = #iree_cpu.lowering_config<distribution = [64, 64, 0], cache_parallel = [16, 32, 0], cache_reduction = [0, 0, 48], vector_common_parallel = [4, 32, 0], vector_reduction = [0, 0, 2]>
#translation = #iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>>
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
