"""One transform library for a whole model: for each workload a matcher and a schedule, with where they come from.

module attributes {tcl.library = {kind = "cpu", threads = 8, ...}, transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module) { ... }    // IREE calls it once, for the whole model
  transform.named_sequence @__kernel_config(%function) { ... }   // IREE calls it for every dispatch
  transform.named_sequence @match_1f3c...(%function) { ... }     // fails unless it is that workload
  transform.named_sequence @schedule_1f3c...(%function) { ... }
}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from iree.compiler import ir
from iree.compiler.version import VERSION as IREE_VERSION

from tcl_iree.errors import LibraryError, TargetError
from tcl_iree.target import Target
from tcl_iree.transform_dialect.configured import configured_forms
from tcl_iree.transform_dialect.cpu_limits import stack_flag
from tcl_iree.transform_dialect.fragments import renamed, sequences
from tcl_iree.transform_dialect.graph_script import GRAPH_ENTRY
from tcl_iree.transform_dialect.library_text import (
    HEADER,
    LAYOUTS,
    READS_LIBRARY,
    library_text,
    matcher_name,
    schedule_name,
    script_text,
    without_attributes,
)
from tcl_iree.transform_dialect.matcher import matcher
from tcl_iree.transform_dialect.names import ENTRY, SEQUENCE
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import read_schedule
from tcl_iree.workload.model import Workload


@dataclass(frozen=True)
class Tuned:
    """A workload and the schedule chosen for it.

    Attributes:
        script: the schedule's script, as its family writes it.
        speedup: IREE's default time over this schedule's, or None if unknown.
        measured: whether `speedup` was measured on the target.
    """

    workload: Workload
    schedule: Schedule
    script: str
    speedup: float | None = None
    measured: bool = False


@dataclass(frozen=True)
class LibraryHeader:
    """What a library was made for and is valid under.

    Attributes:
        target: never read from text against this machine, which may have other cores than the one it was made on.
        target_key: the machine and instruction set the schedules were measured on.
        flags: base flags of `iree-compile` beyond the target's own.
        stack_limit: bytes to give `--iree-llvmcpu-stack-allocation-limit`; 0 for IREE's default.
    """

    target: Target
    target_key: str
    flags: tuple[str, ...] = ()
    iree: str = IREE_VERSION
    stack_limit: int = 0

    @property
    def compile_flags(self) -> tuple[str, ...]:
        """Every flag a compile with this library needs, but the library itself."""
        limit = (stack_flag(self.stack_limit),) if self.stack_limit else ()
        return (*self.target.compile_flags, *self.flags, *limit)

    @property
    def target_text(self) -> str:
        """The target spelled out: `str(Target)` leaves out as many threads as this machine has cores."""
        head = f"{self.target.kind}:{self.target.arch}" if self.target.arch else self.target.kind
        return f"{head},threads={self.target.threads}" if self.target.kind == "cpu" else head


@dataclass(frozen=True)
class LibraryEntry:
    """One workload's part of a library.

    Attributes:
        matcher: the named sequence that recognises the workload.
        sequence: the named sequence that schedules it, under the name scripts use.
    """

    key: str
    label: str
    schedule: Schedule
    matcher: str
    sequence: str
    speedup: float | None = None
    measured: bool = False

    @property
    def script(self) -> str:
        """The schedule as a script of its own, for one dispatch."""
        return script_text(self.sequence)


@dataclass(frozen=True)
class Conflict:
    """Two libraries have different schedules for one workload."""

    kept: LibraryEntry
    dropped: LibraryEntry


@dataclass(frozen=True)
class Library:
    """Schedules for the workloads of a model, or of several.

    Attributes:
        graph: the named sequence that gives the model the layouts its dispatches are formed under; empty if it keeps
            its own.
    """

    header: LibraryHeader
    entries: tuple[LibraryEntry, ...]
    graph: str = ""

    @staticmethod
    def build(
        target: Target, tuned: Iterable[Tuned], flags: Sequence[str] = (), stack_limit: int = 0, graph: str = ""
    ) -> Library:
        """Make a library; a compile finds out how the dispatches will look to it.

        Args:
            graph: a graph script, or nothing.

        Raises:
            LibraryError: a dispatch cannot be matched, or a script has not the form families write.
        """
        parts = list(tuned)
        forms = configured_forms([part.workload for part in parts], target, flags)
        entries = [_entry(part, form) for part, form in zip(parts, forms, strict=True)]
        header = LibraryHeader(target, target.key, tuple(flags), stack_limit=stack_limit)
        return Library(header, tuple(entries), sequences(graph)[GRAPH_ENTRY] if graph else "")

    @staticmethod
    def read(path: Path | str) -> Library:
        """Read a library from a file.

        Raises:
            LibraryError: it is missing, damaged, or no library of this project.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise LibraryError(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is not text'}") from None
        return Library.parse(text, str(path))

    @staticmethod
    def parse(text: str, name: str = "the library") -> Library:
        """Read a library from its text; errors speak of it by `name`.

        Raises:
            LibraryError: it is damaged, or no library of this project.
        """
        with ir.Context():
            try:
                module = ir.Module.parse(text)
            except ir.MLIRError as error:
                made_for = re.search(r'iree = "([^"]*)"', text)
                hint = f" (it was made for {made_for[1]})" if made_for and made_for[1] != IREE_VERSION else ""
                raise LibraryError(f"{name} is not valid MLIR for IREE {IREE_VERSION}{hint}: {error.message}") from None
            if HEADER not in module.operation.attributes:
                raise LibraryError(f"{name} is not a library of tcl-iree: it has no `{HEADER}`")
            found = sequences(text)
            header = _read_header(module.operation.attributes[HEADER])
            matchers = [op.operation for op in module.body.operations if "tcl.key" in op.operation.attributes]
            try:
                entries = tuple(_read_entry(op, found) for op in matchers)
                return Library(header, entries, _read_graph(found))
            except KeyError as missing:
                raise LibraryError(f"{name} is damaged: {missing} is missing") from None

    def text(self) -> str:
        """The file `iree-compile` takes."""
        return library_text(self)

    def without(self, keys: Iterable[str]) -> Library:
        """The library less some workloads, left to IREE's default."""
        dropped = set(keys)
        return replace(self, entries=tuple(entry for entry in self.entries if entry.key not in dropped))


def merge(libraries: Sequence[Library]) -> tuple[Library, tuple[Conflict, ...]]:
    """One library with the workloads of all; where they disagree, the faster measured schedule is kept.

    Raises:
        LibraryError: they are for different IREE versions, targets, base flags or layouts.
    """
    if not libraries:
        raise LibraryError("nothing to merge: give at least one library")
    header = libraries[0].header
    chosen: dict[str, LibraryEntry] = {}
    conflicts = []
    for library in libraries:
        _require_alike(header, library.header)
        if library.graph != libraries[0].graph:
            raise LibraryError("libraries of models with different layouts cannot be merged: each is for its own model")
        header = replace(header, stack_limit=max(header.stack_limit, library.header.stack_limit))
        for entry in library.entries:
            known = chosen.get(entry.key, entry)
            kept, dropped = (entry, known) if _merit(entry) > _merit(known) else (known, entry)
            if kept.schedule != dropped.schedule:
                conflicts.append(Conflict(kept, dropped))
            chosen[entry.key] = kept
    return Library(header, tuple(chosen.values()), libraries[0].graph), tuple(conflicts)


def _merit(entry: LibraryEntry) -> tuple[bool, float]:
    return entry.measured, entry.speedup or 0.0


def _require_alike(one: LibraryHeader, other: LibraryHeader) -> None:
    for what, left, right in (
        ("IREE versions", one.iree, other.iree),
        ("targets", f"{one.target_text} ({one.target_key})", f"{other.target_text} ({other.target_key})"),
        ("base flags", " ".join(one.flags) or "none", " ".join(other.flags) or "none"),
    ):
        if left != right:
            raise LibraryError(f"libraries of different {what} cannot be merged: {left} and {right}")


def _entry(part: Tuned, configured: str) -> LibraryEntry:
    key = part.workload.key
    found = sequences(part.script)
    if set(found) != {SEQUENCE, ENTRY}:
        raise LibraryError(
            f"the script for {part.workload.label} has sequences {sorted(found)}; a library takes scripts with "
            f"{SEQUENCE!r} and {ENTRY!r} alone"
        )
    name = matcher_name(key)
    matching = sequences(matcher(configured, name))[name]
    return LibraryEntry(key, part.workload.label, part.schedule, matching, found[SEQUENCE], part.speedup, part.measured)


def _read_header(attribute: ir.Attribute) -> LibraryHeader:
    fields = ir.DictAttr(attribute)
    try:
        return LibraryHeader(
            target=_read_target(fields),
            target_key=ir.StringAttr(fields["target_key"]).value,
            flags=tuple(ir.StringAttr(flag).value for flag in ir.ArrayAttr(fields["flags"])),
            iree=ir.StringAttr(fields["iree"]).value,
            stack_limit=ir.IntegerAttr(fields["stack_limit"]).value,
        )
    except (KeyError, ValueError, TargetError) as error:
        raise LibraryError(f"the library's header is damaged, or of another version of tcl-iree: {error}") from None


def _read_target(fields: ir.DictAttr) -> Target:
    """The target as it was written; the threads are not this machine's to judge."""
    kind, arch = (ir.StringAttr(fields[name]).value for name in ("kind", "arch"))
    known = Target.parse(f"{kind}:{arch}" if arch else kind)
    return replace(known, threads=ir.IntegerAttr(fields["threads"]).value)


def _read_graph(found: dict[str, str]) -> str:
    if READS_LIBRARY not in found.get(GRAPH_ENTRY, ""):
        raise LibraryError(f"the library's @{GRAPH_ENTRY} is damaged, or of an older version of tcl-iree: tune again")
    return renamed(found.get(LAYOUTS, ""), LAYOUTS, GRAPH_ENTRY)


def _read_entry(op: ir.Operation, found: dict[str, str]) -> LibraryEntry:
    attributes = op.attributes
    key = ir.StringAttr(attributes["tcl.key"]).value
    sequence = renamed(found[schedule_name(key)], schedule_name(key), SEQUENCE)
    return LibraryEntry(
        key=key,
        label=ir.StringAttr(attributes["tcl.label"]).value,
        schedule=read_schedule(script_text(sequence)),
        matcher=without_attributes(found[matcher_name(key)]),
        sequence=sequence,
        speedup=ir.FloatAttr(attributes["tcl.speedup"]).value if "tcl.speedup" in attributes else None,
        measured="tcl.measured" in attributes,
    )
