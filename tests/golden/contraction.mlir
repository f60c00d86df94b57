#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @schedule(%function: !transform.any_op {transform.consumed}) attributes {tcl.decisions = {copy = false, extra_workgroup = 1 : i64, k_block = 32 : i64, k_step = 1 : i64, lane_workgroup = 25 : i64, lanes = 16 : i64, row_workgroup = 12 : i64, rows = 12 : i64}, tcl.family = "contraction"} {
    // The ops of the dispatch.
    %fill = transform.structured.match ops{["linalg.fill"]} in %function : (!transform.any_op) -> !transform.any_op
    %root = transform.structured.match ops{["linalg.generic"]} in %function : (!transform.any_op) -> !transform.any_op
    %root_0:2 = transform.split_handle %root : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Distribute to workgroups.
    %workgroup, %workgroup_1 = transform.structured.tile_using_forall %root_0#1 tile_sizes [12, 25](mapping = [#gpu.block<y>, #gpu.block<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
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
    %panel_19, %panel_20 = transform.structured.tile_using_for %consumer_18#1 tile_sizes [0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %root_21, %root_22 = transform.structured.fuse_into_containing_op %root_15#1 into %panel_20 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_23, %fill_24 = transform.structured.fuse_into_containing_op %fill_17#1 into %root_22 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %panel_25 = transform.cast %fill_24 : !transform.any_op to !transform.op<"scf.for">
    %panel_26, %panel_27 = transform.loop.peel %panel_25 : (!transform.op<"scf.for">) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    %root_28 = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>]} in %function : (!transform.any_op) -> !transform.any_op
    %root_29:3 = transform.split_handle %root_28 : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %fill_30 = transform.structured.match ops{["linalg.fill"]} in %function : (!transform.any_op) -> !transform.any_op
    %fill_31:3 = transform.split_handle %fill_30 : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %consumer_32 = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>]} in %function : (!transform.any_op) -> !transform.any_op
    %consumer_33:3 = transform.split_handle %consumer_32 : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    // Accumulators get a buffer of their own between blocks of k.
    %accumulators = transform.iree.copy_tensor_operand %root_29#0[2] : (!transform.any_op) -> !transform.any_op
    %accumulators_34 = transform.iree.copy_tensor_operand %root_29#1[2] : (!transform.any_op) -> !transform.any_op
    %accumulators_35 = transform.iree.copy_tensor_operand %root_29#2[2] : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    %root_36 = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>]} in %function : (!transform.any_op) -> !transform.any_op
    %root_37:3 = transform.split_handle %root_36 : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %fill_38 = transform.structured.match ops{["linalg.fill"]} in %function : (!transform.any_op) -> !transform.any_op
    %fill_39:3 = transform.split_handle %fill_38 : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %consumer_40 = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>]} in %function : (!transform.any_op) -> !transform.any_op
    %consumer_41:3 = transform.split_handle %consumer_40 : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    // Panel 0: blocks of k, rows, then k.
    %zero, %zero_42 = transform.structured.tile_using_for %fill_39#0 tile_sizes [12, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %k_block, %k_block_43 = transform.structured.tile_using_for %root_37#0 tile_sizes [0, 0, 32] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %rows, %rows_44 = transform.structured.tile_using_for %k_block tile_sizes [12, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %k, %k_45 = transform.structured.tile_using_for %rows tile_sizes [0, 0, 1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %results, %results_46 = transform.structured.tile_using_for %consumer_41#0 tile_sizes [12, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Panel 1: blocks of k, rows, then k.
    %zero_47, %zero_48 = transform.structured.tile_using_for %fill_39#1 tile_sizes [12, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %k_block_49, %k_block_50 = transform.structured.tile_using_for %root_37#1 tile_sizes [0, 0, 32] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %rows_51, %rows_52 = transform.structured.tile_using_for %k_block_49 tile_sizes [12, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %k_53, %k_54 = transform.structured.tile_using_for %rows_51 tile_sizes [0, 0, 1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %results_55, %results_56 = transform.structured.tile_using_for %consumer_41#1 tile_sizes [12, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Panel 2: blocks of k, rows, then k.
    %zero_57, %zero_58 = transform.structured.tile_using_for %fill_39#2 tile_sizes [12, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %k_block_59, %k_block_60 = transform.structured.tile_using_for %root_37#2 tile_sizes [0, 0, 32] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %rows_61, %rows_62 = transform.structured.tile_using_for %k_block_59 tile_sizes [12, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %k_63, %k_64 = transform.structured.tile_using_for %rows_61 tile_sizes [0, 0, 1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %results_65, %results_66 = transform.structured.tile_using_for %consumer_41#2 tile_sizes [12, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    // Vectors: accumulators become loop-carried vectors.
    %function_67 = transform.apply_registered_pass "iree-codegen-generic-vectorization" with options = {"enable-vector-masking" = false} to %function : (!transform.any_op) -> !transform.any_op
    %function_68 = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %function_67 : (!transform.any_op) -> !transform.any_op
    %function_69 = transform.apply_registered_pass "canonicalize" to %function_68 : (!transform.any_op) -> !transform.any_op
    %function_70 = transform.apply_registered_pass "cse" to %function_69 : (!transform.any_op) -> !transform.any_op
    // Buffers and workgroups.
    transform.iree.eliminate_empty_tensors %function_70 : (!transform.any_op) -> ()
    %function_71 = transform.iree.bufferize %function_70 : (!transform.any_op) -> !transform.any_op
    transform.iree.forall_to_workgroup %function_71 : (!transform.any_op) -> ()
    %function_72 = transform.apply_registered_pass "canonicalize" to %function_71 : (!transform.any_op) -> !transform.any_op
    %function_73 = transform.apply_registered_pass "cse" to %function_72 : (!transform.any_op) -> !transform.any_op
    %function_74 = transform.apply_registered_pass "canonicalize" to %function_73 : (!transform.any_op) -> !transform.any_op
    %function_75 = transform.apply_registered_pass "iree-codegen-generic-vectorization" to %function_74 : (!transform.any_op) -> !transform.any_op
    %function_76 = transform.apply_registered_pass "iree-codegen-hoist-statically-bound-allocations" to %function_75 : (!transform.any_op) -> !transform.any_op
    // Lower vectors.
    %function_77 = transform.apply_registered_pass "iree-codegen-drop-vector-unit-dims" to %function_76 : (!transform.any_op) -> !transform.any_op
    %function_78 = transform.apply_registered_pass "iree-llvmcpu-virtual-vector-lowering" with options = {"split-transfers" = "linalg-copy"} to %function_77 : (!transform.any_op) -> !transform.any_op
    %function_79 = transform.apply_registered_pass "canonicalize" to %function_78 : (!transform.any_op) -> !transform.any_op
    %function_80 = transform.apply_registered_pass "iree-codegen-vector-transfer-lowering" to %function_79 : (!transform.any_op) -> !transform.any_op
    %function_81 = transform.apply_registered_pass "iree-llvmcpu-vector-transpose-lowering" to %function_80 : (!transform.any_op) -> !transform.any_op
    %function_82 = transform.apply_registered_pass "iree-llvmcpu-vector-shape-cast-lowering" to %function_81 : (!transform.any_op) -> !transform.any_op
    %function_83 = transform.apply_registered_pass "cse" to %function_82 : (!transform.any_op) -> !transform.any_op
    // Nothing is left for IREE's own pipeline.
    %translation_info = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_83 "translation_info" = %translation_info : !transform.any_op, !transform.any_param
    transform.annotate %function_83 "tcl.applied" : !transform.any_op
    transform.yield 
  }
  transform.named_sequence @__kernel_config(%module: !transform.any_op {transform.consumed}) {
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @schedule failures(propagate) (%function) : (!transform.any_op) -> ()
    transform.yield 
  }
}
