"""torch modules to MLIR: iree-turbine first, IREE's own importer where turbine cannot."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tcl_iree.errors import ModelError

_log = logging.getLogger(__name__)


def import_torch(module: Any, inputs: tuple[Any, ...], path: Path) -> None:
    """Export `module` for these example inputs, as it infers, and save it as MLIR bytecode.

    Raises:
        ModelError: neither importer takes the model.
    """
    with warnings.catch_warnings(), _inferring(module):
        warnings.simplefilter("ignore")
        try:
            _with_turbine(module, inputs, path)
        except Exception as turbine_error:  # whatever torch.export or turbine trips over
            try:
                _with_fx_importer(module, inputs, path)
            except Exception as error:
                raise ModelError(
                    f"the torch model cannot be exported: turbine says {_line(turbine_error)}; "
                    f"IREE's FxImporter says {_line(error)}"
                ) from None
            _log.warning("iree-turbine cannot export the model (%s); IREE's FxImporter did", _line(turbine_error))


@contextmanager
def _inferring(module: Any) -> Iterator[None]:
    """Evaluation mode; the caller's module is left as it was."""
    training = [part for part in module.modules() if part.training] if hasattr(module, "modules") else []
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


def _with_turbine(module: Any, inputs: tuple[Any, ...], path: Path) -> None:
    import iree.turbine.aot as aot
    import torch

    # A graph has no Python left to be strict about, and strict tracing makes Dynamo forget all that it compiled.
    program = _exported(module, inputs, strict=not isinstance(module, torch.fx.GraphModule))
    decompositions = aot.decompositions.current_aot_decompositions()
    aot.export(program.run_decompositions(decompositions) if decompositions else program).save_mlir(str(path))


def _with_fx_importer(module: Any, inputs: tuple[Any, ...], path: Path) -> None:
    from iree.compiler.extras.fx_importer import FxImporter

    importer = FxImporter()
    importer.import_frozen_program(_exported(module, inputs, strict=False).run_decompositions(), func_name="main")
    with path.open("wb") as file:
        importer.module.operation.write_bytecode(file)


def _exported(module: Any, inputs: tuple[Any, ...], strict: bool) -> Any:
    """The module as a graph, its batch norms part of convolutions, its pools plain where they can be."""
    import torch

    from tcl_iree.frontend.batch_norms import fold_batch_norms
    from tcl_iree.frontend.even_pools import even_pools

    program = torch.export.export(module, inputs, strict=strict)
    fold_batch_norms(program)
    even_pools(program)
    return program


def _line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
