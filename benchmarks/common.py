"""What the benchmarks share: a matmul with many schedules, and how results are kept."""

from __future__ import annotations

import json
import platform
import shlex
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from tcl_iree.frontend import extract, load_model
from tcl_iree.hardware import host_cpu
from tcl_iree.measure.builder import IREE_VERSION, Candidate
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

RESULTS = Path(__file__).parent / "results"
_PLACES = ("--db", "--output", "--results", "--checkpoints", "--tvm-python")

_MATMUL = """func.func @main(%a: tensor<{m}x{k}xf32>, %b: tensor<{k}x{n}xf32>) -> tensor<{m}x{n}xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{m}x{n}xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %product = linalg.matmul ins(%a, %b : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>) outs(%init : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  return %product : tensor<{m}x{n}xf32>
}}
"""

_CONFIG = """module attributes {{ transform.with_named_sequence }} {{
  transform.named_sequence @match_matmul(%op: !transform.any_op {{transform.readonly}}) -> (!transform.any_op, !transform.any_param) {{
    transform.match.operation_name %op ["linalg.matmul"] : !transform.any_op
    %config = transform.param.constant #iree_codegen.compilation_info<
      lowering_config = #iree_cpu.lowering_config<distribution = [{wm}, {wn}, 0], vector_common_parallel = [{m}, {n}, 0], vector_reduction = [0, 0, {k}]>,
      translation_info = #iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>>> -> !transform.any_param
    transform.yield %op, %config : !transform.any_op, !transform.any_param
  }}
  transform.named_sequence @apply(%op: !transform.any_op {{transform.readonly}}, %config: !transform.any_param {{transform.readonly}}) {{
    transform.annotate %op "compilation_info" = %config : !transform.any_op, !transform.any_param
    transform.annotate %op "tcl.applied" : !transform.any_op
    transform.yield
  }}
  transform.named_sequence @__kernel_config(%variant: !transform.any_op {{transform.consumed}}) -> !transform.any_op {{
    %result = transform.foreach_match in %variant @match_matmul -> @apply : (!transform.any_op) -> !transform.any_op
    transform.yield %result : !transform.any_op
  }}
}}
"""


def matmul_text(m: int, n: int, k: int) -> str:
    """A model that is one matmul."""
    return _MATMUL.format(m=m, n=n, k=k)


def matmul_workload(m: int, n: int, k: int, target: Target) -> Workload:
    """The dispatch IREE forms for it."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "matmul.mlir"
        path.write_text(matmul_text(m, n, k))
        (entry,) = extract(load_model(path), target).dispatches
        return entry.workload


def matmul_config(wm: int, wn: int, m: int, n: int, k: int) -> Candidate:
    """IREE's double-tiling pipeline with workgroup tile `wm x wn`, register tile `m x n` and reduction step `k`."""
    return Candidate(_CONFIG.format(wm=wm, wn=wn, m=m, n=n, k=k))


def platform_of(key: str) -> str:
    """What a target's key counts as where platforms are compared: the host's own CPU and its class are one."""
    return key.replace("native.", "", 1)


def measured_here() -> dict[str, str]:
    """When, how and on which CPU: every figure of a result that is put together in several runs carries it."""
    host = host_cpu()
    name = ", ".join(filter(None, (host.model, host.revision)))
    module = Path(sys.argv[0]).stem
    return {
        "command": shlex.join(["python", "-m", f"benchmarks.{module}", *_without_places(sys.argv[1:])]),
        "date": time.strftime("%Y-%m-%d"),
        "cpu": f"{name} ({host.isa_classes[0]})",
        "iree": IREE_VERSION,
    }


def recorded(name: str, place: Path = RESULTS) -> dict[str, Any]:
    """The result as it was recorded last; empty if there is none."""
    path = place / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def save(name: str, figures: dict[str, Any], place: Path = RESULTS) -> Path:
    """Keep a result with the machine and versions it was measured on."""
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{name}.json"
    where = {
        **measured_here(),
        "cores": host_cpu().cores,
        "python": platform.python_version(),
    }
    path.write_text(json.dumps({**where, **figures}, indent=2) + "\n")
    return path


def _without_places(arguments: list[str]) -> list[str]:
    """A command line without where files were kept, which changes no figure."""
    kept: list[str] = []
    for before, argument in pairwise(["", *arguments]):
        if argument not in _PLACES and before not in _PLACES:
            kept.append(argument)
    return kept
