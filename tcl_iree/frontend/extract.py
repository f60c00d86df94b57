"""From a model to its distinct dispatches.

The model is compiled once up to the point where IREE has formed its dispatches. What comes out is text
without weights, so nothing large is parsed again; each dispatch is then isolated and analysed on its own.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iree.compiler import ir

from tcl_iree.errors import ModelError, WorkloadError
from tcl_iree.frontend.iree_compile import compile_model
from tcl_iree.frontend.load import Model
from tcl_iree.processes import scratch_directory
from tcl_iree.target import Target
from tcl_iree.workload.analysis import analyse
from tcl_iree.workload.model import Workload
from tcl_iree.workload.payload import isolate, walk

# Weights are left out of the printed module; payloads do not need their values.
ELIDE = ("--mlir-elide-elementsattrs-if-larger=1024", "--mlir-elide-resource-strings-if-larger=1024")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Dispatch:
    """A distinct workload of a model: how often one inference runs it, and IREE's names for it."""

    workload: Workload
    occurrences: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class Untunable:
    """A dispatch that is left to IREE, and why."""

    name: str
    occurrences: int
    reason: str


@dataclass(frozen=True)
class Extraction:
    """Everything one inference dispatches, under the flags it was compiled with."""

    model: str
    flags: tuple[str, ...]
    dispatches: tuple[Dispatch, ...]
    untunable: tuple[Untunable, ...]

    def require_tunable(self) -> None:
        """Raise if there is nothing to tune."""
        if not self.dispatches:
            reasons = "; ".join(f"{entry.name}: {entry.reason}" for entry in self.untunable) or "it dispatches nothing"
            raise ModelError(f"{self.model} has no tunable dispatch ({reasons})")


def extract(model: Model, target: Target, flags: Sequence[str] = (), graph: str = "") -> Extraction:
    """List the dispatches of a model as IREE forms them for `target` with these extra flags.

    Args:
        graph: a transform script to run on the whole model before.

    Raises:
        ModelError: the model does not compile.
    """
    with scratch_directory("extract") as scratch:
        output = Path(scratch) / "sources.mlir"
        phases = ["--compile-to=executable-sources", *ELIDE]
        compile_model(model.path, [*target.compile_flags, *flags, *phases], output, graph=graph)
        text = output.read_text()
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        return _collect(model.name, tuple(flags), module)


def _collect(name: str, flags: tuple[str, ...], module: ir.Module) -> Extraction:
    counts = _dispatch_counts(module)
    found: dict[str, tuple[Workload, Counter[str]]] = {}
    untunable = []
    for op in module.body.operations:
        if op.operation.name != "hal.executable":
            continue
        symbol = ir.StringAttr(op.operation.attributes["sym_name"]).value
        occurrences = counts[symbol]
        label = _export_name(op.operation) or symbol
        try:
            workload = _workload(op.operation, occurrences)
        except WorkloadError as reason:
            untunable.append(Untunable(label, occurrences, str(reason)))
            continue
        except Exception as error:  # an op this project has never met must not cost the rest of the model
            _log.warning("dispatch %s cannot be analysed", label, exc_info=True)
            untunable.append(Untunable(label, occurrences, f"it cannot be analysed ({type(error).__name__}: {error})"))
            continue
        found.setdefault(workload.key, (workload, Counter()))[1][label] += occurrences
    dispatches = [Dispatch(load, names.total(), tuple(names)) for load, names in found.values()]
    dispatches.sort(key=lambda entry: -entry.workload.flops * entry.occurrences)
    return Extraction(name, flags, tuple(dispatches), tuple(untunable))


def _workload(executable: ir.Operation, occurrences: int) -> Workload:
    if not occurrences:
        raise WorkloadError("it runs once, when the model is loaded")
    return analyse(isolate(executable))


def _dispatch_counts(module: ir.Module) -> Counter[str]:
    """How often each executable is dispatched outside initializers."""
    counts: Counter[str] = Counter()
    for op in module.body.operations:
        if op.operation.name != "util.func":
            continue
        for inner in walk(op.operation):
            if inner.name == "stream.cmd.dispatch":
                entries = ir.ArrayAttr(inner.attributes["entry_points"])
                counts[ir.SymbolRefAttr(entries[0]).value[0]] += 1
    return counts


def _export_name(executable: ir.Operation) -> str:
    exports = [op for op in walk(executable) if op.name == "hal.executable.export"]
    return ir.StringAttr(exports[0].attributes["sym_name"]).value if exports else ""
