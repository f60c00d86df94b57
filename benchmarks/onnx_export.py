"""Write a network of the zoo as ONNX, with the very weights that torch runs.

In a process of its own, `python -m benchmarks.onnx_export NETWORK FILE`: peers that read the file need no torch.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.peers import network
from tcl_iree.errors import ModelError
from tcl_iree.hardware import machine_memory
from tcl_iree.processes import run_limited


def export(name: str, path: Path, limit: float) -> Path:
    """Export within `limit` seconds.

    Raises:
        ModelError: why it cannot be exported.
    """
    command = [sys.executable, "-m", "benchmarks.onnx_export", name, str(path)]
    try:
        done = run_limited(command, limit, machine_memory())
    except subprocess.TimeoutExpired:
        raise ModelError(f"the export to ONNX took more than {limit:g} s") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise ModelError(f"the export to ONNX failed: {last[:300]}")
    return path


def main() -> None:
    """Export."""
    import torch

    name, path = sys.argv[1:]
    module, inputs = network(name)
    torch.onnx.export(module, inputs, path, dynamo=True, verbose=False)


if __name__ == "__main__":
    main()
