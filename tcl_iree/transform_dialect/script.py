"""Write transform scripts through IREE's bindings, with named handles and a comment for each phase."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from iree.compiler import ir
from iree.compiler.dialects import transform
from iree.compiler.dialects.transform import loop, structured

from tcl_iree.errors import ScheduleError
from tcl_iree.mlir import shared_context
from tcl_iree.transform_dialect.names import ENTRY, SEQUENCE
from tcl_iree.transform_dialect.schedule import Schedule, Value

_SCHEDULE, _DECISIONS = "tcl.family", "tcl.decisions"
_AXES = "xyz"


class Script:
    """A named sequence under construction; every method appends ops to it.

    The sequence is applied to a dispatch's `func.func`. Handles are `ir.Value`s; whatever consumes a handle returns
    its successor, and `function` is always the live handle of the whole dispatch.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.context = shared_context()
        self._phases: list[tuple[int, str]] = []
        with self.context, ir.Location.unknown():
            self._any = transform.AnyOpType.get()
            self._module = ir.Module.create()
            self._module.operation.attributes["transform.with_named_sequence"] = ir.UnitAttr.get()
            consumed = [{"transform.consumed": ir.UnitAttr.get()}]
            with ir.InsertionPoint(self._module.body), ir.Location.name("function"):
                self._sequence = transform.NamedSequenceOp(SEQUENCE, [self._any], [], arg_attrs=consumed)
            self._sequence.attributes[_SCHEDULE] = ir.StringAttr.get(schedule.family)
            self._sequence.attributes[_DECISIONS] = _attribute(dict(schedule.decisions))
            self._body = ir.InsertionPoint(self._sequence.body)
            self.function = self._sequence.bodyTarget
            with ir.InsertionPoint(self._module.body):
                self._emit_entry(consumed)

    def _emit_entry(self, consumed: list[dict[str, ir.Attribute]]) -> None:
        with ir.Location.name("module"):
            entry = transform.NamedSequenceOp(ENTRY, [self._any], [], arg_attrs=consumed)
        with ir.InsertionPoint(entry.body):
            with ir.Location.name("function"):
                function = structured.MatchOp.match_op_names(entry.bodyTarget, ["func.func"])
            propagate = ir.Attribute.parse("1 : i32")
            transform.IncludeOp([], ir.FlatSymbolRefAttr.get(SEQUENCE), propagate, [function])
            transform.YieldOp()

    @contextmanager
    def _at(self, name: str) -> Iterator[None]:
        with self.context, self._body, ir.Location.name(name) if name else ir.Location.unknown():
            yield

    def phase(self, title: str) -> None:
        """Start a phase; the title becomes a comment."""
        self._phases.append((len(list(self._sequence.body.operations)), title))

    def finish(self) -> ir.Module:
        """End the sequence; nothing can be appended after that.

        Raises:
            ScheduleError: the IR does not verify, which is a fault of the family.
        """
        with self.context, ir.Location.unknown():
            with self._body:
                transform.YieldOp()
            if self.function == self._sequence.bodyTarget:  # only annotated: IREE would warn that nothing consumes it
                self._sequence.attributes["arg_attrs"] = ir.Attribute.parse("[{transform.readonly}]")
            try:
                self._module.operation.verify()
            except ir.MLIRError as error:
                raise ScheduleError(f"the script does not verify: {error}") from None
        return self._module

    def text(self) -> str:
        """The finished script; see `finish`."""
        return _commented(self.finish().operation.get_asm(use_name_loc_as_prefix=True), self._phases)

    # Finding ops.

    def match(self, kinds: Sequence[str], name: str, count: int = 1, iterators: Sequence[str] = ()) -> list[ir.Value]:
        """Handles of the `count` ops of these kinds in the dispatch, in program order.

        Args:
            iterators: if given, only generics with these iterator types.
        """
        with self._at(name):
            attributes = {}
            if iterators:
                entries = ", ".join(f"#linalg.iterator_type<{kind}>" for kind in iterators)
                attributes["iterator_types"] = ir.Attribute.parse(f"[{entries}]")
            found = structured.MatchOp(
                self._any, self.function, ops=list(kinds), op_attrs=ir.DictAttr.get(attributes) if attributes else None
            ).result
            if count == 1:
                return [found]
            return list(transform.SplitHandleOp([self._any] * count, found).results)

    def match_all(self, kinds: Sequence[str], name: str, iterators: Sequence[str] = ()) -> ir.Value:
        """One handle to all such ops of the dispatch."""
        return self.match(kinds, name, 1, iterators)[0]

    def require_none(self, kinds: Sequence[str], name: str) -> None:
        """Fail if ops of these kinds are left in the dispatch."""
        found = self.match_all(kinds, name)
        with self._at(""):
            self._op("transform.match.operation_empty", [found])

    # Structure.

    def tile_forall(self, op: ir.Value, sizes: Sequence[int], name: str) -> tuple[ir.Value, ir.Value]:
        """Distribute over workgroups; returns the tiled op and the loop.

        `op over (i, j)` becomes `forall (i0, j0) { op over a tile }`.
        """
        count = sum(size > 0 for size in sizes)
        if count > len(_AXES):
            raise ScheduleError(f"{count} loops cannot be distributed: workgroups have {len(_AXES)} dimensions")
        axes = [f"#gpu.block<{axis}>" for axis in reversed(_AXES[:count])]
        with self._at(name):
            mapping = ir.Attribute.parse(f"[{', '.join(axes)}]")
            tiled = structured.TileUsingForallOp(op, tile_sizes=list(sizes), mapping=mapping)
            self._op("transform.iree.populate_workgroup_count_region_using_num_threads_slice", [tiled.results[1]])
        return tiled.results[0], tiled.results[1]

    def tile_threads(self, op: ir.Value, sizes: Sequence[int], name: str) -> tuple[ir.Value, ir.Value]:
        """Distribute a workgroup's tile over its threads, the innermost loop along x; returns tiled op and loop."""
        axes = [f"#gpu.thread<{axis}>" for axis in reversed(_AXES[: sum(size > 0 for size in sizes)])]
        with self._at(name):
            mapping = ir.Attribute.parse(f"[{', '.join(axes)}]")
            tiled = structured.TileUsingForallOp(op, tile_sizes=list(sizes), mapping=mapping)
        return tiled.results[0], tiled.results[1]

    def tile(self, op: ir.Value, sizes: Sequence[int], name: str) -> tuple[ir.Value, list[ir.Value]]:
        """Tile by sequential loops, one for each non-zero size; returns the tiled op and the loops."""
        with self._at(name):
            tiled = structured.TileUsingForOp(op, sizes=list(sizes))
        return tiled.results[0], list(tiled.results)[1:]

    def fuse(self, op: ir.Value, into: ir.Value, name: str) -> tuple[ir.Value, ir.Value]:
        """Pull a producer into a loop that uses it; returns the fused op and the loop."""
        with self._at(name):
            fused = structured.FuseIntoContainingOp(op, into)
        return fused.results[0], fused.results[1]

    def peel(self, for_loop: ir.Value, name: str) -> tuple[ir.Value, ir.Value]:
        """Split off the iterations that do not fill a tile; returns the main loop and the rest."""
        with self._at(name):
            cast = transform.CastOp(transform.OperationType.get("scf.for"), for_loop).result
            peeled = loop.LoopPeelOp(self._any, self._any, cast)
        return peeled.results[0], peeled.results[1]

    def unroll(self, for_loop: ir.Value, factor: int, name: str) -> None:
        """Repeat a loop's body so many times."""
        with self._at(name):
            cast = transform.CastOp(transform.OperationType.get("scf.for"), for_loop).result
            loop.LoopUnrollOp(cast, factor=factor)

    def copy_operand(self, op: ir.Value, index: int, name: str) -> ir.Value:
        """Copy one operand's tile into a buffer of its own; returns the copy."""
        with self._at(name):
            attributes = {"operand_index": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), index)}
            return self._op("transform.iree.copy_tensor_operand", [op], [self._any], attributes)[0]

    def interchange(self, op: ir.Value, order: Sequence[int], name: str) -> ir.Value:
        """Reorder a generic's loops: loop `order[i]` becomes loop `i`."""
        with self._at(name):
            return structured.InterchangeOp(op, iterator_interchange=list(order)).result

    def interchange_each(self, ops: ir.Value, order: Sequence[int], name: str) -> None:
        """Reorder the loops of any number of generics."""
        with self._at(name):
            each = transform.ForeachOp([], [ops])
            block = each.regions[0].blocks[0]
            with ir.InsertionPoint(block):
                structured.InterchangeOp(block.arguments[0], iterator_interchange=list(order))
                transform.YieldOp()

    def generalize(self, op: ir.Value, name: str) -> ir.Value:
        """Turn a named op into a generic."""
        with self._at(name):
            return structured.GeneralizeOp(op).result

    def pack(self, op: ir.Value, sizes: Sequence[int], name: str) -> ir.Value:
        """Block loops into inner tiles, with packs before and an unpack after; returns the packed op."""
        with self._at(name):
            return structured.PackOp(self._any, op, [], static_packed_sizes=list(sizes)).result

    def tile_reduction(self, ops: ir.Value, sizes: Sequence[int], name: str) -> ir.Value:
        """Reduce into lanes first and across lanes at the end, for any number of ops; returns the innermost loops.

        `r(i) op= x(i, k)` becomes `for k0 { lanes(i, l) op= x(i, k0 + l) }; r(i) = reduce(lanes(i, :))`.
        """
        with self._at(name):
            any_op = self._any
            tiled = structured.TileReductionUsingForOp(
                [any_op], any_op, any_op, any_op, ops, reduction_dims=None, tile_sizes=list(sizes)
            )
            return transform.GetParentOp(self._any, tiled.results[1], op_name="scf.for").result

    # Passes over the whole dispatch.

    def canonicalize(self, fold_units: bool = False) -> None:
        """Simplify: static shapes where they are known, single-trip loops gone, no repeated computation.

        Args:
            fold_units: also drop loops of one iteration from generics.
        """
        with self._at(""):
            patterns = transform.ApplyPatternsOp(self.function)
            with ir.InsertionPoint(patterns.patterns):
                structured.ApplyTilingCanonicalizationPatternsOp()
                loop.ApplyForLoopCanonicalizationPatternsOp()
                if fold_units:
                    structured.ApplyFoldUnitExtentDimsViaSlicesPatternsOp()
                transform.ApplyCanonicalizationPatternsOp()
            transform.ApplyCommonSubexpressionEliminationOp(self.function)

    def merge_equal(self) -> None:
        """Let ops that use the same part of something share it, so that what makes it can be pulled in once."""
        with self._at(""):
            transform.ApplyCommonSubexpressionEliminationOp(self.function)

    def slice_fills(self) -> None:
        """Let fills fill no more than is used: a slice of a fill becomes a fill of the slice."""
        with self._at(""):
            patterns = transform.ApplyPatternsOp(self.function)
            with ir.InsertionPoint(patterns.patterns):
                structured.ApplySwapExtractSliceWithFillPatternsOp()
                structured.ApplyTilingCanonicalizationPatternsOp()
                transform.ApplyCanonicalizationPatternsOp()

    def propagate_packs(self) -> None:
        """Carry packed layouts through the ops around: what lay between an unpack and a pack works on packed data."""
        with self._at(""):
            patterns = transform.ApplyPatternsOp(self.function)
            with ir.InsertionPoint(patterns.patterns):
                structured.ApplyDataLayoutPropagationPatternsOp()
                structured.ApplyFoldPackUnpackIntoEmptyPatternsOp()
                transform.ApplyCanonicalizationPatternsOp()

    def simplify(self) -> None:
        """Canonicalization patterns alone."""
        with self._at(""):
            patterns = transform.ApplyPatternsOp(self.function)
            with ir.InsertionPoint(patterns.patterns):
                transform.ApplyCanonicalizationPatternsOp()

    def run_pass(self, name: str, **options: bool | str) -> None:
        """Run one of IREE's passes on the dispatch; underscores in option names stand for dashes."""
        with self._at("function"):
            given = {key.replace("_", "-"): value for key, value in options.items()}
            self.function = transform.ApplyRegisteredPassOp(
                self._any, self.function, name, options=given or None
            ).result

    def iree_op(self, name: str, result: bool = False, **attributes: str) -> None:
        """One of IREE's own transform ops on the dispatch; with a result, it becomes the dispatch's handle.

        Args:
            attributes: the op's attributes, as text.
        """
        with self._at("function"):
            given = {key: ir.Attribute.parse(text) for key, text in attributes.items()}
            made = self._op(f"transform.iree.{name}", [self.function], [self._any] if result else [], given)
            if result:
                self.function = made[0]

    def annotate(self, op: ir.Value, name: str, attribute: str | None = None) -> None:
        """Set an attribute, given as text; a unit attribute without one."""
        with self._at(name.rpartition(".")[2]):
            param = None
            if attribute is not None:
                value = ir.Attribute.parse(attribute)
                param = transform.ParamConstantOp(transform.AnyParamType.get(), value).result
            transform.AnnotateOp(op, name, param=param)

    def _op(
        self,
        name: str,
        operands: Sequence[ir.Value],
        results: Sequence[ir.Type] = (),
        attributes: dict[str, ir.Attribute] | None = None,
    ) -> list[ir.Value]:
        made = ir.Operation.create(name, results=list(results), operands=list(operands), attributes=attributes or {})
        return list(made.results)


