#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @schedule(%function: !transform.any_op {transform.consumed}) attributes {tcl.decisions = {rows = 16 : i64, span = 8 : i64, workgroup = array<i64: 32, 0>}, tcl.family = "reduction"} {
    // The ops of the dispatch, distributed to workgroups.
    %fill = transform.structured.match ops{["linalg.fill"]} in %function : (!transform.any_op) -> !transform.any_op
    %op = transform.structured.match ops{["linalg.generic"]} in %function : (!transform.any_op) -> !transform.any_op
    %workgroup, %workgroup_0 = transform.structured.tile_using_forall %op tile_sizes [32, 0](mapping = [#gpu.block<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.iree.populate_workgroup_count_region_using_num_threads_slice %workgroup_0 : (!transform.any_op) -> ()
    %workgroup_1, %workgroup_2 = transform.structured.fuse_into_containing_op %fill into %workgroup_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Tiles of rows.
    %rows, %rows_3 = transform.structured.tile_using_for %workgroup tile_sizes [16, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %start, %start_4 = transform.structured.tile_using_for %workgroup_1 tile_sizes [16] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    // Elementwise ops in lanes.
    // Reductions in lanes, then across them.
    %reduction = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>]} in %function : (!transform.any_op) -> !transform.any_op
    %reduction_5, %reduction_6, %reduction_7, %reduction_8 = transform.structured.tile_reduction_using_for %reduction by tile_sizes = [0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    %reduction_9 = transform.get_parent_op %reduction_6 <op_name = "scf.for"> : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    // Vectors: accumulators become loop-carried vectors.
    %function_10 = transform.apply_registered_pass "iree-codegen-generic-vectorization" with options = {"enable-vector-masking" = false} to %function : (!transform.any_op) -> !transform.any_op
    %function_11 = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %function_10 : (!transform.any_op) -> !transform.any_op
    %function_12 = transform.apply_registered_pass "canonicalize" to %function_11 : (!transform.any_op) -> !transform.any_op
    %function_13 = transform.apply_registered_pass "cse" to %function_12 : (!transform.any_op) -> !transform.any_op
    // Buffers and workgroups.
    transform.iree.eliminate_empty_tensors %function_13 : (!transform.any_op) -> ()
    %function_14 = transform.iree.bufferize %function_13 : (!transform.any_op) -> !transform.any_op
    transform.iree.forall_to_workgroup %function_14 : (!transform.any_op) -> ()
    %function_15 = transform.apply_registered_pass "canonicalize" to %function_14 : (!transform.any_op) -> !transform.any_op
    %function_16 = transform.apply_registered_pass "cse" to %function_15 : (!transform.any_op) -> !transform.any_op
    %function_17 = transform.apply_registered_pass "canonicalize" to %function_16 : (!transform.any_op) -> !transform.any_op
    %function_18 = transform.apply_registered_pass "iree-codegen-generic-vectorization" to %function_17 : (!transform.any_op) -> !transform.any_op
    %function_19 = transform.apply_registered_pass "iree-codegen-hoist-statically-bound-allocations" to %function_18 : (!transform.any_op) -> !transform.any_op
    // Lower vectors.
    %function_20 = transform.apply_registered_pass "iree-codegen-drop-vector-unit-dims" to %function_19 : (!transform.any_op) -> !transform.any_op
    %function_21 = transform.apply_registered_pass "iree-llvmcpu-virtual-vector-lowering" with options = {"split-transfers" = "linalg-copy"} to %function_20 : (!transform.any_op) -> !transform.any_op
    %function_22 = transform.apply_registered_pass "canonicalize" to %function_21 : (!transform.any_op) -> !transform.any_op
    %function_23 = transform.apply_registered_pass "iree-codegen-vector-transfer-lowering" to %function_22 : (!transform.any_op) -> !transform.any_op
    %function_24 = transform.apply_registered_pass "iree-llvmcpu-vector-transpose-lowering" to %function_23 : (!transform.any_op) -> !transform.any_op
    %function_25 = transform.apply_registered_pass "iree-llvmcpu-vector-shape-cast-lowering" to %function_24 : (!transform.any_op) -> !transform.any_op
    %function_26 = transform.apply_registered_pass "cse" to %function_25 : (!transform.any_op) -> !transform.any_op
    // Nothing is left for IREE's own pipeline.
    %translation_info = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_26 "translation_info" = %translation_info : !transform.any_op, !transform.any_param
    transform.annotate %function_26 "tcl.applied" : !transform.any_op
    transform.yield 
  }
  transform.named_sequence @__kernel_config(%module: !transform.any_op {transform.consumed}) {
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @schedule failures(propagate) (%function) : (!transform.any_op) -> ()
    transform.yield 
  }
}
