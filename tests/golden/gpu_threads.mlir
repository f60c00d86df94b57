module attributes {transform.with_named_sequence} {
  transform.named_sequence @schedule(%function: !transform.any_op {transform.consumed}) attributes {tcl.decisions = {step2 = 3 : i64, x_threads = 4 : i64, x_tile = 16 : i64, y_threads = 64 : i64, y_tile = 1 : i64}, tcl.family = "gpu_threads"} {
    %fill = transform.structured.match ops{["linalg.fill"]} in %function : (!transform.any_op) -> !transform.any_op
    %generic = transform.structured.match ops{["linalg.generic"]} in %function : (!transform.any_op) -> !transform.any_op
    // One tile of the result for each workgroup.
    %workgroup, %workgroup_0 = transform.structured.tile_using_forall %generic tile_sizes [64, 64, 0](mapping = [#gpu.block<y>, #gpu.block<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.iree.populate_workgroup_count_region_using_num_threads_slice %workgroup_0 : (!transform.any_op) -> ()
    %fill_1, %fill_2 = transform.structured.fuse_into_containing_op %fill into %workgroup_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    // One tile of the result for each thread.
    %thread, %thread_3 = transform.structured.tile_using_forall %workgroup tile_sizes [1, 16, 0](mapping = [#gpu.thread<y>, #gpu.thread<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_4, %fill_5 = transform.structured.fuse_into_containing_op %fill_1 into %thread_3 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_6 = transform.structured.generalize %fill_4 : (!transform.any_op) -> !transform.any_op
    // Step through the reductions.
    %step, %step_7 = transform.structured.tile_using_for %thread tile_sizes [0, 0, 3] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.linalg.fold_unit_extent_dims_via_slices
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.linalg.fold_unit_extent_dims_via_slices
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    // Vectors: accumulators become values that loops carry.
    %function_8 = transform.apply_registered_pass "iree-codegen-generic-vectorization" with options = {"enable-vector-masking" = false} to %function : (!transform.any_op) -> !transform.any_op
    %function_9 = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %function_8 : (!transform.any_op) -> !transform.any_op
    %function_10 = transform.apply_registered_pass "canonicalize" to %function_9 : (!transform.any_op) -> !transform.any_op
    %function_11 = transform.apply_registered_pass "cse" to %function_10 : (!transform.any_op) -> !transform.any_op
    // Buffers, workgroups and threads.
    transform.iree.eliminate_empty_tensors %function_11 : (!transform.any_op) -> ()
    %function_12 = transform.iree.bufferize <target_gpu> %function_11 : (!transform.any_op) -> !transform.any_op
    transform.iree.forall_to_workgroup %function_12 : (!transform.any_op) -> ()
    transform.iree.map_nested_forall_to_gpu_threads %function_12 workgroup_dims = [4, 64, 1] : (!transform.any_op) -> ()
    transform.apply_patterns to %function_12 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_12 : !transform.any_op
    %function_13 = transform.apply_registered_pass "fold-memref-alias-ops" to %function_12 : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function_13 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_13 : !transform.any_op
    %accumulators = transform.structured.match ops{["memref.alloc"]} in %function_13 : (!transform.any_op) -> !transform.any_op
    transform.match.operation_empty %accumulators : !transform.any_op
    transform.annotate %function_13 "tcl.applied" : !transform.any_op
    transform.yield 
  }
  transform.named_sequence @__kernel_config(%module: !transform.any_op {transform.consumed}) {
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.include @schedule failures(propagate) (%function) : (!transform.any_op) -> ()
    transform.yield 
  }
}
