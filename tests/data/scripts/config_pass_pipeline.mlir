// The matmul tiled by a textual pass pipeline in place of one of IREE's own.
#config = #iree_cpu.lowering_config<distribution = [16, 32, 0], vector_common_parallel = [4, 16, 0], vector_reduction = [0, 0, 4]>
#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.pass_pipeline<"iree-codegen-tile-and-distribute-to-workgroups-using-forall-op,iree-codegen-bufferize-dispatch-tensor-load-store,canonicalize,cse,iree-llvmcpu-tile-and-fuse-producer-consumer{tiling-level=vector_common_parallel anchor-on-root-op=true},iree-llvmcpu-tile-and-fuse-producer-consumer{tiling-level=vector_reduction anchor-on-root-op=true only-fuse-producer-input-operands=true},iree-codegen-forall-to-for,iree-codegen-generic-vectorization,canonicalize,cse,iree-codegen-llvmcpu-bufferization-pipeline,iree-codegen-llvmcpu-vector-lowering-pipeline">>
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
