"""Call stock `iree-compile` on a whole model, in a process with time and memory limits."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Sequence
from pathlib import Path

from iree.compiler.tools.binaries import find_tool

from tcl_iree.errors import ModelError

COMPILE_SECONDS = 1800.0
COMPILE_BYTES = 20 << 30


def compile_model(
    source: Path, flags: Sequence[str], output: Path, timeout: float = COMPILE_SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run `iree-compile source flags -o output`.

    Raises:
        ModelError: it failed, crashed or took too long; the message has the compiler's own first error.
    """
    command = [find_tool("iree-compile"), str(source), *flags, "-o", str(output)]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (COMPILE_BYTES, COMPILE_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, preexec_fn=limit, check=False)
    except subprocess.TimeoutExpired:
        raise ModelError(f"iree-compile did not finish {source.name} in {timeout:g} s") from None
    if done.returncode != 0:
        raise ModelError(f"iree-compile cannot compile {source.name}: {first_error(done)}")
    return done


def first_error(done: subprocess.CompletedProcess[str]) -> str:
    """The compiler's first error line, or how it died."""
    for line in done.stderr.splitlines():
        if "error:" in line:
            return line.strip()[:400]
    if done.returncode < 0:
        return f"it crashed with signal {-done.returncode}"
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0][:400]
