"""See dispatches as a transform library sees them, and as IREE configures them by itself.

A library runs just before IREE configures a dispatch, and a few passes have run since the dispatch was formed: softmax
is decomposed by then, attention is in its online form. Matchers must describe that later form, so it is asked of the
compiler itself, for all payloads in one run.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from iree.compiler import ir
from iree.compiler.tools.binaries import find_tool

from tcl_iree.errors import LibraryError
from tcl_iree.processes import run_limited, scratch_directory
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload
from tcl_iree.workload.payload import ENTRY, pipeline_layout, walk

_PASS = "iree-codegen-materialize-user-configs"
_DUMP = f": {_PASS} //----- //\n"
_SECONDS = 300.0
_MEMORY = 6 << 30
# Where IREE writes down how it will compile a dispatch: on the function, and on the ops that guide it.
_CONFIGURATION = ("translation_info", "lowering_config", "compilation_info")


def configured_forms(workloads: Sequence[Workload], target: Target, flags: Sequence[str] = ()) -> list[str]:
    """Each workload's module as a library meets it, in order.

    Raises:
        LibraryError: the compiler does not take one of the payloads.
    """
    if not workloads:
        return []
    done, _ = _configured(workloads, target, [*flags, "--mlir-disable-threading", f"--mlir-print-ir-before={_PASS}"])
    # What comes after a module (IREE's own configuration may fail) is of no interest here.
    forms = [part.partition("\n}\n")[0] + "\n}\n" for part in done.stderr.split(_DUMP)[1:]]
    if len(forms) != len(workloads):
        raise _cannot(done)
    return forms


def default_configurations(workloads: Sequence[Workload], target: Target, flags: Sequence[str] = ()) -> list[str]:
    """How IREE configures each workload without a library, for people to read: pipeline and tile sizes, by op.

    Raises:
        LibraryError: the compiler does not take one of the payloads.
    """
    if not workloads:
        return []
    done, text = _configured(workloads, target, flags)
    with ir.Context(), ir.Location.unknown():
        try:
            module = ir.Module.parse(text)
        except ir.MLIRError:
            raise _cannot(done) from None
        executables = [op.operation for op in module.body.operations if op.operation.name == "hal.executable"]
        if len(executables) != len(workloads):
            raise _cannot(done)
        return ["\n".join(_configuration(executable)) for executable in executables]


def _configured(
    workloads: Sequence[Workload], target: Target, flags: Sequence[str]
) -> tuple[subprocess.CompletedProcess[str], str]:
    """What `iree-compile` says and writes while it configures all workloads in one run; nothing if it gave up."""
    with scratch_directory("configured") as scratch:
        source, output = Path(scratch) / "dispatches.mlir", Path(scratch) / "out.mlir"
        executables = [_executable(index, workload) for index, workload in enumerate(workloads)]
        source.write_text("\n".join(executables))
        phases = ["--compile-from=stream", "--compile-to=executable-configurations", "-o", str(output)]
        command = [find_tool("iree-compile"), str(source), *target.compile_flags, *flags, *phases]
        try:
            done = run_limited(command, _SECONDS, _MEMORY)
        except subprocess.TimeoutExpired:
            raise LibraryError(f"iree-compile did not configure the dispatches in {_SECONDS:g} s") from None
        return done, output.read_text() if done.returncode == 0 and output.exists() else ""


def _cannot(done: subprocess.CompletedProcess[str]) -> LibraryError:
    reason = next((line for line in done.stderr.splitlines() if "error:" in line), f"exit code {done.returncode}")
    return LibraryError(f"iree-compile cannot configure the dispatches: {reason[:400]}")


def _configuration(executable: ir.Operation) -> Iterator[str]:
    for op in walk(executable):
        held = [name for name in _CONFIGURATION if name in op.attributes]
        if held:
            yield op.name
            yield from (f"  {name} = {op.attributes[name]}" for name in held)


def _executable(index: int, workload: Workload) -> str:
    layout = pipeline_layout([binding.access for binding in workload.bindings])
    return f"""hal.executable.source public @executable_{index} {{
  hal.executable.export public @{ENTRY} ordinal(0) layout({layout}) count(%device: !hal.device) -> (index, index, index) {{
    %x, %y, %z = iree_tensor_ext.dispatch.workgroup_count_from_slice()
    hal.return %x, %y, %z : index, index, index
  }}
  builtin.{workload.payload.strip().removeprefix("builtin.")}
}}"""  # noqa: E501 - IR reads best one op a line
