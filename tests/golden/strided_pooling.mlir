#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @schedule(%function: !transform.any_op {transform.consumed}) attributes {tcl.decisions = {columns = 1 : i64, lane_workgroup = 32 : i64, lanes = 16 : i64, row_workgroup = 7 : i64, rows = 7 : i64}, tcl.family = "strided_pooling"} {
    // Pack channels: `op over (c, ..)` becomes pack, op over (panel, .., lane), unpack.
    %root = transform.structured.match ops{["linalg.generic"]} in %function : (!transform.any_op) -> !transform.any_op
    %root_0 = transform.structured.pack %root packed_sizes = [16, 0, 0, 0, 0] : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    %unpack = transform.structured.match ops{["linalg.unpack"]} in %function : (!transform.any_op) -> !transform.any_op
    %pack = transform.structured.match ops{["linalg.pack"]} in %function : (!transform.any_op) -> !transform.any_op
    %fill = transform.structured.match ops{["linalg.fill"]} in %function : (!transform.any_op) -> !transform.any_op
    %root_1 = transform.structured.match ops{["linalg.generic"]} in %function : (!transform.any_op) -> !transform.any_op
    // Distribute to workgroups.
    %workgroup, %workgroup_2 = transform.structured.tile_using_forall %unpack tile_sizes [0, 7, 0](mapping = [#gpu.block<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.iree.populate_workgroup_count_region_using_num_threads_slice %workgroup_2 : (!transform.any_op) -> ()
    %root_3, %root_4 = transform.structured.fuse_into_containing_op %root_1 into %workgroup_2 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %pack_5, %pack_6 = transform.structured.fuse_into_containing_op %pack into %root_4 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_7, %fill_8 = transform.structured.fuse_into_containing_op %fill into %pack_6 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    // A panel of channels and a few rows at a time, with their packed part of the image.
    %panel, %panel_9 = transform.structured.tile_using_for %workgroup tile_sizes [16, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %root_10, %root_11 = transform.structured.fuse_into_containing_op %root_3 into %panel_9 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %pack_12, %pack_13 = transform.structured.fuse_into_containing_op %pack_5 into %root_11 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_14, %fill_15 = transform.structured.fuse_into_containing_op %fill_7 into %pack_13 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Tiles of columns.
    %columns, %columns_16:2 = transform.structured.tile_using_for %panel tile_sizes [0, 1, 1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %root_17, %root_18 = transform.structured.fuse_into_containing_op %root_10 into %columns_16#1 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_19, %fill_20 = transform.structured.fuse_into_containing_op %fill_14 into %root_18 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    // One window position at a time, for all columns of a tile.
    %window, %window_21:2 = transform.structured.tile_using_for %root_17 tile_sizes [0, 0, 0, 1, 1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %column, %column_22 = transform.structured.tile_using_for %window tile_sizes [0, 0, 1, 0, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Pack by small squares, so that they are transposed in registers.
    %pack_23, %pack_24:3 = transform.structured.tile_using_for %pack_12 tile_sizes [1, 1, 16] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    %pack_25 = transform.cast %pack_24#2 : !transform.any_op to !transform.op<"scf.for">
    %pack_26, %pack_27 = transform.loop.peel %pack_25 : (!transform.op<"scf.for">) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    %function_28 = transform.apply_registered_pass "iree-codegen-decompose-pack-unpack-ops" to %function : (!transform.any_op) -> !transform.any_op
    // Drop loops of one iteration.
    transform.apply_patterns to %function_28 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.linalg.fold_unit_extent_dims_via_slices
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_28 : !transform.any_op
    // Vectors: accumulators become loop-carried vectors.
    %function_29 = transform.apply_registered_pass "iree-codegen-generic-vectorization" with options = {"enable-vector-masking" = false} to %function_28 : (!transform.any_op) -> !transform.any_op
    %function_30 = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %function_29 : (!transform.any_op) -> !transform.any_op
    %function_31 = transform.apply_registered_pass "canonicalize" to %function_30 : (!transform.any_op) -> !transform.any_op
    %function_32 = transform.apply_registered_pass "cse" to %function_31 : (!transform.any_op) -> !transform.any_op
    // Buffers and workgroups.
    transform.iree.eliminate_empty_tensors %function_32 : (!transform.any_op) -> ()
    %function_33 = transform.iree.bufferize %function_32 : (!transform.any_op) -> !transform.any_op
    transform.iree.forall_to_workgroup %function_33 : (!transform.any_op) -> ()
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
