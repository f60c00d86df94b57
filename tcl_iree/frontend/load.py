"""Read a model from wherever users have it and hold it as one MLIR file.

model.mlir, model.mlirbc     as is
model.onnx                   through iree-import-onnx
package.module:function      a Python function that returns (torch module, example inputs)
path/to/file.py:function     the same from a file
zoo:NAME                     a bundled architecture with random weights, see `zoo.py`
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tcl_iree.errors import ModelError, WorkloadError
from tcl_iree.processes import scratch_directory
from tcl_iree.workload.analysis import analyse
from tcl_iree.workload.model import Workload
from tcl_iree.workload.payload import ENTRY, SUBSPAN

_FORMS = "give a .mlir, .mlirbc or .onnx file, module:function, file.py:function or zoo:NAME"


@dataclass(frozen=True)
class Model:
    """A model as an MLIR file on disk; weights stay in that file and are never copied around.

    Attributes:
        inputs: example inputs, where the source came with some.
        scratch: keeps an imported file alive as long as the model.
    """

    name: str
    path: Path
    inputs: tuple[np.ndarray, ...] | None = None
    scratch: Any = field(default=None, repr=False, compare=False)


def load_model(source: Any, inputs: Any = None) -> Model:
    """Load a model from a path, a `module:function`, or a `torch.nn.Module` with example inputs.

    Args:
        inputs: a tuple of tensors; a tensor alone is the only input.

    Raises:
        ModelError: with what is wrong and what would be right.
    """
    if not isinstance(source, str | Path):
        if inputs is None:
            raise ModelError("a torch module needs example inputs: load_model(module, inputs=(tensor, ...))")
        return _from_torch(source, inputs, type(source).__name__)
    text = str(source)
    if text.startswith("zoo:"):
        from tcl_iree.frontend import zoo

        module, example = zoo.build(text.removeprefix("zoo:"))
        return _from_torch(module, example, text.removeprefix("zoo:"))
    path = Path(text)
    if path.suffix in (".mlir", ".mlirbc", ".onnx"):
        if not path.is_file():
            raise ModelError(f"no file at {path}; {_FORMS}")
        if path.suffix == ".onnx":
            return _from_onnx(path)
        _refuse_other_formats(path)
        return Model(path.stem, path.resolve())
    if ":" in text:
        return _from_function(text)
    problem = f"{path} has a form this project does not read" if path.exists() else f"no model at {text!r}"
    raise ModelError(f"{problem}; {_FORMS}")


def read_payload(source: str | Path) -> Workload | None:
    """The workload in a file that `tcl-iree extract --save` wrote; None if `source` is something else.

    Raises:
        ModelError: it looks like a payload but is damaged.
    """
    path = Path(source)
    if path.suffix != ".mlir" or not path.is_file():
        return None
    head = _head(path)
    if SUBSPAN.encode() not in head or f"@{ENTRY}()".encode() not in head:
        return None
    try:
        return analyse(path.read_text())
    except (WorkloadError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} is not a usable payload: {_line(error)}") from None


def _refuse_other_formats(path: Path) -> None:
    """One clear line for files that are no MLIR at all; the compiler judges the rest."""
    head = _head(path)
    if head.startswith(b"ML\xefR"):
        return
    if b"\0" in head or not any(word in head for word in (b"module", b"func", b"util.", b"@", b"#")):
        raise ModelError(f"{path} is not MLIR (neither text nor bytecode); {_FORMS}")


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(65536)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None


def _from_function(text: str) -> Model:
    module_name, _, function_name = text.rpartition(":")
    with contextlib.redirect_stdout(sys.stderr):  # ours is for results
        module = _import_file(Path(module_name)) if module_name.endswith(".py") else _import_module(module_name)
        function = getattr(module, function_name, None)
        if not callable(function):
            raise ModelError(f"{module_name} has no function {function_name!r}")
        try:
            made = function()
        except Exception as error:
            raise ModelError(f"{text} raised {type(error).__name__}: {_line(error)}") from error
    if not (isinstance(made, tuple) and len(made) == 2):
        raise ModelError(f"{text} must return (torch module, tuple of example inputs)")
    network, example = made
    return _from_torch(network, example, f"{Path(module_name).stem}.{function_name}")


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ModelError(f"no file at {path}; {_FORMS}")
    # A name of its own, under which dataclasses and torch.export find the module, and no other of the same name.
    spec = importlib.util.spec_from_file_location(f"tcl_iree_model_{path.stem}", path)
    assert spec
    assert spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))  # it may import what lies beside it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        raise ModelError(f"{path} cannot be imported: {type(error).__name__}: {_line(error)}") from error
    finally:
        sys.path.remove(str(path.parent))
    return module


def _line(error: Exception) -> str:
    return (str(error).splitlines() or ["no message"])[0][:300]


def _import_module(name: str) -> ModuleType:
    sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever its code raises
        raise ModelError(f"cannot import {name!r}: {type(error).__name__}: {_line(error)}; {_FORMS}") from None
    finally:
        sys.path.remove("")


def _from_torch(module: Any, given: Any, name: str) -> Model:
    from tcl_iree.frontend.torch_import import import_torch

    inputs = (given,) if hasattr(given, "detach") else given
    if not isinstance(inputs, Sequence):
        raise ModelError(f"example inputs must be a tuple of tensors, not {type(given).__name__}")
    inputs = tuple(inputs)
    scratch = scratch_directory("model")
    path = Path(scratch.name) / f"{name}.mlirbc"
    import_torch(module, inputs, path)
    try:
        arrays = tuple(tensor.detach().cpu().numpy() for tensor in inputs)
    except (AttributeError, TypeError) as error:
        raise ModelError(f"example inputs must be tensors of a type numpy has: {_line(error)}") from None
    return Model(name, path, arrays, scratch)


def _from_onnx(path: Path) -> Model:
    try:
        from iree.compiler.tools.import_onnx import __main__ as importer
    except ImportError as error:
        raise ModelError(f"reading ONNX needs `pip install tcl-iree[onnx]` ({error})") from None
    scratch = scratch_directory("model")
    output = Path(scratch.name) / f"{path.stem}.mlir"
    heard = io.StringIO()
    try:
        with contextlib.redirect_stderr(heard), contextlib.redirect_stdout(heard):
            code = importer.main(importer.parse_arguments([str(path), "-o", str(output)]))
    except Exception as error:  # the importer raises whatever onnx and protobuf raise
        raise ModelError(f"{path} cannot be imported as ONNX: {_line(error)}") from None
    if code or not output.exists():
        raise ModelError(
            f"{path} cannot be imported as ONNX: {(heard.getvalue().splitlines() or [str(code)])[-1][:300]}"
        )
    return Model(path.stem, output, None, scratch)
