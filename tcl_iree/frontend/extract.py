"""From a model to its distinct dispatches.

The model is compiled once up to the point where IREE has formed its dispatches. What comes out is text
without weights, so nothing large is parsed again; each dispatch is then isolated and analysed on its own.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
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
from tcl_iree.workload.payload import isolate, original_bindings, walk

# Weights are left out of the printed module; payloads do not need their values.
ELIDE = ("--mlir-elide-elementsattrs-if-larger=1024", "--mlir-elide-resource-strings-if-larger=1024")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Dispatch:
    """A distinct workload of a model: how often one inference runs it, and IREE's names for it.

    Attributes:
        constants: bindings that hold constants of the model, wherever it runs.
    """

    workload: Workload
    occurrences: int
    names: tuple[str, ...]
    constants: tuple[int, ...] = ()


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

    @property
    def constant_bytes(self) -> int:
        """Bytes of constants that the dispatches of one inference read; what several share counts for each.

        Tables that are only looked things up in do not count.
        """
        return sum(
            entry.occurrences * entry.workload.bindings[index].size_bytes
            for entry in self.dispatches
            for index in entry.constants
            if not entry.workload.gathers
        )

    @property
    def flowing_bytes(self) -> int:
        """Bytes of all else that the dispatches of one inference read or write."""
        return sum(
            entry.occurrences * binding.size_bytes
            for entry in self.dispatches
            for index, binding in enumerate(entry.workload.bindings)
            if index not in entry.constants
        )

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
    counts, constants = _call_sites(module)
    found: dict[str, tuple[Workload, Counter[str], set[int]]] = {}
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
        own = _constants(op.operation, workload, constants[symbol])
        _, names, always = found.setdefault(workload.key, (workload, Counter(), own))
        names[label] += occurrences
        always &= own
    dispatches = [
        Dispatch(load, names.total(), tuple(names), tuple(sorted(always))) for load, names, always in found.values()
    ]
    dispatches.sort(key=lambda entry: -entry.workload.flops * entry.occurrences)
    return Extraction(name, flags, tuple(dispatches), tuple(untunable))


def _workload(executable: ir.Operation, occurrences: int) -> Workload:
    if not occurrences:
        raise WorkloadError("it runs once, when the model is loaded")
    return analyse(isolate(executable))


def _constants(executable: ir.Operation, workload: Workload, constant: set[int]) -> set[int]:
    """Bindings of a workload that are constants in the model, by which of the executable's are."""
    before = original_bindings(executable)
    if len(before) != len(workload.bindings):
        return set()
    return {
        index
        for index, binding in enumerate(workload.bindings)
        if binding.access == "readonly" and before[index] in constant
    }


def _call_sites(module: ir.Module) -> tuple[Counter[str], dict[str, set[int]]]:
    """How often each executable is dispatched outside initializers, and which bindings are constants each time."""
    counts: Counter[str] = Counter()
    constants: dict[str, set[int]] = defaultdict(set)
    for op in module.body.operations:
        if op.operation.name != "util.func":
            continue
        for inner in walk(op.operation):
            if inner.name == "stream.cmd.dispatch":
                entries = ir.ArrayAttr(inner.attributes["entry_points"])
                symbol = ir.SymbolRefAttr(entries[0]).value[0]
                types = [str(operand.type) for operand in inner.operands]
                resources = [text for text in types if text.startswith("!stream.resource")]
                own = {index for index, text in enumerate(resources) if text == "!stream.resource<constant>"}
                constants[symbol] = own & constants[symbol] if counts[symbol] else own
                counts[symbol] += 1
    return counts, constants


def _export_name(executable: ir.Operation) -> str:
    exports = [op for op in walk(executable) if op.name == "hal.executable.export"]
    return ir.StringAttr(exports[0].attributes["sym_name"]).value if exports else ""
