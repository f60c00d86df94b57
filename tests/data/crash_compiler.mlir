// A three-entry mapping on a two-dimensional forall: the compiler dies.
module attributes { transform.with_named_sequence } {
  transform.named_sequence @__kernel_config(%variant: !transform.any_op {transform.consumed}) {
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %variant : (!transform.any_op) -> !transform.any_op
    %tiled, %forall = transform.structured.tile_using_forall %matmul tile_sizes [16, 32]
      ( mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>] ) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.iree.populate_workgroup_count_region_using_num_threads_slice %forall : (!transform.any_op) -> ()
    transform.yield
  }
}