def read_schedule(text: str) -> Schedule:
    """The schedule that a script's text names.

    Raises:
        ScheduleError: the text is no script, or not one of this project's.
    """
    with shared_context():
        try:
            module = ir.Module.parse(text)
        except ir.MLIRError as error:
            raise ScheduleError(f"the script is not valid MLIR: {error.message}") from None
        for op in module.body.operations:
            if _SCHEDULE in op.attributes:
                family = ir.StringAttr(op.attributes[_SCHEDULE]).value
                named = ir.DictAttr(op.attributes[_DECISIONS])
                pairs = ((entry.name, _value(entry.attr)) for entry in (named[i] for i in range(len(named))))
                return Schedule(family, tuple(pairs))
    raise ScheduleError("no sequence in the script names its family; was it built by tcl-iree?")


def schedule_attributes(schedule: Schedule) -> str:
    """The attributes that name a schedule on its sequence, as text."""
    with shared_context(), ir.Location.unknown():
        return str(
            ir.DictAttr.get(
                {_SCHEDULE: ir.StringAttr.get(schedule.family), _DECISIONS: _attribute(dict(schedule.decisions))}
            )
        )


def _attribute(value: Value | dict[str, Value]) -> ir.Attribute:
    if isinstance(value, dict):
        return ir.DictAttr.get({name: _attribute(inner) for name, inner in value.items()})
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    return ir.DenseI64ArrayAttr.get(list(value))


def _value(attribute: ir.Attribute) -> Value:
    if isinstance(attribute, ir.BoolAttr):
        return bool(attribute.value)
    if isinstance(attribute, ir.IntegerAttr):
        return int(attribute.value)
    if isinstance(attribute, ir.StringAttr):
        return str(attribute.value)
    return tuple(int(number) for number in ir.DenseI64ArrayAttr(attribute))


def _commented(printed: str, phases: list[tuple[int, str]]) -> str:
    """Insert each phase's title before its first op. Ops of the sequence's own block are indented by four."""
    titles: dict[int, list[str]] = {}
    for index, title in phases:
        titles.setdefault(index, []).append(title)
    lines: list[str] = []
    index, inside = 0, False
    for line in printed.splitlines():
        if line.startswith("  transform.named_sequence"):
            inside = f"@{SEQUENCE}(" in line
        elif inside and line.startswith("    ") and line[4] not in " }^":
            lines.extend(f"    // {title}" for title in titles.get(index, ()))
            index += 1
        lines.append(line)
    return "\n".join(lines) + "\n"
