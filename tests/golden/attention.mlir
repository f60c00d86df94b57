#config = #iree_cpu.lowering_config<distribution = [1, 4, 0, 0, 0]>
#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @schedule(%function: !transform.any_op {transform.consumed}) attributes {tcl.decisions = {base_two = true, block = 4 : i64, output_rows = 4 : i64, output_step = 2 : i64, score_rows = 2 : i64, score_step = 1 : i64, softmax_rows = 4 : i64}, tcl.family = "attention"} {
    // Distribute heads and blocks of rows to workgroups; take attention apart.
    %attention = transform.structured.match ops{["iree_linalg_ext.online_attention"]} in %function : (!transform.any_op) -> !transform.any_op
    %lowering_config = transform.param.constant #config -> !transform.any_param
    transform.annotate %attention "lowering_config" = %lowering_config : !transform.any_op, !transform.any_param
    %function_0 = transform.apply_registered_pass "iree-codegen-tile-and-distribute-to-workgroups-using-forall-op" to %function : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function_0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_0 : !transform.any_op
    %function_1 = transform.apply_registered_pass "iree-linalg-ext-decompose-attention" with options = {"use-exp2" = true} to %function_0 : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function_1 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.linalg.fold_unit_extent_dims_via_slices
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_1 : !transform.any_op
    transform.apply_patterns to %function_1 {
      transform.apply_patterns.linalg.swap_extract_slice_with_fill
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    // Rows innermost: vectors run along them.
    %scores = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<parallel>]} in %function_1 : (!transform.any_op) -> !transform.any_op
    %scores_2 = transform.structured.pack %scores packed_sizes = [4, 0, 0] : (!transform.any_op) -> !transform.any_op
    %outputs = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>]} in %function_1 : (!transform.any_op) -> !transform.any_op
    %outputs_3 = transform.structured.pack %outputs packed_sizes = [4, 0, 0] : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function_1 {
      transform.apply_patterns.linalg.data_layout_propagation
      transform.apply_patterns.linalg.fold_pack_unpack_into_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    %function_4 = transform.apply_registered_pass "iree-codegen-decompose-pack-unpack-ops" to %function_1 : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function_4 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.linalg.fold_unit_extent_dims_via_slices
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_4 : !transform.any_op
    transform.apply_patterns to %function_4 {
      transform.apply_patterns.linalg.swap_extract_slice_with_fill
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    %transpose = transform.structured.match ops{["linalg.transpose"]} in %function_4 : (!transform.any_op) -> !transform.any_op
    %transpose_5:2 = transform.split_handle %transpose : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %elementwise = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>]} in %function_4 : (!transform.any_op) -> !transform.any_op
    %elementwise_6:4 = transform.split_handle %elementwise : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    // Scaled queries.
    %queries, %queries_7:2 = transform.structured.tile_using_for %transpose_5#0 tile_sizes [16, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %scaled, %scaled_8 = transform.structured.tile_using_for %elementwise_6#0 tile_sizes [4, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Scores: a few rows of keys in registers.
    %fill = transform.structured.match ops{["linalg.fill"]} in %function_4 : (!transform.any_op) -> !transform.any_op
    %fill_9:4 = transform.split_handle %fill : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    %scores_10 = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<reduction>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>]} in %function_4 : (!transform.any_op) -> !transform.any_op
    %scores_11 = transform.structured.interchange %scores_10 iterator_interchange = [2, 1, 0] : (!transform.any_op) -> !transform.any_op
    %scores_12, %scores_13 = transform.structured.tile_using_for %scores_11 tile_sizes [0, 2, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %scores_14, %scores_15 = transform.structured.tile_using_for %scores_12 tile_sizes [0, 0, 1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Softmax without its division.
    %maximum_and_sum = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<reduction>, #linalg.iterator_type<parallel>]} in %function_4 : (!transform.any_op) -> !transform.any_op
    %maximum_and_sum_16, %maximum_and_sum_17 = transform.structured.tile_using_for %maximum_and_sum tile_sizes [1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %weights, %weights_18 = transform.structured.tile_using_for %elementwise_6#1 tile_sizes [4, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Output: a few columns of values in registers, divided before they are stored.
    %outputs_19 = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<parallel>]} in %function_4 : (!transform.any_op) -> !transform.any_op
    %outputs_20 = transform.structured.interchange %outputs_19 iterator_interchange = [2, 0, 1] : (!transform.any_op) -> !transform.any_op
    %normalized, %normalized_21 = transform.structured.tile_using_for %elementwise_6#3 tile_sizes [4, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %outputs_22, %outputs_23 = transform.structured.fuse_into_containing_op %outputs_20 into %normalized_21 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %start, %start_24 = transform.structured.fuse_into_containing_op %elementwise_6#2 into %outputs_23 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %zeros, %zeros_25 = transform.structured.fuse_into_containing_op %fill_9#3 into %start_24 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %outputs_26, %outputs_27 = transform.structured.tile_using_for %outputs_22 tile_sizes [0, 0, 2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // The result, with rows outermost again.
    %result, %result_28:2 = transform.structured.tile_using_for %transpose_5#1 tile_sizes [4, 16] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.apply_patterns to %function_4 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_4 : !transform.any_op
    // Vectors: accumulators become loop-carried vectors.
    %function_29 = transform.apply_registered_pass "iree-codegen-generic-vectorization" with options = {"enable-vector-masking" = false} to %function_4 : (!transform.any_op) -> !transform.any_op
    %function_30 = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %function_29 : (!transform.any_op) -> !transform.any_op
    %function_31 = transform.apply_registered_pass "canonicalize" to %function_30 : (!transform.any_op) -> !transform.any_op
    %function_32 = transform.apply_registered_pass "cse" to %function_31 : (!transform.any_op) -> !transform.any_op
    // Buffers and workgroups.
    transform.iree.eliminate_empty_tensors %function_32 : (!transform.any_op) -> ()
    %function_33 = transform.iree.bufferize %function_32 : (!transform.any_op) -> !transform.any_op
    %function_34 = transform.apply_registered_pass "canonicalize" to %function_33 : (!transform.any_op) -> !transform.any_op
    %function_35 = transform.apply_registered_pass "cse" to %function_34 : (!transform.any_op) -> !transform.any_op
    %function_36 = transform.apply_registered_pass "canonicalize" to %function_35 : (!transform.any_op) -> !transform.any_op
    %function_37 = transform.apply_registered_pass "iree-codegen-generic-vectorization" to %function_36 : (!transform.any_op) -> !transform.any_op
    %function_38 = transform.apply_registered_pass "iree-codegen-hoist-statically-bound-allocations" to %function_37 : (!transform.any_op) -> !transform.any_op
    // Lower vectors.
    %function_39 = transform.apply_registered_pass "iree-codegen-drop-vector-unit-dims" to %function_38 : (!transform.any_op) -> !transform.any_op
    %function_40 = transform.apply_registered_pass "iree-llvmcpu-virtual-vector-lowering" with options = {"split-transfers" = "linalg-copy"} to %function_39 : (!transform.any_op) -> !transform.any_op
    %function_41 = transform.apply_registered_pass "canonicalize" to %function_40 : (!transform.any_op) -> !transform.any_op
    %function_42 = transform.apply_registered_pass "iree-codegen-vector-transfer-lowering" to %function_41 : (!transform.any_op) -> !transform.any_op
    %function_43 = transform.apply_registered_pass "iree-llvmcpu-vector-transpose-lowering" to %function_42 : (!transform.any_op) -> !transform.any_op
    %function_44 = transform.apply_registered_pass "iree-llvmcpu-vector-shape-cast-lowering" to %function_43 : (!transform.any_op) -> !transform.any_op
    %function_45 = transform.apply_registered_pass "cse" to %function_44 : (!transform.any_op) -> !transform.any_op
    // Nothing is left for IREE's own pipeline.
    %translation_info = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_45 "translation_info" = %translation_info : !transform.any_op, !transform.any_param
    transform.annotate %function_45 "tcl.applied" : !transform.any_op
    transform.yield 
  }
  transform.named_sequence @__kernel_config(%module: !transform.any_op {transform.consumed}) {
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @schedule failures(propagate) (%function) : (!transform.any_op) -> ()
    transform.yield 
  }
}
