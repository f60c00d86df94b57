"""One script of every family, word for word: what users will read, and what a change of IREE's syntax would break.

To write them anew after a wanted change: `python tests/test_golden_scripts.py`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import pytest
from conftest import workload_of
from shapes import attention, contraction, convolution, convolution_panels, depthwise, pooling

from tcl_iree.target import Target
from tcl_iree.transform_dialect.families import FAMILIES, family_of
from tcl_iree.transform_dialect.script import read_schedule
from tcl_iree.workload.model import Workload

GOLDEN = Path(__file__).parent / "golden"
# Not the host's own CPU: the same scripts on every machine.
CPU, CUDA, VULKAN = "cpu:avx512,threads=1", "cuda:sm_80", "vulkan"
MATMUL = contraction({"m": 60, "n": 100, "k": 96}, consumer="bias")
EVEN_MATMUL = contraction({"m": 64, "n": 128, "k": 96})
REDUCTION = """func.func @main(%x: tensor<64x96xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.reduce { arith.addf } ins(%x : tensor<64x96xf32>) outs(%init : tensor<64xf32>) dimensions = [1]
  return %sum : tensor<64xf32>
}
"""
TRANSPOSE = """func.func @main(%x: tensor<48x80xf32>) -> tensor<80x48xf32> {
  %empty = tensor.empty() : tensor<80x48xf32>
  %t = linalg.transpose ins(%x : tensor<48x80xf32>) outs(%empty : tensor<80x48xf32>) permutation = [1, 0]
  return %t : tensor<80x48xf32>
}
"""
CASES = {
    "contraction": (MATMUL, CPU),
    "packed": (contraction({"m": 32, "n": 96, "k": 64}, rhs="nk"), CPU),
    "convolution": (convolution(16, 32, 28, 3, consumer="relu"), CPU),
    "filter_panels": (convolution_panels(16, 4, 32, 14, 3, consumer="bias"), CPU),
    "window": (depthwise(12, 14, 3, consumer="relu"), CPU),
    "strided_pooling": (pooling(32, 14, 3, stride=2), CPU),
    "config": (MATMUL, CPU),
    "reduction": (REDUCTION, CPU),
    "elementwise": (TRANSPOSE, CPU),
    "attention": (attention(4, 32, 16, 16, 48), CPU),
    "gpu_threads": (EVEN_MATMUL, CUDA),
    "cuda_simt": (EVEN_MATMUL, CUDA),
    "cuda_mma": (contraction({"m": 64, "n": 128, "k": 64}, dtype="f16"), CUDA),
    "cuda_reduction": (REDUCTION, CUDA),
    "vulkan_config": (EVEN_MATMUL, VULKAN),
}


def workload_and_target(name: str, folder: Path) -> tuple[Workload, Target]:
    text, target = CASES[name]
    return workload_of(text, folder, Target.parse(target)), Target.parse(target)


@pytest.mark.parametrize("name", [family.name for family in FAMILIES])
def test_script_is_as_it_was(name: str, tmp_path: Path) -> None:
    text = (GOLDEN / f"{name}.mlir").read_text()
    workload, target = workload_and_target(name, tmp_path)
    schedule = read_schedule(text)
    assert family_of(name).script(schedule, workload, target) == text
    assert family_of(name).parse(text, workload, target) == schedule


def write_golden_scripts() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for family in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            workload, target = workload_and_target(family.name, Path(folder))
            schedule = family.sample(workload, target, Random(1))
            assert schedule, family.name
            (GOLDEN / f"{family.name}.mlir").write_text(family.script(schedule, workload, target))
            print(schedule)


if __name__ == "__main__":
    write_golden_scripts()
