"""Find the ops of a dispatch as GPU back ends have them when scripts run: matmuls and the like are generics by then."""

from __future__ import annotations

from iree.compiler import ir

from tcl_iree.transform_dialect.names import GENERIC, MARKER
from tcl_iree.transform_dialect.script import Script
from tcl_iree.workload.model import StructuredOp, Workload

_GENERALIZED = frozenset(
    f"linalg.{name}" for name in ("batch_matmul", "dot", "matmul", "matvec", "transpose", "vecmat", "reduce")
)


def kind_on_gpu(op: StructuredOp) -> str:
    """The kind an op has when the script runs."""
    return GENERIC if op.kind in _GENERALIZED else op.kind


def find_ops(script: Script, workload: Workload) -> dict[int, ir.Value]:
    """Handles of every op of the dispatch, by position."""
    kinds: dict[str, list[int]] = {}
    for index, op in enumerate(workload.ops):
        kinds.setdefault(kind_on_gpu(op), []).append(index)
    handles: dict[int, ir.Value] = {}
    for kind, positions in kinds.items():
        name = kind.rpartition(".")[2]
        handles |= dict(zip(positions, script.match([kind], name, len(positions)), strict=True))
    return handles


def annotate_root(script: Script, workload: Workload, config: str, translation: str) -> None:
    """Set the root's config and the dispatch's pipeline; IREE does the rest."""
    root = workload.root
    script.phase("Set the root's config; IREE's own pipeline does the rest.")
    kinds = [loop.kind for loop in root.loops] if kind_on_gpu(root) == GENERIC else []
    alike = [op for op in workload.ops if kind_on_gpu(op) == kind_on_gpu(root)]
    if kinds:
        alike = [op for op in alike if [loop.kind for loop in op.loops] == kinds]
    position = next(index for index, op in enumerate(alike) if op.role == "root")
    handle = script.match([kind_on_gpu(root)], "root", len(alike), kinds)[position]
    info = f"lowering_config = {config}, translation_info = #iree_codegen.translation_info<{translation}>"
    script.annotate(handle, "compilation_info", f"#iree_codegen.compilation_info<{info}>")
    script.annotate(script.function, MARKER)
