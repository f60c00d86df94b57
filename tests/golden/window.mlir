#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @schedule(%function: !transform.any_op {transform.consumed}) attributes {tcl.decisions = {extra_workgroup = 2 : i64, lanes = 8 : i64, rows = 12 : i64}, tcl.family = "window"} {
    // The ops of the dispatch.
    %fill = transform.structured.match ops{["linalg.fill"]} in %function : (!transform.any_op) -> !transform.any_op
    %root = transform.structured.match ops{["linalg.generic"]} in %function : (!transform.any_op) -> !transform.any_op
    %root_0:2 = transform.split_handle %root : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Distribute to workgroups.
    %workgroup, %workgroup_1 = transform.structured.tile_using_forall %root_0#1 tile_sizes [2, 0, 0](mapping = [#gpu.block<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.iree.populate_workgroup_count_region_using_num_threads_slice %workgroup_1 : (!transform.any_op) -> ()
    %root_2, %root_3 = transform.structured.fuse_into_containing_op %root_0#0 into %workgroup_1 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_4, %fill_5 = transform.structured.fuse_into_containing_op %fill into %root_3 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    // One channel at a time.
    %extra, %extra_6 = transform.structured.tile_using_for %workgroup tile_sizes [1, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %root_7, %root_8 = transform.structured.fuse_into_containing_op %root_2 into %extra_6 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_9, %fill_10 = transform.structured.fuse_into_containing_op %fill_4 into %root_8 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Panels of columns, narrower ones for what is left over.
    %panel, %panel_11 = transform.structured.tile_using_for %extra tile_sizes [0, 0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %root_12, %root_13 = transform.structured.fuse_into_containing_op %root_7 into %panel_11 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_14, %fill_15 = transform.structured.fuse_into_containing_op %fill_9 into %root_13 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %panel_16 = transform.cast %fill_15 : !transform.any_op to !transform.op<"scf.for">
    %panel_17, %panel_18 = transform.loop.peel %panel_16 : (!transform.op<"scf.for">) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    %root_19 = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>]} in %function : (!transform.any_op) -> !transform.any_op
    %root_20:2 = transform.split_handle %root_19 : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_21 = transform.structured.match ops{["linalg.fill"]} in %function : (!transform.any_op) -> !transform.any_op
    %fill_22:2 = transform.split_handle %fill_21 : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %consumer = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>]} in %function : (!transform.any_op) -> !transform.any_op
    %consumer_23:2 = transform.split_handle %consumer : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %panel_24, %panel_25 = transform.structured.tile_using_for %consumer_23#1 tile_sizes [0, 0, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %root_26, %root_27 = transform.structured.fuse_into_containing_op %root_20#1 into %panel_25 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_28, %fill_29 = transform.structured.fuse_into_containing_op %fill_22#1 into %root_27 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %panel_30 = transform.cast %fill_29 : !transform.any_op to !transform.op<"scf.for">
    %panel_31, %panel_32 = transform.loop.peel %panel_30 : (!transform.op<"scf.for">) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    %root_33 = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>]} in %function : (!transform.any_op) -> !transform.any_op
    %root_34:3 = transform.split_handle %root_33 : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %fill_35 = transform.structured.match ops{["linalg.fill"]} in %function : (!transform.any_op) -> !transform.any_op
    %fill_36:3 = transform.split_handle %fill_35 : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %consumer_37 = transform.structured.match ops{["linalg.generic"]} attributes {iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>]} in %function : (!transform.any_op) -> !transform.any_op
    %consumer_38:3 = transform.split_handle %consumer_37 : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    // Panel 0: rows, window positions.
    %rows, %rows_39 = transform.structured.tile_using_for %consumer_38#0 tile_sizes [0, 12, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %root_40, %root_41 = transform.structured.fuse_into_containing_op %root_34#0 into %rows_39 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_42, %fill_43 = transform.structured.fuse_into_containing_op %fill_36#0 into %root_41 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %window, %window_44:2 = transform.structured.tile_using_for %root_40 tile_sizes [0, 0, 0, 1, 1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %rows_45 = transform.cast %fill_43 : !transform.any_op to !transform.op<"scf.for">
    %rows_46, %rows_47 = transform.loop.peel %rows_45 : (!transform.op<"scf.for">) -> (!transform.any_op, !transform.any_op)
    // Panel 1: rows, window positions.
    %rows_48, %rows_49 = transform.structured.tile_using_for %consumer_38#1 tile_sizes [0, 12, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %root_50, %root_51 = transform.structured.fuse_into_containing_op %root_34#1 into %rows_49 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_52, %fill_53 = transform.structured.fuse_into_containing_op %fill_36#1 into %root_51 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %window_54, %window_55:2 = transform.structured.tile_using_for %root_50 tile_sizes [0, 0, 0, 1, 1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %rows_56 = transform.cast %fill_53 : !transform.any_op to !transform.op<"scf.for">
    %rows_57, %rows_58 = transform.loop.peel %rows_56 : (!transform.op<"scf.for">) -> (!transform.any_op, !transform.any_op)
    // Panel 2: rows, window positions.
    %rows_59, %rows_60 = transform.structured.tile_using_for %consumer_38#2 tile_sizes [0, 12, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %root_61, %root_62 = transform.structured.fuse_into_containing_op %root_34#2 into %rows_60 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_63, %fill_64 = transform.structured.fuse_into_containing_op %fill_36#2 into %root_62 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %window_65, %window_66:2 = transform.structured.tile_using_for %root_61 tile_sizes [0, 0, 0, 1, 1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %rows_67 = transform.cast %fill_64 : !transform.any_op to !transform.op<"scf.for">
    %rows_68, %rows_69 = transform.loop.peel %rows_67 : (!transform.op<"scf.for">) -> (!transform.any_op, !transform.any_op)
    // Drop loops of one iteration.
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.linalg.fold_unit_extent_dims_via_slices
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    // Vectors: accumulators become loop-carried vectors.
    %function_70 = transform.apply_registered_pass "iree-codegen-generic-vectorization" with options = {"enable-vector-masking" = false} to %function : (!transform.any_op) -> !transform.any_op
    %function_71 = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %function_70 : (!transform.any_op) -> !transform.any_op
    %function_72 = transform.apply_registered_pass "canonicalize" to %function_71 : (!transform.any_op) -> !transform.any_op
    %function_73 = transform.apply_registered_pass "cse" to %function_72 : (!transform.any_op) -> !transform.any_op
    // Buffers and workgroups.
    transform.iree.eliminate_empty_tensors %function_73 : (!transform.any_op) -> ()
    %function_74 = transform.iree.bufferize %function_73 : (!transform.any_op) -> !transform.any_op
    transform.iree.forall_to_workgroup %function_74 : (!transform.any_op) -> ()
    %function_75 = transform.apply_registered_pass "canonicalize" to %function_74 : (!transform.any_op) -> !transform.any_op
    %function_76 = transform.apply_registered_pass "cse" to %function_75 : (!transform.any_op) -> !transform.any_op
    %function_77 = transform.apply_registered_pass "canonicalize" to %function_76 : (!transform.any_op) -> !transform.any_op
    %function_78 = transform.apply_registered_pass "iree-codegen-generic-vectorization" to %function_77 : (!transform.any_op) -> !transform.any_op
    %function_79 = transform.apply_registered_pass "iree-codegen-hoist-statically-bound-allocations" to %function_78 : (!transform.any_op) -> !transform.any_op
    // Lower vectors.
    %function_80 = transform.apply_registered_pass "iree-codegen-drop-vector-unit-dims" to %function_79 : (!transform.any_op) -> !transform.any_op
    %function_81 = transform.apply_registered_pass "iree-llvmcpu-virtual-vector-lowering" with options = {"split-transfers" = "linalg-copy"} to %function_80 : (!transform.any_op) -> !transform.any_op
    %function_82 = transform.apply_registered_pass "canonicalize" to %function_81 : (!transform.any_op) -> !transform.any_op
    %function_83 = transform.apply_registered_pass "iree-codegen-vector-transfer-lowering" to %function_82 : (!transform.any_op) -> !transform.any_op
    %function_84 = transform.apply_registered_pass "iree-llvmcpu-vector-transpose-lowering" to %function_83 : (!transform.any_op) -> !transform.any_op
    %function_85 = transform.apply_registered_pass "iree-llvmcpu-vector-shape-cast-lowering" to %function_84 : (!transform.any_op) -> !transform.any_op
    %function_86 = transform.apply_registered_pass "cse" to %function_85 : (!transform.any_op) -> !transform.any_op
    // Nothing is left for IREE's own pipeline.
    %translation_info = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_86 "translation_info" = %translation_info : !transform.any_op, !transform.any_param
    transform.annotate %function_86 "tcl.applied" : !transform.any_op
    transform.yield 
  }
  transform.named_sequence @__kernel_config(%module: !transform.any_op {transform.consumed}) {
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @schedule failures(propagate) (%function) : (!transform.any_op) -> ()
    transform.yield 
  }
}
