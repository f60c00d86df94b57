#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @schedule(%function: !transform.any_op {transform.consumed}) attributes {tcl.decisions = {lanes = 8 : i64, order = "stores", rows = 4 : i64, workgroup = array<i64: 16, 0>}, tcl.family = "elementwise"} {
    // The op, its loops in the order they shall run.
    %root = transform.structured.match ops{["linalg.generic"]} in %function : (!transform.any_op) -> !transform.any_op
    %root_0 = transform.structured.interchange %root iterator_interchange = [1, 0] : (!transform.any_op) -> !transform.any_op
    // Distribute to workgroups.
    %workgroup, %workgroup_1 = transform.structured.tile_using_forall %root_0 tile_sizes [0, 16](mapping = [#gpu.block<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.iree.populate_workgroup_count_region_using_num_threads_slice %workgroup_1 : (!transform.any_op) -> ()
    // Register tiles, smaller ones for what is left over.
    %tile, %tile_2:2 = transform.structured.tile_using_for %workgroup tile_sizes [4, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    // Vectors: accumulators become loop-carried vectors.
    %function_3 = transform.apply_registered_pass "iree-codegen-generic-vectorization" with options = {"enable-vector-masking" = false} to %function : (!transform.any_op) -> !transform.any_op
    %function_4 = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %function_3 : (!transform.any_op) -> !transform.any_op
    %function_5 = transform.apply_registered_pass "canonicalize" to %function_4 : (!transform.any_op) -> !transform.any_op
    %function_6 = transform.apply_registered_pass "cse" to %function_5 : (!transform.any_op) -> !transform.any_op
    // Buffers and workgroups.
    transform.iree.eliminate_empty_tensors %function_6 : (!transform.any_op) -> ()
    %function_7 = transform.iree.bufferize %function_6 : (!transform.any_op) -> !transform.any_op
    transform.iree.forall_to_workgroup %function_7 : (!transform.any_op) -> ()
    %function_8 = transform.apply_registered_pass "canonicalize" to %function_7 : (!transform.any_op) -> !transform.any_op
    %function_9 = transform.apply_registered_pass "cse" to %function_8 : (!transform.any_op) -> !transform.any_op
    %function_10 = transform.apply_registered_pass "canonicalize" to %function_9 : (!transform.any_op) -> !transform.any_op
    %function_11 = transform.apply_registered_pass "iree-codegen-generic-vectorization" to %function_10 : (!transform.any_op) -> !transform.any_op
    %function_12 = transform.apply_registered_pass "iree-codegen-hoist-statically-bound-allocations" to %function_11 : (!transform.any_op) -> !transform.any_op
    // Lower vectors.
    %function_13 = transform.apply_registered_pass "iree-codegen-drop-vector-unit-dims" to %function_12 : (!transform.any_op) -> !transform.any_op
    %function_14 = transform.apply_registered_pass "iree-llvmcpu-virtual-vector-lowering" with options = {"split-transfers" = "linalg-copy"} to %function_13 : (!transform.any_op) -> !transform.any_op
    %function_15 = transform.apply_registered_pass "canonicalize" to %function_14 : (!transform.any_op) -> !transform.any_op
    %function_16 = transform.apply_registered_pass "iree-codegen-vector-transfer-lowering" to %function_15 : (!transform.any_op) -> !transform.any_op
    %function_17 = transform.apply_registered_pass "iree-llvmcpu-vector-transpose-lowering" to %function_16 : (!transform.any_op) -> !transform.any_op
    %function_18 = transform.apply_registered_pass "iree-llvmcpu-vector-shape-cast-lowering" to %function_17 : (!transform.any_op) -> !transform.any_op
    %function_19 = transform.apply_registered_pass "cse" to %function_18 : (!transform.any_op) -> !transform.any_op
    // Nothing is left for IREE's own pipeline.
    %translation_info = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_19 "translation_info" = %translation_info : !transform.any_op, !transform.any_param
    transform.annotate %function_19 "tcl.applied" : !transform.any_op
    transform.yield 
  }
  transform.named_sequence @__kernel_config(%module: !transform.any_op {transform.consumed}) {
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @schedule failures(propagate) (%function) : (!transform.any_op) -> ()
    transform.yield 
  }
}
