// The whole matmul as one vector: lowering it does not end in any useful time.
module attributes { transform.with_named_sequence } {
  transform.named_sequence @__kernel_config(%variant: !transform.any_op {transform.consumed}) {
    %f = transform.structured.match ops{["func.func"]} in %variant : (!transform.any_op) -> !transform.any_op
    %f1 = transform.apply_registered_pass "iree-codegen-generic-vectorization" to %f : (!transform.any_op) -> !transform.any_op
    transform.iree.eliminate_empty_tensors %f1 : (!transform.any_op) -> ()
    %f2 = transform.iree.bufferize %f1 : (!transform.any_op) -> !transform.any_op
    %f3 = transform.apply_registered_pass "iree-llvmcpu-virtual-vector-lowering" to %f2 : (!transform.any_op) -> !transform.any_op
    %none = transform.param.constant #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline> -> !transform.any_param
    transform.annotate %f3 "translation_info" = %none : !transform.any_op, !transform.any_param
    transform.yield
  }
}
