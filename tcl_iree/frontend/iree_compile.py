"""Call stock `iree-compile` on a whole model, in a process with time and memory limits."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from iree.compiler.tools.binaries import find_tool

from tcl_iree.errors import ModelError
from tcl_iree.hardware import machine_memory
from tcl_iree.processes import run_limited, scratch_directory

COMPILE_SECONDS = 1800.0


def compile_model(
    source: Path, flags: Sequence[str], output: Path, timeout: float = COMPILE_SECONDS, graph: str = ""
) -> str:
    """Run `iree-compile source flags -o output`; returns what it printed, which may hold errors it went on after.

    Args:
        graph: a transform script to run on the whole model before dispatches form.

    Raises:
        ModelError: it failed, crashed or took too long; the message has the compiler's own first error.
    """
    with scratch_directory("graph") as scratch:
        command = [find_tool("iree-compile"), str(source), *flags, "-o", str(output)]
        if graph:
            script = Path(scratch) / "graph.mlir"
            script.write_text(graph)
            command.append(f"--iree-preprocessing-transform-spec-filename={script}")
        return _compile(command, source, timeout)


def _compile(command: list[str], source: Path, timeout: float) -> str:
    try:
        done = run_limited(command, timeout, int(0.9 * machine_memory()))
    except subprocess.TimeoutExpired:
        raise ModelError(f"iree-compile did not finish {source.name} in {timeout:g} s") from None
    if done.returncode != 0:
        raise ModelError(f"iree-compile cannot compile {source.name}: {_first_error(done)}")
    return done.stderr


def _first_error(done: subprocess.CompletedProcess[str]) -> str:
    """The compiler's first error line, or how it died."""
    for line in done.stderr.splitlines():
        if "error:" in line:
            return line.strip()[:400]
    if done.returncode < 0:
        return f"it crashed with signal {-done.returncode}"
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0][:400]
