"""From a script's ops to rows: what each op is, what it acts on, and its numbers beside the loop they touch."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tcl_iree.features.program import Handle, Nest, Piece, Program
from tcl_iree.features.script_ops import ROOT, ScriptOp
from tcl_iree.features.tracing import MARKS
from tcl_iree.features.vocabulary import CONFIG_LEVELS
from tcl_iree.transform_dialect.library_text import MATCHED
from tcl_iree.transform_dialect.names import GENERIC, MARKER
from tcl_iree.workload.model import Workload

# Ops that find, name or tidy: they decide nothing, but handles are followed through them.
_SILENT = frozenset({
    "structured.match", "split_handle", "cast", "merge_handles", "get_parent_op", "get_producer_of_operand",
    "get_consumers_of_result", "get_result", "get_operand", "param.constant", "apply_cse", "apply_dce", "foreach",
    "collect_matching", "print", "sequence", "alternatives", "select", "num_associations", "verify",
    "iree.populate_workgroup_count_region_using_num_threads_slice", "match.operation_empty", "match.operation_name",
})  # fmt: skip
_UNIT_PATTERNS = ("linalg.fold_unit_extent_dims_via_slices", "linalg.fold_unit_extent_dims_via_reshapes")
# Where the iterations of a loop run, by the mapping of a forall or the level of a config.
_LEVELS = {
    "block": "workgroup", "distribution": "workgroup", "workgroup": "workgroup", "thread": "thread", "warp": "warp",
    "subgroup": "warp",
}  # fmt: skip
_TILING = ("structured.tile_using_for", "structured.tile_using_forall", "structured.fuse")
_LIST = re.compile(rf"(\w+) = (\[[\d{MARKS}, \[\]]*\])")
_INNER_LIST = re.compile(rf"\[([\d{MARKS}, ]*)\]")
_NUMBER = re.compile(rf"(\w+) = ([\d{MARKS}]+)(?![\w.])")
_WORDS = re.compile(
    r"pipeline<(\w+)>|(no_pipeline|pass_pipeline)|mma_layout<(\w+)>|\{(\w+)\}|(no_reduce_\w+) = true"
    r"|(prefetch_shared_memory)"
)
_TEXTUAL = re.compile(r'pass_pipeline<"([^"]*)">')
_ANCHOR = re.compile(r"[\w.]+\(")
_PASS = re.compile(r"([\w-]+)(?:\{([^}]*)\})?")


# How many numbers a row has.
ROW_NUMBERS = 5


@dataclass(frozen=True)
class Row:
    """One step of a script.

    Attributes:
        kind: an entry of the vocabulary.
        role: what it acts on.
        value: its number, 0 if it has none; for a copy, elements copied.
        extent: trip count of the loop the number is for, before; 0 if not known.
        element_bytes: of what the op acted on computes; 0 if not known.
        reduction: whether that loop is a reduction.
        position: of the loop, counted from the innermost; of the operand, for a copy.
    """

    kind: str
    role: str
    value: int = 0
    extent: int = 0
    element_bytes: int = 0
    reduction: int = 0
    position: int = 0

    @property
    def numbers(self) -> tuple[int, ...]:
        """All but kind and role."""
        return (self.value, self.extent, self.element_bytes, self.reduction, self.position)


class Walked(NamedTuple):
    """What a script does, step by step, and the loops it leaves around each op."""

    rows: tuple[Row, ...]
    nests: tuple[Nest, ...]


def walk(ops: Sequence[ScriptOp], workload: Workload, number: Callable[[str], int] = int) -> Walked:
    """Follow a script for one workload.

    Args:
        number: reads a number in the text of a config.
    """
    walker = _Walker(workload, number)
    for op in ops:
        walker.take(op)
    return Walked(tuple(walker.rows), walker.program.nests())


class _Walker:
    def __init__(self, workload: Workload, number: Callable[[str], int]) -> None:
        self.program, self._number = Program(workload), number
        self._handles: dict[int, Handle] = {}
        self._constants: dict[int, str] = {}
        self.rows: list[Row] = []

    def take(self, op: ScriptOp) -> None:
        """Add the rows of one op and follow its handles."""
        handles = [self._handles.get(number, Handle()) for number in op.operands]
        first = handles[0] if handles else Handle()
        if op.name == "param.constant":
            self._constants[op.results[0]] = op.value
        elif op.name == "structured.match":
            self._match(op)
        elif op.name == "split_handle":
            self._split(op, first)
        elif op.name in ("apply_patterns", "apply_registered_pass"):
            self._rewrite(op, first)
        elif op.name in _TILING:
            self._tile(op, first)
        elif op.name == "annotate":
            self._annotate(op, first)
        elif op.name in _SILENT:
            self._pass_on(op, first)
        else:
            self._structure(op, handles)

    # Ops that find.

    def _match(self, op: ScriptOp) -> None:
        if op.words == ("func.func",):
            found = Handle("function")
        elif op.words == (ROOT,):
            found = Handle("ops", [piece for piece in self.program.pieces if piece.role == "root"])
        else:
            found = Handle("ops", self.program.match(op.words, op.iterators))
        for result in op.results:
            self._handles[result] = found

    def _split(self, op: ScriptOp, whole: Handle) -> None:
        for index, result in enumerate(op.results):
            pieces = whole.pieces[index : index + 1] if len(whole.pieces) == len(op.results) else []
            self._handles[result] = Handle(whole.what, pieces)

    def _pass_on(self, op: ScriptOp, first: Handle) -> None:
        for result in op.results:
            self._handles[result] = first

    # Ops over the whole dispatch.

    def _rewrite(self, op: ScriptOp, function: Handle) -> None:
        if op.name == "apply_registered_pass":
            self._add_pass(op.words[0], op.words[1:])
            self._pass_on(op, function)
        elif any(pattern in _UNIT_PATTERNS for pattern in op.words):
            self.program.drop_units()

    def _add_pass(self, name: str, options: Sequence[str]) -> None:
        self.rows.append(Row(f"pass:{name}", "function"))
        self.rows += [Row(f"option:{option}", "function") for option in options]

    # Ops that tile.

    def _tile(self, op: ScriptOp, target: Handle) -> None:
        kind = ":".join((op.name, *op.words[:1]))
        known = all(len(op.sizes) <= len(piece.axes) for piece in target.pieces)
        level = _LEVELS.get(op.words[0], "serial") if op.words else "serial"
        if op.name == "structured.tile_using_forall" and not op.words:
            level = "workgroup"
        tiled = [(piece, self.program.tile(piece, op.sizes, level)) for piece in target.pieces if known]
        for piece, taken in tiled[:1]:
            for axis, size, before in taken:
                self._sized(kind, piece, axis.kind, size, before, len(piece.axes) - 1 - piece.axes.index(axis))
        if not tiled:
            self._unsized(kind, _role(target), op.sizes)
        if not op.results:
            return
        self._handles[op.results[0]] = target
        loops = [entry for _, taken in tiled[:1] for entry in taken]
        for index, result in enumerate(op.results[1:]):
            # A forall is one loop over all axes; for loops are one an axis.
            own = len(loops) == len(op.results) - 1
            tile = (loops[index][0].origin, loops[index][1], loops[index][2]) if own else None
            depth = len(target.pieces[0].around) if target.pieces else 0
            outer = depth - len(loops) + index + 1 if own else depth
            self._handles[result] = Handle("loop", list(target.pieces), tile, outer)

    def _sized(self, kind: str, piece: Piece, loop: str, size: int, before: int, position: int) -> None:
        self.rows.append(Row(kind, piece.role, size, before, piece.element_bytes, int(loop == "reduction"), position))

    def _unsized(self, kind: str, role: str, sizes: Sequence[int]) -> None:
        given = [(index, size) for index, size in enumerate(sizes) if size > 0]
        self.rows += [Row(kind, role, size, position=len(sizes) - 1 - index) for index, size in given]
        if not given:
            self.rows.append(Row(kind, role))

    # Other ops of structure.

    def _structure(self, op: ScriptOp, handles: Sequence[Handle]) -> None:
        first = handles[0] if handles else Handle()
        role = _role(first)
        if op.name == "structured.fuse_into_containing_op" and len(handles) == 2:
            loop = handles[1]
            for piece in first.pieces:
                self.program.fuse(piece, loop)
                loop.pieces.append(piece)
            self.rows.append(Row(op.name, role))
            for result, handle in zip(op.results, (first, loop), strict=False):
                self._handles[result] = handle
            return
        if op.name == "loop.peel":
            tile = first.tile or (0, 0, 0)
            self.rows.append(Row(op.name, _role(Handle("ops", first.pieces[:1])), tile[1], tile[2]))
            self.program.peel(first)
        elif op.name == "iree.copy_tensor_operand":
            self._copy(op, first)
        elif op.name in ("structured.pack", "structured.tile_reduction_using_for", "structured.interchange"):
            self._reshape(op, first)
        else:
            for piece in first.pieces if op.name == "structured.generalize" else ():
                piece.kind = GENERIC
            self._unsized(op.name, role, op.sizes)
        self._pass_on(op, first)

    def _copy(self, op: ScriptOp, target: Handle) -> None:
        index = op.sizes[0] if op.sizes else 0
        piece = target.pieces[0] if target.pieces else None
        elements = self.program.operand_elements(piece, index) if piece else 0
        self.rows.append(Row(op.name, _role(target), elements, 0, piece.element_bytes if piece else 0, 0, index))

    def _reshape(self, op: ScriptOp, target: Handle) -> None:
        if op.name == "structured.interchange":
            for piece in target.pieces:
                self.program.interchange(piece, op.sizes)
            self.rows.append(Row(op.name, _role(target)))
            return
        if not target.pieces:
            self._unsized(op.name, _role(target), op.sizes)
        for number, piece in enumerate(target.pieces):
            for axis, size in zip(list(piece.axes), op.sizes, strict=False):
                if size > 0 and number == 0:
                    position = len(piece.axes) - 1 - piece.axes.index(axis)
                    self._sized(op.name, piece, axis.kind, size, axis.extent, position)
            if op.name == "structured.pack":
                self.program.pack(piece, op.sizes)
            else:
                self.program.tile(piece, op.sizes)

    # Configs.

    def _annotate(self, op: ScriptOp, target: Handle) -> None:
        text = self._constants.get(op.operands[1], "") if len(op.operands) > 1 else ""
        if op.words[0] in (MARKER, MATCHED):
            return
        for name, sizes in sorted(self._levels(text), key=lambda entry: (_order(entry[0]), entry[0])):
            piece = target.pieces[0] if target.pieces else None
            if name in (*CONFIG_LEVELS, "tile_sizes") and piece and len(piece.axes) == len(sizes):
                for axis, size, before in self.program.tile(piece, sizes, _LEVELS.get(name, "serial")):
                    position = len(piece.axes) - 1 - piece.axes.index(axis)
                    self._sized(f"config:{name}", piece, axis.kind, size, before, position)
            else:
                self._unsized(f"config:{name}", _role(target), sizes)
        self.rows += [Row(f"config:{word}", _role(target)) for word in _config_words(text)]
        for pipeline in _TEXTUAL.findall(text):
            for name, options in _PASS.findall(_ANCHOR.sub("", pipeline)):
                self._add_pass(name, options.split())
        if not text:
            self.rows.append(Row("annotate", _role(target)))

    def _levels(self, text: str) -> list[tuple[str, tuple[int, ...]]]:
        """Numbers a config gives by name; a single one as a list of one."""
        plain = _TEXTUAL.sub("pass_pipeline", text)
        lists = [
            (name, tuple(self._number(number) for number in numbers.split(",") if number.strip()))
            for name, nested in _LIST.findall(plain)
            for numbers in _INNER_LIST.findall(nested)
        ]
        return lists + [(name, (self._number(number),)) for name, number in _NUMBER.findall(plain)]


def _role(handle: Handle) -> str:
    if handle.what == "ops":
        return handle.pieces[0].role if handle.pieces else "unknown"
    return handle.what if handle.what in ("function", "loop") else "unknown"


def _order(name: str) -> int:
    return CONFIG_LEVELS.index(name) if name in CONFIG_LEVELS else len(CONFIG_LEVELS)


def _config_words(text: str) -> list[str]:
    return sorted(next(filter(None, groups)) for groups in _WORDS.findall(_TEXTUAL.sub("pass_pipeline", text)))
