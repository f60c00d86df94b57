"""Layouts chosen before dispatches form, as one transform script that IREE runs on the whole model.

Images are stored channels last. Weights, which are constants, are cut into panels of a few output channels; IREE packs
them while it compiles, so that nothing is packed or copied when the model runs. A convolution

    conv_nchw(image: 1xCxHxW, weights: OxCxhxw)

becomes

    generic(image: 1xHxWxC, packed: (O/p)xhxwxCxp) -> 1xHxWx(O/p)xp

whose innermost dimension is a panel: lanes are contiguous in the weights and in the result. Products with constant
matrices are cut alike. The families for dispatches know these forms already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir

from tcl_iree.errors import ScheduleError
from tcl_iree.mlir import shared_context
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import schedule_attributes

GRAPH_ENTRY = "__transform_main"
SPEC_FLAG = "--iree-preprocessing-transform-spec-filename"
_OP = "!transform.any_op"
_PACK, _UNPACK, _GENERIC = (f'!transform.op<"linalg.{name}">' for name in ("pack", "unpack", "generic"))
_LOWERED_UNPACK = ("tensor.empty", "linalg.transpose", "tensor.collapse_shape", "tensor.extract_slice", "linalg.copy")


@dataclass(frozen=True)
class Packed:
    """Ops of one type that are packed alike.

    Attributes:
        kind: name of the op.
        result: type of its result, by which ops are found.
        sizes: panel size of each of the op's loops, 0 for those left whole.
        weights: how the outer dimensions of the packed second operand are ordered; empty leaves them.
        image: the same for the first operand and the result.
    """

    kind: str
    result: str
    sizes: tuple[int, ...]
    weights: tuple[int, ...] = ()
    image: tuple[int, ...] = ()


def graph_text(sequence: str) -> str:
    """A graph schedule's sequence as a script of its own."""
    return f"module attributes {{transform.with_named_sequence}} {{\n{sequence}\n}}\n"


