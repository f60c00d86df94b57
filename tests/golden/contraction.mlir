#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @schedule(%function: !transform.any_op {transform.consumed}) attributes {tcl.decisions = {copy = true, extra_workgroup = 1 : i64, k_block = 48 : i64, k_outer = false, k_step = 2 : i64, lane_workgroup = 20 : i64, lanes = 16 : i64, row_workgroup = 20 : i64, rows = 10 : i64}, tcl.family = "contraction"} {
    // The ops of the dispatch.
    %fill = transform.structured.match ops{["linalg.fill"]} in %function : (!transform.any_op) -> !transform.any_op
    %root = transform.structured.match ops{["linalg.generic"]} in %function : (!transform.any_op) -> !transform.any_op
    %root_0:2 = transform.split_handle %root : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Distribute to workgroups.
    %workgroup, %workgroup_1 = transform.structured.tile_using_forall %root_0#1 tile_sizes [20, 20](mapping = [#gpu.block<y>, #gpu.block<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.iree.populate_workgroup_count_region_using_num_threads_slice %workgroup_1 : (!transform.any_op) -> ()
    %root_2, %root_3 = transform.structured.fuse_into_containing_op %root_0#0 into %workgroup_1 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_4, %fill_5 = transform.structured.fuse_into_containing_op %fill into %root_3 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Panels of lanes, narrower ones for what is left over.
    %panel, %panel_6 = transform.structured.tile_using_for %workgroup tile_sizes [0, 16] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %root_7, %root_8 = transform.structured.fuse_into_containing_op %root_2 into %panel_6 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_9, %fill_10 = transform.structured.fuse_into_containing_op %fill_4 into %root_8 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %panel_11 = transform.cast %fill_10 : !transform.any_op to !transform.op<"scf.for">
    %panel_12, %panel_13 = transform.loop.peel %panel_11 : (!transform.op<"scf.for">) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    %root_14 = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>]} in %function : (!transform.any_op) -> !transform.any_op
    %root_15:2 = transform.split_handle %root_14 : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_16 = transform.structured.match ops{["linalg.fill"]} in %function : (!transform.any_op) -> !transform.any_op
    %fill_17:2 = transform.split_handle %fill_16 : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %consumer = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>]} in %function : (!transform.any_op) -> !transform.any_op
    %consumer_18:2 = transform.split_handle %consumer : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Accumulators get a buffer of their own between blocks of k.
    %accumulators = transform.iree.copy_tensor_operand %root_15#0[2] : (!transform.any_op) -> !transform.any_op
    %accumulators_19 = transform.iree.copy_tensor_operand %root_15#1[2] : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    %root_20 = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>]} in %function : (!transform.any_op) -> !transform.any_op
    %root_21:2 = transform.split_handle %root_20 : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_22 = transform.structured.match ops{["linalg.fill"]} in %function : (!transform.any_op) -> !transform.any_op
    %fill_23:2 = transform.split_handle %fill_22 : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %consumer_24 = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>]} in %function : (!transform.any_op) -> !transform.any_op
    %consumer_25:2 = transform.split_handle %consumer_24 : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Panel 0: blocks of k, rows, then k.
    %zero, %zero_26 = transform.structured.tile_using_for %fill_23#0 tile_sizes [10, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %k_block, %k_block_27 = transform.structured.tile_using_for %root_21#0 tile_sizes [0, 0, 48] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %panel_28 = transform.iree.copy_tensor_operand %k_block[1] : (!transform.any_op) -> !transform.any_op
    %panel_29, %panel_30 = transform.structured.tile_using_for %panel_28 tile_sizes [8, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %rows, %rows_31 = transform.structured.tile_using_for %k_block tile_sizes [10, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %k, %k_32 = transform.structured.tile_using_for %rows tile_sizes [0, 0, 2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %results, %results_33 = transform.structured.tile_using_for %consumer_25#0 tile_sizes [10, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Panel 1: blocks of k, rows, then k.
    %zero_34, %zero_35 = transform.structured.tile_using_for %fill_23#1 tile_sizes [10, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %k_block_36, %k_block_37 = transform.structured.tile_using_for %root_21#1 tile_sizes [0, 0, 48] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %panel_38 = transform.iree.copy_tensor_operand %k_block_36[1] : (!transform.any_op) -> !transform.any_op
    %panel_39, %panel_40 = transform.structured.tile_using_for %panel_38 tile_sizes [8, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %rows_41, %rows_42 = transform.structured.tile_using_for %k_block_36 tile_sizes [10, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %k_43, %k_44 = transform.structured.tile_using_for %rows_41 tile_sizes [0, 0, 2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %results_45, %results_46 = transform.structured.tile_using_for %consumer_25#1 tile_sizes [10, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    // Vectors: accumulators become loop-carried vectors.
    %function_47 = transform.apply_registered_pass "iree-codegen-generic-vectorization" with options = {"enable-vector-masking" = false} to %function : (!transform.any_op) -> !transform.any_op
    %function_48 = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %function_47 : (!transform.any_op) -> !transform.any_op
    %function_49 = transform.apply_registered_pass "canonicalize" to %function_48 : (!transform.any_op) -> !transform.any_op
    %function_50 = transform.apply_registered_pass "cse" to %function_49 : (!transform.any_op) -> !transform.any_op
    // Buffers and workgroups.
    transform.iree.eliminate_empty_tensors %function_50 : (!transform.any_op) -> ()
    %function_51 = transform.iree.bufferize %function_50 : (!transform.any_op) -> !transform.any_op
    transform.iree.forall_to_workgroup %function_51 : (!transform.any_op) -> ()
    %function_52 = transform.apply_registered_pass "canonicalize" to %function_51 : (!transform.any_op) -> !transform.any_op
    %function_53 = transform.apply_registered_pass "cse" to %function_52 : (!transform.any_op) -> !transform.any_op
    %function_54 = transform.apply_registered_pass "canonicalize" to %function_53 : (!transform.any_op) -> !transform.any_op
    %function_55 = transform.apply_registered_pass "iree-codegen-generic-vectorization" to %function_54 : (!transform.any_op) -> !transform.any_op
    %function_56 = transform.apply_registered_pass "iree-codegen-hoist-statically-bound-allocations" to %function_55 : (!transform.any_op) -> !transform.any_op
    // Lower vectors.
    %function_57 = transform.apply_registered_pass "iree-codegen-drop-vector-unit-dims" to %function_56 : (!transform.any_op) -> !transform.any_op
    %function_58 = transform.apply_registered_pass "iree-llvmcpu-virtual-vector-lowering" with options = {"split-transfers" = "linalg-copy"} to %function_57 : (!transform.any_op) -> !transform.any_op
    %function_59 = transform.apply_registered_pass "canonicalize" to %function_58 : (!transform.any_op) -> !transform.any_op
    %function_60 = transform.apply_registered_pass "iree-codegen-vector-transfer-lowering" to %function_59 : (!transform.any_op) -> !transform.any_op
    %function_61 = transform.apply_registered_pass "iree-llvmcpu-vector-transpose-lowering" to %function_60 : (!transform.any_op) -> !transform.any_op
    %function_62 = transform.apply_registered_pass "iree-llvmcpu-vector-shape-cast-lowering" to %function_61 : (!transform.any_op) -> !transform.any_op
    %function_63 = transform.apply_registered_pass "cse" to %function_62 : (!transform.any_op) -> !transform.any_op
    // Nothing is left for IREE's own pipeline.
    %translation_info = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_63 "translation_info" = %translation_info : !transform.any_op, !transform.any_param
    transform.annotate %function_63 "tcl.applied" : !transform.any_op
    transform.yield 
  }
  transform.named_sequence @__kernel_config(%module: !transform.any_op {transform.consumed}) {
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @schedule failures(propagate) (%function) : (!transform.any_op) -> ()
    transform.yield 
  }
}
