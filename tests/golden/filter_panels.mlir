#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @schedule(%function: !transform.any_op {transform.consumed}) attributes {tcl.decisions = {extra_workgroup = 1 : i64, k_block = 16 : i64, k_step = 2 : i64, lanes = 32 : i64, panel_workgroup = 1 : i64, row_workgroup = 14 : i64, rows = 3 : i64}, tcl.family = "filter_panels"} {
    // The ops of the dispatch.
    %fill = transform.structured.match ops{["linalg.fill"]} in %function : (!transform.any_op) -> !transform.any_op
    %root = transform.structured.match ops{["linalg.generic"]} in %function : (!transform.any_op) -> !transform.any_op
    %root_0:2 = transform.split_handle %root : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Distribute to workgroups.
    %workgroup, %workgroup_1 = transform.structured.tile_using_forall %root_0#1 tile_sizes [1, 0, 1, 0](mapping = [#gpu.block<y>, #gpu.block<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.iree.populate_workgroup_count_region_using_num_threads_slice %workgroup_1 : (!transform.any_op) -> ()
    %root_2, %root_3 = transform.structured.fuse_into_containing_op %root_0#0 into %workgroup_1 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_4, %fill_5 = transform.structured.fuse_into_containing_op %fill into %root_3 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Panels of filters, narrower ones for what is left over.
    // Panel 0: image rows, columns, blocks of input channels, window positions.
    %rows, %rows_6 = transform.structured.tile_using_for %workgroup tile_sizes [0, 3, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %root_7, %root_8 = transform.structured.fuse_into_containing_op %root_2 into %rows_6 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_9, %fill_10 = transform.structured.fuse_into_containing_op %fill_4 into %root_8 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %window, %window_11:2 = transform.structured.tile_using_for %root_7 tile_sizes [0, 0, 0, 0, 1, 1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %rows_12 = transform.cast %fill_10 : !transform.any_op to !transform.op<"scf.for">
    %rows_13, %rows_14 = transform.loop.peel %rows_12 : (!transform.op<"scf.for">) -> (!transform.any_op, !transform.any_op)
    // Drop loops of one iteration; what is left are small matrix products.
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.linalg.fold_unit_extent_dims_via_slices
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    %function_15 = transform.apply_registered_pass "iree-global-opt-convert-strided-contraction-to-contraction" to %function : (!transform.any_op) -> !transform.any_op
    %product = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>]} in %function_15 : (!transform.any_op) -> !transform.any_op
    %k, %k_16 = transform.structured.tile_using_for %product tile_sizes [0, 0, 2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %function_15 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_15 : !transform.any_op
    // Vectors: accumulators become loop-carried vectors.
    %function_17 = transform.apply_registered_pass "iree-codegen-generic-vectorization" with options = {"enable-vector-masking" = false} to %function_15 : (!transform.any_op) -> !transform.any_op
    %function_18 = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %function_17 : (!transform.any_op) -> !transform.any_op
    %function_19 = transform.apply_registered_pass "canonicalize" to %function_18 : (!transform.any_op) -> !transform.any_op
    %function_20 = transform.apply_registered_pass "cse" to %function_19 : (!transform.any_op) -> !transform.any_op
    // Buffers and workgroups.
    transform.iree.eliminate_empty_tensors %function_20 : (!transform.any_op) -> ()
    %function_21 = transform.iree.bufferize %function_20 : (!transform.any_op) -> !transform.any_op
    transform.iree.forall_to_workgroup %function_21 : (!transform.any_op) -> ()
    %function_22 = transform.apply_registered_pass "canonicalize" to %function_21 : (!transform.any_op) -> !transform.any_op
    %function_23 = transform.apply_registered_pass "cse" to %function_22 : (!transform.any_op) -> !transform.any_op
    %function_24 = transform.apply_registered_pass "canonicalize" to %function_23 : (!transform.any_op) -> !transform.any_op
    %function_25 = transform.apply_registered_pass "iree-codegen-generic-vectorization" to %function_24 : (!transform.any_op) -> !transform.any_op
    %function_26 = transform.apply_registered_pass "iree-codegen-hoist-statically-bound-allocations" to %function_25 : (!transform.any_op) -> !transform.any_op
    // Lower vectors.
    %function_27 = transform.apply_registered_pass "iree-codegen-drop-vector-unit-dims" to %function_26 : (!transform.any_op) -> !transform.any_op
    %function_28 = transform.apply_registered_pass "iree-llvmcpu-virtual-vector-lowering" with options = {"split-transfers" = "linalg-copy"} to %function_27 : (!transform.any_op) -> !transform.any_op
    %function_29 = transform.apply_registered_pass "canonicalize" to %function_28 : (!transform.any_op) -> !transform.any_op
    %function_30 = transform.apply_registered_pass "iree-codegen-vector-transfer-lowering" to %function_29 : (!transform.any_op) -> !transform.any_op
    %function_31 = transform.apply_registered_pass "iree-llvmcpu-vector-transpose-lowering" to %function_30 : (!transform.any_op) -> !transform.any_op
    %function_32 = transform.apply_registered_pass "iree-llvmcpu-vector-shape-cast-lowering" to %function_31 : (!transform.any_op) -> !transform.any_op
    %function_33 = transform.apply_registered_pass "cse" to %function_32 : (!transform.any_op) -> !transform.any_op
    // Nothing is left for IREE's own pipeline.
    %translation_info = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_33 "translation_info" = %translation_info : !transform.any_op, !transform.any_param
    transform.annotate %function_33 "tcl.applied" : !transform.any_op
    transform.yield 
  }
  transform.named_sequence @__kernel_config(%module: !transform.any_op {transform.consumed}) {
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @schedule failures(propagate) (%function) : (!transform.any_op) -> ()
    transform.yield 
  }
}
