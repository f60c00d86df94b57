"""Write a library: header, entry point, and two named sequences for each workload."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from tcl_iree.transform_dialect.fragments import renamed
from tcl_iree.transform_dialect.graph_script import GRAPH_ENTRY, SPEC_FLAG
from tcl_iree.transform_dialect.names import ENTRY, SEQUENCE

if TYPE_CHECKING:
    from tcl_iree.transform_dialect.library import Library, LibraryEntry, LibraryHeader

HEADER = "tcl.library"
# Set on a dispatch when it is recognised; the schedule's own last act is to set `MARKER`.
MATCHED = "tcl.matched"
# The sequence of the model's layouts, which `GRAPH_ENTRY` includes.
LAYOUTS = "layouts"
# The pass that runs `ENTRY` on every function of a module, and reads the library for that.
READS_LIBRARY = "iree-codegen-materialize-user-configs"
_OP = "!transform.any_op"


def matcher_name(key: str) -> str:
    """The name of a workload's matcher."""
    return f"match_{key}"


def schedule_name(key: str) -> str:
    """The name of a workload's schedule."""
    return f"schedule_{key}"


def script_text(sequence: str) -> str:
    """A schedule's sequence as a script of its own, as families write it."""
    return f"""module attributes {{transform.with_named_sequence}} {{
{sequence}
  transform.named_sequence @{ENTRY}(%module: {_OP} {{transform.consumed}}) {{
    %function = transform.structured.match ops{{["func.func"]}} in %module : ({_OP}) -> {_OP}
    transform.include @{SEQUENCE} failures(propagate) (%function) : ({_OP}) -> ()
    transform.yield\x20
  }}
}}
"""


def library_flags(path: object) -> list[str]:
    """The flags that hand a library's file to `iree-compile`: for the whole model, and for its dispatches."""
    return [f"{SPEC_FLAG}={path}", f"--iree-codegen-transform-dialect-library={path}"]


def compile_command(library: Library, model: str, path: str, output: str) -> str:
    """The very command that compiles a model with a library, safe to paste into a shell."""
    flags = [*library.header.compile_flags, *library_flags(path)]
    return shlex.join(["iree-compile", model, *flags, "-o", output])


def path_warning(library: object) -> str | None:
    """Why `iree-compile` cannot open a library by its path, or None if it can."""
    if "@" not in str(library):
        return None
    return f"IREE takes what follows an @ in {library} for a sequence's name: rename it for iree-compile"


def library_text(library: Library) -> str:
    """The whole file."""
    header = library.header
    lines = [
        f"// Schedules for {len(library.entries)} dispatches, found by tcl-iree for IREE {header.iree}.",
        f"// Target {header.target_text} ({header.target_key}), base flags: {' '.join(header.flags) or 'none'}.",
        "// They were found, and are valid, under the flags of this command:",
        f"//   {compile_command(library, 'MODEL.mlir', 'THIS_FILE', 'MODEL.vmfb')}",
        f"module attributes {{{HEADER} = {_header_attribute(header)}, transform.with_named_sequence}} {{",
        _entry_point([entry.key for entry in library.entries]),
    ]
    for entry in library.entries:
        lines += ["", *_comments(entry), _with_attributes(entry)]
        lines.append(renamed(entry.sequence, SEQUENCE, schedule_name(entry.key)))
    lines += ["", _model_entry_point(bool(library.graph))]
    if library.graph:
        lines += ["", "  // Layouts of the whole model, chosen before dispatches form: they need the schedules above."]
        lines.append(renamed(library.graph, GRAPH_ENTRY, LAYOUTS))
    return "\n".join([*lines, "}", ""])


def without_attributes(matcher: str) -> str:
    """A matcher as it was before `library_text` noted the workload on it."""
    head, _, rest = matcher.partition("\n")
    return f"{head.partition(' attributes {')[0]} {{\n{rest}" if " attributes {" in head else matcher


