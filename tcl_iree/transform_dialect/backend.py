"""The fixed end of every whole-script CPU schedule: vectors, buffers, and IREE's own lowering passes."""

from __future__ import annotations

from tcl_iree.transform_dialect.names import MARKER
from tcl_iree.transform_dialect.script import Script

_NO_PIPELINE = "#iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>"


def lower_to_vectors_and_buffers(script: Script, distributed_by_iree: bool = False) -> None:
    """From tiled tensor code to vector code on buffers, ready for LLVM.

    Args:
        distributed_by_iree: IREE's own pass made the workgroups, and IREE will resolve them later.
    """
    script.phase("Vectors: accumulators become loop-carried vectors.")
    script.run_pass("iree-codegen-generic-vectorization", enable_vector_masking=False)
    script.run_pass("iree-codegen-optimize-tensor-insert-extract-slices")
    script.run_pass("canonicalize")
    script.run_pass("cse")
    script.phase("Buffers and workgroups.")
    script.iree_op("eliminate_empty_tensors")
    script.iree_op("bufferize", result=True)
    if not distributed_by_iree:
        script.iree_op("forall_to_workgroup")
    # Copies of a buffer onto itself must go before vectorizing what is left, or compiling takes seconds.
    script.run_pass("canonicalize")
    script.run_pass("cse")
    script.run_pass("canonicalize")
    script.run_pass("iree-codegen-generic-vectorization")
    script.run_pass("iree-codegen-hoist-statically-bound-allocations")
    script.phase("Lower vectors.")
    script.run_pass("iree-codegen-drop-vector-unit-dims")
    script.run_pass("iree-llvmcpu-virtual-vector-lowering", split_transfers="linalg-copy")
    script.run_pass("canonicalize")
    script.run_pass("iree-codegen-vector-transfer-lowering")
    script.run_pass("iree-llvmcpu-vector-transpose-lowering")
    script.run_pass("iree-llvmcpu-vector-shape-cast-lowering")
    script.run_pass("cse")
    script.phase("Nothing is left for IREE's own pipeline.")
    script.annotate(script.function, "translation_info", _NO_PIPELINE)
    script.annotate(script.function, MARKER)