class GraphScript:
    """A graph script under construction."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._lines: list[str] = []
        self._handles = 0
        self.phase("The functions of the model.")
        self._functions = self._matched("util.func", "%module")

    def phase(self, title: str) -> None:
        """Start a phase; the title becomes a comment."""
        self._lines.append(f"// {title}")

    def run_pass(self, name: str, **options: bool) -> None:
        """Run one of IREE's passes on every function."""
        given = ", ".join(f'"{key.replace("_", "-")}" = {str(value).lower()}' for key, value in options.items())
        after = self._named("functions")
        self._add(
            f'{after} = transform.apply_registered_pass "{name}"'
            + (f" with options = {{ {given} }}" if given else "")
            + f" to {self._functions} : ({_OP}) -> {_OP}"
        )
        self._functions = after

    def apply_patterns(self, *patterns: str) -> None:
        """Apply pattern sets, canonicalization among them, to every function."""
        self._add(f"transform.apply_patterns to {self._functions} {{")
        self._lines += [f"  transform.apply_patterns.{name}" for name in (*patterns, "canonicalization")]
        self._lines.append(f"}} : {_OP}")

    def pack(self, packed: Packed) -> None:
        """Pack all ops of a type."""
        ops = self._named("ops")
        sizes = ", ".join(map(str, packed.sizes))
        self._add(
            f'{ops} = transform.structured.match ops{{["{packed.kind}"]}} filter_result_type = {packed.result} '
            f"in %module : ({_OP}) -> {_OP}"
        )
        self._lines += [
            f"transform.foreach {ops} : {_OP} {{",
            f"^bb0(%op: {_OP}):",
            f"  %packed = transform.structured.pack %op packed_sizes = [{sizes}] : ({_OP}) -> {_OP}",
        ]
        if packed.weights or packed.image:
            self._lines.append(f"  %generic = transform.cast %packed : {_OP} to {_GENERIC}")
        if packed.weights:
            self._lines += _transposed("%generic", 1, packed.weights, "weights")
        if packed.image:
            self._lines += _transposed("%generic", 0, packed.image, "image")
            self._lines += _result_transposed("%image#0", packed.image)
        self._lines.append("}")

    def lower_unpacks(self) -> None:
        """Turn what still unpacks into transposes and reshapes."""
        ops = self._named("unpacks")
        self._add(f'{ops} = transform.structured.match ops{{["linalg.unpack"]}} in %module : ({_OP}) -> {_UNPACK}')
        made = ", ".join(f'!transform.op<"{name}">' for name in _LOWERED_UNPACK)
        self._add(f"{self._named('lowered')}:5 = transform.structured.lower_unpack {ops} : ({_UNPACK}) -> ({made})")

    def hoist_constants(self) -> None:
        """Move what is computed of constants alone into globals of the model, as IREE does later on.

        What was laid out for a kernel then stays as it is: IREE would fuse a transpose into the op that reads it, and
        every inference would read the constant across. Broadcasts become generic ops first, which IREE does not move:
        a bias would be read in as many copies as the image has pixels.
        """
        broadcasts = self._matched("linalg.broadcast", "%module")
        self._add(f"{self._named('generic')} = transform.structured.generalize {broadcasts} : ({_OP}) -> {_OP}")
        functions, module = self._matched("util.func", "%module"), self._named("module")
        self._add(
            f'{module} = transform.get_parent_op {functions} <{{op_name = "builtin.module", deduplicate}}> '
            f": ({_OP}) -> {_OP}"
        )
        hoisted = self._named("hoisted")
        self._add(
            f'{hoisted} = transform.apply_registered_pass "iree-util-hoist-into-globals" to {module} : ({_OP}) -> {_OP}'
        )
        self._functions = self._matched("util.func", hoisted)

    def text(self) -> str:
        """The finished script.

        Raises:
            ScheduleError: it does not verify, which is a fault of the family.
        """
        head = f"transform.named_sequence @{GRAPH_ENTRY}(%module: {_OP} {{transform.readonly}})"
        lines = [f"  {head} attributes {schedule_attributes(self._schedule)} {{"]
        lines += [f"    {line}" for line in (*self._lines, "transform.yield")]
        text = graph_text("\n".join([*lines, "  }"]))
        with shared_context(), ir.Location.unknown():
            try:
                ir.Module.parse(text).operation.verify()
            except ir.MLIRError as error:
                raise ScheduleError(f"the graph script does not verify: {error}") from None
        return text

    def _matched(self, kind: str, place: str) -> str:
        """All ops of a kind below what a handle stands for."""
        found = self._named(kind.rpartition(".")[2])
        self._add(f'{found} = transform.structured.match ops{{["{kind}"]}} in {place} : ({_OP}) -> {_OP}')
        return found

    def _named(self, name: str) -> str:
        self._handles += 1
        return f"%{name}_{self._handles}"

    def _add(self, line: str) -> None:
        self._lines.append(line)


def _transposed(generic: str, operand: int, order: Sequence[int], name: str) -> list[str]:
    """Order the outer dimensions of a packed operand."""
    return [
        f"  %{name}_any = transform.get_producer_of_operand {generic}[{operand}] : ({_GENERIC}) -> {_OP}",
        f"  %{name}_pack = transform.cast %{name}_any : {_OP} to {_PACK}",
        f"  %{name}:3 = transform.structured.pack_transpose %{name}_pack with_compute_op({generic}) "
        f"outer_perm = {list(order)} : ({_PACK}, {_GENERIC}) -> ({_GENERIC}, {_PACK}, {_OP})",
    ]


def _result_transposed(generic: str, order: Sequence[int]) -> list[str]:
    return [
        f"  %result_any = transform.get_consumers_of_result {generic}[0] : ({_GENERIC}) -> {_OP}",
        f"  %result_unpack = transform.cast %result_any : {_OP} to {_UNPACK}",
        f"  %result:3 = transform.structured.pack_transpose %result_unpack with_compute_op({generic}) "
        f"outer_perm = {list(order)} : ({_UNPACK}, {_GENERIC}) -> ({_GENERIC}, {_PACK}, {_OP})",
    ]
