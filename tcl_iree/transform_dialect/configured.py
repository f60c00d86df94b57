"""See dispatches as a transform library sees them.

A library runs just before IREE configures a dispatch, and a few passes have run since the dispatch was formed: softmax
is decomposed by then, attention is in its online form. Matchers must describe that later form, so it is asked of the
compiler itself, for all payloads in one run.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from iree.compiler.tools.binaries import find_tool

from tcl_iree.errors import LibraryError
from tcl_iree.processes import run_limited, scratch_directory
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload
from tcl_iree.workload.payload import ENTRY, pipeline_layout

_PASS = "iree-codegen-materialize-user-configs"
_DUMP = f": {_PASS} //----- //\n"
_SECONDS = 300.0
_MEMORY = 6 << 30


def configured_forms(workloads: Sequence[Workload], target: Target, flags: Sequence[str] = ()) -> list[str]:
    """Each workload's module as a library meets it, in order.

    Raises:
        LibraryError: the compiler does not take one of the payloads.
    """
    if not workloads:
        return []
    with scratch_directory("configured") as scratch:
        source = Path(scratch) / "dispatches.mlir"
        executables = [_executable(index, workload) for index, workload in enumerate(workloads)]
        source.write_text("\n".join(executables))
        phases = ["--compile-from=stream", "--compile-to=executable-configurations"]
        dump = ["--mlir-disable-threading", f"--mlir-print-ir-before={_PASS}", "-o", str(Path(scratch) / "out.mlir")]
        command = [find_tool("iree-compile"), str(source), *target.compile_flags, *flags, *phases, *dump]
        try:
            done = run_limited(command, _SECONDS, _MEMORY)
        except subprocess.TimeoutExpired:
            raise LibraryError(f"iree-compile did not configure the dispatches in {_SECONDS:g} s") from None
    # What comes after a module (IREE's own configuration may fail) is of no interest here.
    forms = [part.partition("\n}\n")[0] + "\n}\n" for part in done.stderr.split(_DUMP)[1:]]
    if len(forms) != len(workloads):
        reason = next((line for line in done.stderr.splitlines() if "error:" in line), f"exit code {done.returncode}")
        raise LibraryError(f"iree-compile cannot configure the dispatches: {reason[:400]}")
    return forms


def _executable(index: int, workload: Workload) -> str:
    layout = pipeline_layout([binding.access for binding in workload.bindings])
    return f"""hal.executable.source public @executable_{index} {{
  hal.executable.export public @{ENTRY} ordinal(0) layout({layout}) count(%device: !hal.device) -> (index, index, index) {{
    %x, %y, %z = iree_tensor_ext.dispatch.workgroup_count_from_slice()
    hal.return %x, %y, %z : index, index, index
  }}
  builtin.{workload.payload.strip().removeprefix("builtin.")}
}}"""  # noqa: E501 - IR reads best one op a line
