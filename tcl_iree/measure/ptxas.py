"""Assemble a CUDA candidate's PTX with NVIDIA's `ptxas`: what its code needs of the hardware, without a GPU.

Registers, spills and shared memory say much about a kernel that cannot be run here, and code that `ptxas` refuses would
be refused by the driver, too.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from tcl_iree.errors import MeasureError
from tcl_iree.measure.results import Artifact
from tcl_iree.processes import run_limited, scratch_directory
from tcl_iree.target import Target

_SECONDS = 60.0
_MEMORY = 4 << 30
# IREE keeps a CUDA kernel in a flatbuffer with this identifier (its `cuda_executable_def`).
_IDENTIFIER = b"CDA1"
_EXPORTS, _MODULES = 0, 1  # fields of the root table
_SHARED = 3  # field of an export: shared memory sized at launch
_PTX = 0  # field of a module


@dataclass(frozen=True)
class PtxReport:
    """What `ptxas` says of a kernel.

    Attributes:
        registers: 32-bit registers of one thread.
        spill_stores, spill_loads, stack: bytes of one thread.
        shared: bytes of a workgroup, those included that are asked for at launch.
        error: why the code was refused; empty if it was assembled.
    """

    registers: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    stack: int = 0
    shared: int = 0
    error: str = ""

    def as_dict(self) -> dict[str, int | str]:
        """The figures by name, to be kept with a trial; the error only where there is one."""
        return {name: value for name, value in asdict(self).items() if name != "error" or value}


def find_ptxas() -> str | None:
    """The path of `ptxas` (part of the CUDA toolkit), or None where it is not installed."""
    return shutil.which("ptxas")


def read_kernel(artifact: Artifact) -> tuple[str, int]:
    """The PTX text inside an artifact, and the bytes of shared memory it is launched with.

    Raises:
        MeasureError: there is none.
    """
    data = artifact.vmfb
    # Once in the header of the executable, once in the flatbuffer itself, after the offset of its root.
    at = data.find(_IDENTIFIER, data.find(_IDENTIFIER) + len(_IDENTIFIER))
    if at < 0:
        raise MeasureError("the artifact holds no PTX; was it built for a CUDA target?")
    root = _follow(data, at - 4)
    export = _first(data, _field(data, root, _EXPORTS))
    text = _follow(data, _field(data, _first(data, _field(data, root, _MODULES)), _PTX))
    length = _number(data, text)
    shared = _field(data, export, _SHARED)
    return data[text + 4 : text + 4 + length].decode(), _number(data, shared) if shared else 0


def assemble(artifact: Artifact, target: Target, ptxas: str) -> PtxReport:
    """Assemble an artifact's kernel for the target's architecture and read what it takes."""
    with scratch_directory("ptxas") as scratch:
        source = Path(scratch) / "kernel.ptx"
        ptx, at_launch = read_kernel(artifact)
        source.write_text(ptx)
        command = [ptxas, "-v", f"-arch={target.arch}", str(source), "-o", str(Path(scratch) / "kernel.cubin")]
        try:
            done = run_limited(command, _SECONDS, _MEMORY)
        except subprocess.TimeoutExpired:
            return PtxReport(error=f"ptxas took longer than {_SECONDS:g} s")
    said = done.stdout + done.stderr
    if done.returncode:
        reasons = [line.replace(str(source), "kernel.ptx") for line in said.splitlines() if line.strip()]
        return PtxReport(error="\n".join(reasons)[:1000] or f"ptxas ended with code {done.returncode}")
    return PtxReport(
        registers=_figure(said, r"Used (\d+) registers"),
        spill_stores=_figure(said, r"(\d+) bytes spill stores"),
        spill_loads=_figure(said, r"(\d+) bytes spill loads"),
        stack=_figure(said, r"(\d+) bytes stack frame"),
        shared=_figure(said, r"(\d+) bytes smem") + at_launch,
    )


def _figure(text: str, pattern: str) -> int:
    return max((int(found) for found in re.findall(pattern, text)), default=0)


def _number(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", data, at)[0])


def _follow(data: bytes, at: int) -> int:
    """Where the offset stored at `at` leads to."""
    return at + _number(data, at)


def _field(data: bytes, table: int, index: int) -> int:
    """Where a table keeps one of its fields; 0 if it has the default."""
    layout = table - int(struct.unpack_from("<i", data, table)[0])
    slot = 4 + 2 * index
    if slot >= struct.unpack_from("<H", data, layout)[0]:
        return 0
    offset = struct.unpack_from("<H", data, layout + slot)[0]
    return table + int(offset) if offset else 0


def _first(data: bytes, at: int) -> int:
    """The first table of the vector that the field at `at` holds."""
    return _follow(data, _follow(data, at) + 4)