def _entry_point(keys: list[str]) -> str:
    """The sequence IREE runs on every dispatch.

    All matchers come first: they only look. At most one may succeed, since a schedule uses its function up. The
    chosen schedule then runs where its errors are silenced. One that fails at its first step leaves the dispatch to
    IREE's default; one that fails halfway leaves a dispatch that IREE cannot finish, and the compile fails. Nothing
    rolls it back: `transform.alternatives` would put a copy in the function's place, and IREE holds on to the original.
    """
    lines = [f"  transform.named_sequence @{ENTRY}(%function: {_OP} {{transform.readonly}}) {{"]
    taken = ""
    for number, key in enumerate(keys):
        # What fails ends the inner sequence; the outer one makes an empty handle of that.
        lines += [
            f"    %found_{number} = transform.sequence %function : {_OP} -> {_OP} failures(suppress) {{",
            f"    ^bb0(%outer: {_OP}):",
            f"      %match = transform.sequence %outer : {_OP} -> {_OP} failures(propagate) {{",
            f"      ^bb0(%inner: {_OP}):",
            *([f"        transform.match.operation_empty {taken} : {_OP}"] if taken else []),
            f"        %yes = transform.include @{matcher_name(key)} failures(propagate) (%inner) : ({_OP}) -> {_OP}",
            f"        transform.yield %yes : {_OP}",
            "      }",
            f"      transform.yield %match : {_OP}",
            "    }",
        ]
        if taken:
            lines.append(f"    %taken_{number} = transform.merge_handles {taken}, %found_{number} : {_OP}")
        taken = f"%taken_{number}" if taken else f"%found_{number}"
    for number, key in enumerate(keys):
        lines += [
            f"    transform.sequence %found_{number} : {_OP} failures(suppress) {{",
            f"    ^bb0(%all: {_OP}):",
            f"      transform.foreach %all : {_OP} {{",
            f"      ^bb0(%one: {_OP}):",
            f'        %key = transform.param.constant "{key}" -> !transform.any_param',
            f'        transform.annotate %one "{MATCHED}" = %key : {_OP}, !transform.any_param',
            f"        transform.include @{schedule_name(key)} failures(propagate) (%one) : ({_OP}) -> ()",
            "      }",
            "    }",
        ]
    return "\n".join([*lines, "    transform.yield ", "  }"])


def _model_entry_point(layouts: bool) -> str:
    """The sequence IREE runs once, on the whole model.

    IREE reads a library when a dispatch first asks for it, under a lock, and checks its sequences on all threads
    meanwhile. A thread that takes up another dispatch while it waits for these checks asks for the lock it holds
    itself, and the compile never ends. So the library is read here, where there is no dispatch yet.
    """
    lines = [
        "  // Read the schedules before any dispatch asks for them: threads that ask at once may wait forever.",
        f"  transform.named_sequence @{GRAPH_ENTRY}(%module: {_OP} {{transform.consumed}}) {{",
        f'    %read = transform.apply_registered_pass "{READS_LIBRARY}" to %module : ({_OP}) -> {_OP}',
    ]
    if layouts:
        lines.append(f"    transform.include @{LAYOUTS} failures(propagate) (%read) : ({_OP}) -> ()")
    return "\n".join([*lines, "    transform.yield ", "  }"])


def _comments(entry: LibraryEntry) -> list[str]:
    speed = "speed-up unknown"
    if entry.speedup is not None:
        how = "measured" if entry.measured else "not measured"
        speed = f"{entry.speedup:.2f}x as fast as IREE's default ({how})"
    return [f"  // {entry.label}: {speed}", f"  // {entry.schedule}"]


def _with_attributes(entry: LibraryEntry) -> str:
    """The matcher, with what is known about its workload as attributes."""
    known = [f"tcl.key = {_quoted(entry.key)}", f"tcl.label = {_quoted(entry.label)}"]
    known += ["tcl.measured"] if entry.measured else []
    known += [f"tcl.speedup = {entry.speedup!r} : f64"] if entry.speedup is not None else []
    head, _, rest = entry.matcher.partition("\n")
    return f"{head.removesuffix(' {')} attributes {{{', '.join(known)}}} {{\n{rest}"


def _header_attribute(header: LibraryHeader) -> str:
    target = header.target
    flags = ", ".join(_quoted(flag) for flag in header.flags)
    return (
        f"{{kind = {_quoted(target.kind)}, arch = {_quoted(target.arch)}, threads = {target.threads} : i64, "
        f"target_key = {_quoted(header.target_key)}, flags = [{flags}], "
        f"iree = {_quoted(header.iree)}, stack_limit = {header.stack_limit} : i64}}"
    )


def _quoted(text: str) -> str:
    """A string attribute; MLIR reads UTF-8 as it is, and no escapes of JSON's for it."""
    return json.dumps(text, ensure_ascii=False)
