"""Compile a model with a library, and prove which parts of the library took effect.

One compile tells everything: IREE writes each dispatch out as it formed it, which gives its key, and again as it was
configured, where a matcher and a schedule leave their marks.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from iree.compiler import ir
from iree.compiler.version import VERSION as IREE_VERSION

from tcl_iree.errors import LibraryError, ModelError, WorkloadError
from tcl_iree.frontend import Model
from tcl_iree.frontend.iree_compile import compile_model
from tcl_iree.processes import scratch_directory
from tcl_iree.target import Target
from tcl_iree.transform_dialect.library import Library, LibraryEntry, LibraryHeader
from tcl_iree.transform_dialect.library_text import MATCHED, compile_command, library_flags, path_warning
from tcl_iree.transform_dialect.names import MARKER
from tcl_iree.workload.analysis import analyse
from tcl_iree.workload.payload import isolate, walk

_FUNCTION = re.compile(r"func\.func @([^\s(]+)\(")
_MATCHED = re.compile(rf'{re.escape(MATCHED)} = "(\w+)"')
APPLIED = "applied"
LOOK_ALIKES = "applied to look-alikes too"
SHARED = "scheduled as a look-alike"
ABSENT = "not in this model"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AppliedPart:
    """What became of one entry of a library.

    Attributes:
        dispatches: the model's dispatches with the entry's key.
        matched: those its matcher recognised, look-alikes with another key included.
        applied: those its schedule went through to the end on.
        shared: dispatches with the entry's key that a look-alike's matcher took first.
    """

    entry: LibraryEntry
    dispatches: tuple[str, ...]
    matched: tuple[str, ...]
    applied: tuple[str, ...]
    shared: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        """`applied`, `not in this model`, one of the two harmless look-alike cases, or what went wrong.

        A matcher is in a few ways looser than the key (see `matcher.py`), so that it may recognise a dispatch of
        another key. The schedule fits that one as well.
        """
        if set(self.dispatches) - {*self.matched, *self.shared}:
            return "matcher at fault"
        if self.matched != self.applied:
            return "schedule did not fit"
        if set(self.matched) - set(self.dispatches):
            return LOOK_ALIKES
        if self.shared:
            return SHARED
        return APPLIED if self.dispatches else ABSENT

    @property
    def took_effect(self) -> bool:
        """Whether the schedule is in the compiled model and nothing went wrong."""
        return self.status in (APPLIED, LOOK_ALIKES)


@dataclass(frozen=True)
class AppliedReport:
    """A model compiled with a library.

    Attributes:
        left: dispatches the library has nothing for.
        command: what gives the same module without this project.
        warnings: why the module may not be as fast as the library says, or the command not work as it stands.
    """

    header: LibraryHeader
    parts: tuple[AppliedPart, ...]
    left: tuple[str, ...]
    command: str
    warnings: tuple[str, ...] = ()

    def require_applied(self) -> None:
        """Raise a `LibraryError` unless every entry for a dispatch of this model took effect."""
        wrong = [part for part in self.parts if not part.took_effect and part.status not in (SHARED, ABSENT)]
        if wrong:
            listed = "; ".join(f"{part.entry.label} ({part.entry.key}): {part.status}" for part in wrong)
            raise LibraryError(f"parts of the library did not take effect: {listed}")
        if self.parts and not any(part.applied for part in self.parts):
            raise LibraryError("no dispatch of this model is in the library; tune this model, or check the base flags")


def apply_library(
    model: Model, target: Target | None, library: Path, output: Path, flags: Sequence[str] | None = None
) -> AppliedReport:
    """Compile `model` to `output` with a library file.

    Args:
        target: None for the library's own.
        flags: base flags; None for the library's own.

    Raises:
        LibraryError: the library is for another IREE, target or base flags, for the very CPU of another machine, or
            IREE does not take it.
        ModelError: the model does not compile.
    """
    read = Library.read(library)
    _require_fit(read.header, library, target, flags)
    with scratch_directory("apply") as scratch:
        sources, configured, made = (Path(scratch) / name for name in ("sources", "configured", "model.vmfb"))
        copy = Path(scratch) / "library.mlir"  # IREE takes what follows an @ in a path for an entry point
        copy.write_text(read.text())
        used = [
            *library_flags(copy),
            f"--iree-hal-dump-executable-sources-to={sources}",
            f"--iree-hal-dump-executable-configurations-to={configured}",
        ]
        try:
            printed = compile_model(model.path, [*read.header.compile_flags, *used], made)
        except ModelError as error:
            raise _blamed(error, read, configured) from None
        if errors := [line for line in printed.splitlines() if "error:" in line]:
            raise LibraryError(f"IREE did not take {library}: {errors[0].strip()[:400]}")
        # A model that was imported for the occasion has no file of its own.
        named = model.path if model.scratch is None else "MODEL.mlir"
        command = compile_command(read, str(named), str(library), str(output))
        warnings = [_machine_warning(read.header, library), path_warning(library)]
        report = _report(read, sources, configured, command, [text for text in warnings if text])
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(made, output)
        except OSError as error:
            raise ModelError(f"cannot write {output}: {error.strerror}") from None
    return report


def _require_fit(header: LibraryHeader, name: Path, target: Target | None, flags: Sequence[str] | None) -> None:
    if header.iree != IREE_VERSION:
        raise LibraryError(
            f"{name} was made for IREE {header.iree} and this is {IREE_VERSION}: "
            f"install iree-base-compiler=={header.iree}, or tune again"
        )
    if target is not None and target != header.target:
        raise LibraryError(
            f"{name} was made for target {header.target_text}, not {replace(header, target=target).target_text}; "
            "leave --target out to use it"
        )
    if header.target.kind == "cpu" and not header.target.arch and header.target.key != header.target_key:
        raise LibraryError(
            f"{name} was made for the very CPU of another machine ({header.target_key}) and this is "
            f"{header.target.key}: apply it there, or tune for a class such as cpu:avx2, whose libraries can be moved"
        )
    if flags is not None and tuple(flags) != header.flags:
        own = " ".join(header.flags) or "no further flags"
        raise LibraryError(f"{name} was made under {own}, not {' '.join(flags) or 'none'}: its matchers may miss")


def _machine_warning(header: LibraryHeader, name: Path) -> str | None:
    if header.target.key == header.target_key:
        return None
    return (
        f"{name} was measured on {header.target_key} and this machine is {header.target.key}: the module is made for "
        f"{header.target_text} all the same, and its speed-ups hold there only"
    )


def _blamed(error: ModelError, library: Library, configured: Path) -> Exception:
    """The same failure, with the schedule behind it if it is in a dispatch that the library changed."""
    for name in re.findall(r"configured_[^/]*?\.mlir", str(error)):
        dump = configured / name
        marked = _MATCHED.search(dump.read_text()) if dump.is_file() else None
        for entry in library.entries:
            if marked and entry.key == marked[1]:
                return LibraryError(
                    f"the schedule for {entry.label} ({entry.key}) breaks the compile, tune it again or leave it out: "
                    f"{error}"
                )
    return error


def _report(library: Library, sources: Path, configured: Path, command: str, warnings: Sequence[str]) -> AppliedReport:
    dispatches: dict[str, list[str]] = {}
    matched: dict[str, list[str]] = {}
    applied: dict[str, list[str]] = {}
    known = {entry.key for entry in library.entries}
    shared: dict[str, list[str]] = {}
    left = []
    for source in sorted(sources.glob("*.mlir")):
        text = source.read_text()
        found = _FUNCTION.search(text)
        name = found[1] if found else source.stem
        key = _key(text)
        result = (configured / f"configured_{source.name}").read_text()
        marked = _MATCHED.search(result)
        if key in known:
            dispatches.setdefault(key, []).append(name)
            if marked and marked[1] != key:
                shared.setdefault(key, []).append(name)
        elif not marked:
            left.append(name)
        if marked:
            matched.setdefault(marked[1], []).append(name)
            if re.search(rf"{re.escape(MARKER)}\b", result):
                applied.setdefault(marked[1], []).append(name)
    parts = [
        AppliedPart(entry, *(tuple(names.get(entry.key, ())) for names in (dispatches, matched, applied, shared)))
        for entry in library.entries
    ]
    return AppliedReport(library.header, tuple(parts), tuple(left), command, tuple(warnings))


def _key(text: str) -> str:
    """The key of a dumped executable's dispatch; empty if it is none that can be tuned."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        executable = next((op for op in walk(module.operation) if op.name == "hal.executable"), None)
        try:
            return analyse(isolate(executable)).key if executable else ""
        except WorkloadError:
            return ""
        except Exception:  # an op this project has never met, as in `extract`
            _log.warning("a dispatch cannot be analysed", exc_info=True)
            return ""
