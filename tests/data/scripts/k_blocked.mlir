// Blocks of k outermost, rows inside them.
module attributes { transform.with_named_sequence } {
  transform.named_sequence @__kernel_config(%module: !transform.any_op {transform.consumed}) {
    %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
    %fill = transform.structured.match ops{["linalg.fill"]} in %function : (!transform.any_op) -> !transform.any_op
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %function : (!transform.any_op) -> !transform.any_op
    %relu = transform.structured.match ops{["linalg.generic"]} in %function : (!transform.any_op) -> !transform.any_op
    %out, %workgroups = transform.structured.tile_using_forall %relu tile_sizes [16, 32] (mapping = [#gpu.block<y>, #gpu.block<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.iree.populate_workgroup_count_region_using_num_threads_slice %workgroups : (!transform.any_op) -> ()
    %product, %w1 = transform.structured.fuse_into_containing_op %matmul into %workgroups : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %zero, %w2 = transform.structured.fuse_into_containing_op %fill into %w1 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %block, %block_loop = transform.structured.tile_using_for %product tile_sizes [0, 0, 48] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %rows, %row_loop = transform.structured.tile_using_for %block tile_sizes [8, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %k, %k_loop = transform.structured.tile_using_for %rows tile_sizes [0, 0, 1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %z, %z_loop = transform.structured.tile_using_for %zero tile_sizes [8, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %o, %o_loop = transform.structured.tile_using_for %out tile_sizes [8, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    // Vectors, then buffers, then the workgroup's own loop.
    %v0 = transform.apply_registered_pass "iree-codegen-generic-vectorization" with options = {"enable-vector-masking" = false} to %function : (!transform.any_op) -> !transform.any_op
    %v1 = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %v0 : (!transform.any_op) -> !transform.any_op
    %v2 = transform.apply_registered_pass "canonicalize" to %v1 : (!transform.any_op) -> !transform.any_op
    %v3 = transform.apply_registered_pass "cse" to %v2 : (!transform.any_op) -> !transform.any_op
    transform.iree.eliminate_empty_tensors %v3 : (!transform.any_op) -> ()
    %b0 = transform.iree.bufferize %v3 : (!transform.any_op) -> !transform.any_op
    transform.iree.forall_to_workgroup %b0 : (!transform.any_op) -> ()
    %b1 = transform.apply_registered_pass "canonicalize" to %b0 : (!transform.any_op) -> !transform.any_op
    %b2 = transform.apply_registered_pass "iree-codegen-hoist-statically-bound-allocations" to %b1 : (!transform.any_op) -> !transform.any_op
    %l0 = transform.apply_registered_pass "iree-codegen-drop-vector-unit-dims" to %b2 : (!transform.any_op) -> !transform.any_op
    %l1 = transform.apply_registered_pass "iree-llvmcpu-virtual-vector-lowering" with options = {"split-transfers" = "linalg-copy"} to %l0 : (!transform.any_op) -> !transform.any_op
    %l2 = transform.apply_registered_pass "iree-codegen-vector-transfer-lowering" to %l1 : (!transform.any_op) -> !transform.any_op
    %l3 = transform.apply_registered_pass "iree-llvmcpu-vector-transpose-lowering" to %l2 : (!transform.any_op) -> !transform.any_op
    %l4 = transform.apply_registered_pass "iree-llvmcpu-vector-shape-cast-lowering" to %l3 : (!transform.any_op) -> !transform.any_op
    %info = transform.param.constant #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline> -> !transform.any_param
    transform.annotate %l4 "translation_info" = %info : !transform.any_op, !transform.any_param
    transform.annotate %l4 "tcl.applied" : !transform.any_op
    transform.yield
  }
}
