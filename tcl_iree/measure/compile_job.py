"""Compile inside a worker's child, through IREE's C API: no process start, no files but the library.

Phases run one by one on the same module. Between configuration and translation the configured
dispatch is read, which is where a schedule shows whether it was applied.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from typing import Any

from iree.compiler.api import ctypes_dl as api

from tcl_iree.transform_dialect.names import MARKER

_LIBRARY = "library.mlir"
_ERROR = 2  # iree_compiler_diagnostic_severity_t
_DIAGNOSTIC = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)

# Not declared by the Python binding.
_c_api = api._dylib
_c_api.ireeCompilerInvocationSetCompileFromPhase.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_c_api.ireeCompilerInvocationSetCompileToPhase.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_c_api.ireeCompilerInvocationSetVerifyIR.argtypes = [ctypes.c_void_p, ctypes.c_bool]
_c_api.ireeCompilerInvocationEnableCallbackDiagnostics.argtypes = [
    ctypes.c_void_p,
    ctypes.c_int,
    _DIAGNOSTIC,
    ctypes.c_void_p,
]


class _Compiler:
    """One session with its diagnostics."""

    def __init__(self, flags: list[str], library: str | None, entry: str) -> None:
        # Every flag goes in process-wide, as on iree-compile's command line: some exist only there.
        arguments = ["--mlir-disable-threading", *flags]
        if library is not None:
            # Read by path: this child has a working directory of its own.
            with open(_LIBRARY, "w") as file:
                file.write(library)
            arguments.append(f"--iree-codegen-transform-dialect-library={_LIBRARY}@{entry}")
        api._initializeGlobalCL("iree-compile", *arguments)
        self.session = api.Session()
        self.errors: list[str] = []
        self._callback = _DIAGNOSTIC(self._collect)

    def _collect(self, severity: int, message: int, length: int, _: Any) -> None:
        if severity >= _ERROR:
            text = ctypes.string_at(message, length).decode(errors="replace")
            # What follows is the whole dispatch in generic form.
            text = text.partition("see current operation")[0].strip()
            self.errors.append(text.rpartition("\n\n")[0] or text)

    def parse(self, text: str, name: str) -> api.Invocation | None:
        """An invocation with `text` parsed and verified, or None."""
        invocation = self.session.invocation()
        _c_api.ireeCompilerInvocationEnableCallbackDiagnostics(invocation._inv_p, 0, self._callback, None)
        source = api.Source.wrap_buffer(self.session, text.encode() + b"\0", buffer_name=name)
        return invocation if invocation.parse_source(source) else None


def _phases(invocation: api.Invocation, start: str, end: str, verify: bool) -> bool:
    _c_api.ireeCompilerInvocationSetCompileFromPhase(invocation._inv_p, start.encode())
    _c_api.ireeCompilerInvocationSetCompileToPhase(invocation._inv_p, end.encode())
    _c_api.ireeCompilerInvocationSetVerifyIR(invocation._inv_p, verify)
    return bool(invocation.execute())


def _text(invocation: api.Invocation) -> str:
    output = api.Output.open_membuffer()
    invocation.output_ir(output)
    return bytes(output.map_memory()).decode()


def compile_dispatch(
    module: str, flags: list[str], library: str | None, entry: str, default_configured: str | None
) -> dict[str, Any]:
    """Compile a harness module, with a transform library or plain.

    Args:
        default_configured: `configured` of the plain compile; needed to prove that a library did something.

    Returns:
        `{"vmfb", "configured"}`, or `{"failure", "detail"}`.
    """
    compiler = _Compiler(flags, library, entry)
    if library is not None and compiler.parse(library, _LIBRARY) is None:
        return _failed("verify_error", compiler)
    invocation = compiler.parse(module, "dispatch.mlir")
    if invocation is None:
        return _failed("compile_error", compiler)
    if not _phases(invocation, "executable-sources", "executable-configurations", verify=True):
        return _failed("compile_error", compiler)
    if compiler.errors:  # a library that cannot be used leaves an error, default code and success behind
        return _failed("verify_error", compiler)
    configured = _text(invocation)
    digest = hashlib.sha256(configured.encode()).hexdigest()
    if library is not None and (digest == default_configured or (MARKER in library and MARKER not in configured)):
        return {"failure": "no_match", "detail": "the script left the dispatch as IREE's default has it"}
    # What is left are IREE's own passes, and verifying after each would cost a quarter of the time; unless the
    # schedule goes on in translation.
    goes_on = any(word in configured for word in ("codegen_spec", "pass_pipeline"))
    if not _phases(invocation, "executable-configurations", "end", verify=goes_on) or compiler.errors:
        return _failed("compile_error", compiler)
    output = api.Output.open_membuffer()
    invocation.output_vm_bytecode(output)
    return {"vmfb": bytes(output.map_memory()), "configured": digest}


def probe_device(flags: list[str]) -> str:
    """The `#hal.device.target` attribute that these flags give."""
    compiler = _Compiler(flags, None, "")
    trivial = (
        "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> { "
        "%b = arith.addf %a, %a : tensor<4xf32> return %b : tensor<4xf32> }"
    )
    invocation = compiler.parse(trivial, "probe.mlir")
    if invocation is None or not _phases(invocation, "start", "executable-sources", verify=True):
        raise RuntimeError("; ".join(compiler.errors))
    text = _text(invocation)
    line = next(line for line in text.splitlines() if "util.global private @__device_0 = " in line)
    return line.partition(" = ")[2].rpartition(" : !hal.device")[0].strip()


def _failed(kind: str, compiler: _Compiler) -> dict[str, Any]:
    return {"failure": kind, "detail": "\n".join(compiler.errors)[:1000] or "the compiler gave no reason"}


def job(task: str, **arguments: Any) -> Any:
    """Entry point of the build worker."""
    tasks: dict[str, Callable[..., Any]] = {"compile": compile_dispatch, "probe": probe_device}
    return tasks[task](**arguments)
