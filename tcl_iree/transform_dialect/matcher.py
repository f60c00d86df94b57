"""Matchers: named sequences that succeed on the dispatches of one structural key, and on a few look-alikes.

A matcher is written from the dispatch as the library will meet it (see `configured.py`) and walks it from the stores
back, as the key does:

    %stored = transform.get_producer_of_operand %store[0]
    transform.iree.match.cast_compatible_dag_from_root %stored {
    ^bb0(%lhs: tensor<128x768xf32>, %rhs: tensor<768x768xf32>, %out: tensor<128x768xf32>):
      linalg.matmul ins(%lhs, %rhs) outs(%out)
    }
    %lhs = transform.get_producer_of_operand %stored[0]
    ...

Each op is compared whole: name, attributes, types of operands, body. Which op feeds which operand is followed, and
that no op is there twice or left over is shown by counting. As in the key, values of floating-point constants and
buffer offsets play no part.

Three things are looser than the key. None should make a schedule unfit, since all leave structure and types alone:
IREE cannot compare a body that reads a constant from outside, so there the expression is compared without telling
the body's own arguments apart (`a - b` and `b - a` are the same if both are `f32`); two subspans of one binding look
like two buffers; and where bindings are memrefs by then (CUDA), which part of one is read goes unseen, since a memref's
type holds its offset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from iree.compiler import ir
from iree.compiler.dialects import transform
from iree.compiler.dialects.transform import structured

from tcl_iree.errors import LibraryError
from tcl_iree.workload.payload import ADDRESSING, SUBSPAN, walk

# The second where bindings are buffers by now, as on CUDA.
_STORES = ("iree_tensor_ext.dispatch.tensor.store", "iree_codegen.store_to_buffer")
_DAG = "transform.iree.match.cast_compatible_dag_from_root"
_INDEX = "linalg.index"
_NAME_ONLY = "match.operation_name_only"
# Ops without identity: equal ones may or may not have been merged. Only their name and type matter.
_ANONYMOUS = {"arith.constant", "tensor.empty", SUBSPAN}
_UNCOUNTED = {*_ANONYMOUS, *ADDRESSING, *_STORES, "func.return"}


def matcher(configured: str, name: str) -> str:
    """A module with the one named sequence `name`, which takes a function and returns it if it matches.

    Args:
        configured: the workload as `configured_forms` gives it.

    Raises:
        LibraryError: the dispatch has no store of a tensor to start from.
    """
    with ir.Context() as context, ir.Location.unknown():
        payload = ir.Module.parse(configured)
        function = next(op for op in walk(payload.operation) if op.name == "func.func")
        module = ir.Module.create()
        module.operation.attributes["transform.with_named_sequence"] = ir.UnitAttr.get()
        any_op = transform.AnyOpType.get()
        readonly = [{"transform.readonly": ir.UnitAttr.get()}]
        with ir.InsertionPoint(module.body), ir.Location.name("function"):
            sequence = transform.NamedSequenceOp(name, [any_op], [any_op], arg_attrs=readonly)
        _Matcher(context, sequence).match(function)
        module.operation.verify()
        return str(module.operation.get_asm(use_name_loc_as_prefix=True))


class _Matcher:
    """Writes the checks of one matcher."""

    def __init__(self, context: ir.Context, sequence: transform.NamedSequenceOp) -> None:
        self._context = context
        self._function = sequence.bodyTarget
        self._body = ir.InsertionPoint(sequence.body)
        self._any = transform.AnyOpType.get()
        self._value = transform.AnyValueType.get()
        self._number = transform.ParamType.get(ir.IntegerType.get_signless(64))
        self._numbers: dict[int, ir.Value] = {}
        self._found: dict[ir.Operation, ir.Value] = {}

    @contextmanager
    def _at(self, name: str) -> Iterator[None]:
        with self._body, ir.Location.name(name):
            yield

    def match(self, function: ir.Operation) -> None:
        """Check a function: first what it holds, then how it hangs together."""
        ops = [op.operation for op in function.regions[0].blocks[0].operations]
        stores = [op for op in ops if op.name in _STORES]
        if not stores:
            raise LibraryError("a dispatch that stores no tensor cannot be matched")
        counts = Counter(op.name for op in walk(function))
        names = {op.name for op in ops if not op.name.startswith("memref.")}
        for name in sorted(names - _UNCOUNTED):
            self._require_count(self._ops(self._function, name), counts[name])
        handles = self._split(self._ops(self._function, stores[0].name), len(stores), "store")
        for store, handle in zip(stores, handles, strict=True):
            self._visit(store, handle)
        with self._at("function"):
            transform.YieldOp([self._function])

    def _visit(self, op: ir.Operation, handle: ir.Value) -> None:
        """Check an op and, from it, everything it is computed from."""
        if op.name in _ANONYMOUS:
            if _is_integer(op):
                self._require_equal(op, handle)
            else:
                with self._at(""):
                    transform.MatchOperationNameOp(handle, [op.name])
            return
        if op in self._found:
            self._require_same(handle, self._found[op])
            return
        self._found[op] = handle
        inner = [nested for nested in walk(op) if nested != op]
        captures = [(nested, slot) for nested in inner for slot in _captured(nested, op)]
        if captures:
            self._require_head(op, handle)
            self._require_expression(op, handle)
        elif any(isinstance(operand.type, ir.MemRefType) for operand in op.operands):
            self._require_head(op, handle, operands=False)
        else:
            self._require_equal(op, handle)
        for slot, operand in enumerate(op.operands):
            if not isinstance(operand.type, ir.MemRefType):
                self._visit_producer(operand, handle, slot)
        for nested, slot in captures:
            if not _is_anonymous(nested.operands[slot]):
                alike = [other for other in inner if other.name == nested.name]
                handles = self._split(self._ops(handle, nested.name), len(alike), _word(nested))
                self._visit_producer(nested.operands[slot], handles[alike.index(nested)], slot)

    def _visit_producer(self, operand: ir.Value, handle: ir.Value, slot: int) -> None:
        producer = operand.owner.operation
        if producer.name == SUBSPAN:  # nothing else gives an operand of such a type
            return
        with self._at(_word(producer)):
            found = transform.GetProducerOfOperand(self._any, handle, slot).result
        self._visit(producer, found)
        if len(producer.results) > 1:
            with self._at("value"):
                used = transform.GetOperandOp(self._value, handle, [slot]).result
                number = ir.OpResult(operand).result_number
                made = transform.GetResultOp(self._value, found, [number]).result
            self._require_same(used, made)

    def _require_equal(self, op: ir.Operation, handle: ir.Value) -> None:
        """Name, attributes, operand types and body are those of `op`, which reads nothing from outside."""
        with self._pattern(handle, [operand.type for operand in op.operands]) as (arguments, _):
            clone = op.clone()
            for slot, argument in enumerate(arguments):
                clone.operands[slot] = argument

    def _require_head(self, op: ir.Operation, handle: ir.Value, operands: bool = True) -> None:
        """Name, attributes and types are those of `op`; its body is left open, and on request its operands' types."""
        attributes = {name: op.attributes[name] for name in op.attributes if name != "operandSegmentSizes"}
        types = [ir.TypeAttr.get(operand.type) for operand in op.operands]
        with self._at(_word(op)):
            same = structured.MatchOp(
                self._any,
                handle,
                ops=[op.name],
                op_attrs=ir.DictAttr.get(attributes) if attributes else None,
                filter_result_type=ir.TypeAttr.get(op.results[0].type) if len(op.results) == 1 else None,
                filter_operand_types=ir.ArrayAttr.get(types) if operands else None,
            ).result
        self._require_count(same, 1)

    def _require_expression(self, op: ir.Operation, handle: ir.Value) -> None:
        """What the body computes, each yielded value as one expression over unnamed arguments."""
        block = [inner.operation for inner in op.regions[0].blocks[0].operations]
        for dim, count in Counter(inner.attributes["dim"] for inner in block if inner.name == _INDEX).items():
            self._require_count(self._ops(handle, _INDEX, dim=dim), count)
        terminator = block[-1]
        ends = self._ops(handle, terminator.name)
        self._require_count(ends, 1)
        for slot, value in enumerate(terminator.operands):
            if isinstance(value.owner, ir.Block):
                continue
            with self._at(_word(value.owner.operation)):
                root = transform.GetProducerOfOperand(self._any, ends, slot).result
            leaves, made = _expression(op, value.owner.operation)
            with self._pattern(root, [leaf.type for leaf in leaves]) as (arguments, met):
                renamed = dict(zip(leaves, arguments, strict=True))
                for inner in made:
                    clone = inner.clone()
                    for position, operand in enumerate(inner.operands):
                        clone.operands[position] = renamed[operand]
                    renamed |= dict(zip(inner.results, clone.results, strict=True))
                    if inner.name == "arith.constant" and not _is_integer(inner):
                        clone.attributes[_NAME_ONLY] = ir.UnitAttr.get()
            if leaves:
                self._require_leaves(leaves, met)

    def _require_leaves(self, leaves: Sequence[ir.Value], met: ir.Value) -> None:
        """The values that an expression's leaves met are as many, and block arguments where the leaves are."""
        with self._at("leaf"):
            distinct = transform.MergeHandlesOp([met], deduplicate=True).result
        for leaf, handle in zip(leaves, self._split(distinct, len(leaves), "leaf"), strict=True):
            if not isinstance(leaf.owner, ir.Block):
                continue
            # A block argument has no defining op; that error is what is hoped for.
            with self._at("definer"):
                attempt = transform.SequenceOp(transform.FailurePropagationMode.Suppress, [self._any], self._function)
            with ir.InsertionPoint(attempt.body), ir.Location.name("definer"):
                definer = transform.GetDefiningOp(self._any, handle).result
                transform.YieldOp([definer])
            with self._at(""):
                transform.MatchOperationEmptyOp(attempt.results[0])

    @contextmanager
    def _pattern(self, handle: ir.Value, types: Sequence[ir.Type]) -> Iterator[tuple[list[ir.Value], ir.Value]]:
        """The region of a DAG comparison with `handle`, to be filled; its last op is the root.

        Yields the region's arguments, and a handle to the values they meet.
        """
        with self._at("part"):
            compared = ir.Operation.create(_DAG, results=[self._value] * 2, operands=[handle], regions=1)
            block = compared.regions[0].blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
        with ir.InsertionPoint(block), ir.Location.unknown():
            yield list(block.arguments), compared.results[0]
            transform.YieldOp()

    def _ops(self, within: ir.Value, name: str, **attributes: ir.Attribute) -> ir.Value:
        with self._at(name.rpartition(".")[2]):
            given = ir.DictAttr.get(attributes) if attributes else None
            return structured.MatchOp(self._any, within, ops=[name], op_attrs=given).result

    def _split(self, handle: ir.Value, count: int, name: str) -> list[ir.Value]:
        self._require_count(handle, count)
        if count == 1:
            return [handle]
        with self._at(name):
            return list(transform.SplitHandleOp([handle.type] * count, handle).results)

    def _require_same(self, one: ir.Value, other: ir.Value) -> None:
        with self._at("same"):
            merged = transform.MergeHandlesOp([one, other], deduplicate=True).result
        self._require_count(merged, 1)

    def _require_count(self, handle: ir.Value, count: int) -> None:
        with self._at("count"):
            number = transform.NumAssociationsOp(self._number, handle).result
        if count not in self._numbers:
            with self._at(f"n{count}"):
                value = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), count)
                self._numbers[count] = transform.ParamConstantOp(self._number, value).result
        with self._at(""):
            equal = ir.Attribute.parse("0 : i32")
            transform.MatchParamCmpIOp(number, self._numbers[count], equal)


def _word(op: ir.Operation) -> str:
    return op.name.rpartition(".")[2]


def _is_integer(op: ir.Operation) -> bool:
    return op.name == "arith.constant" and isinstance(op.results[0].type, ir.IntegerType | ir.IndexType)


def _is_anonymous(value: ir.Value) -> bool:
    return value.owner.operation.name in _ANONYMOUS


def _captured(inner: ir.Operation, outer: ir.Operation) -> list[int]:
    """Which operands of `inner` come from outside `outer`."""
    inside = set(walk(outer))
    return [
        slot
        for slot, operand in enumerate(inner.operands)
        if not isinstance(operand.owner, ir.Block) and operand.owner.operation not in inside
    ]


def _expression(outer: ir.Operation, root: ir.Operation) -> tuple[list[ir.Value], list[ir.Operation]]:
    """The leaves and, in order of computation, the ops of a value in the body of `outer`; constants are ops."""
    inside = set(walk(outer))
    leaves: list[ir.Value] = []
    made: list[ir.Operation] = []

    def _is_part(op: ir.Operation) -> bool:
        # `linalg.index` cannot stand outside a linalg op.
        return (op in inside and op.name != _INDEX) or op.name == "arith.constant"

    def visit(op: ir.Operation) -> None:
        if op in made:
            return
        for operand in op.operands:
            owner = operand.owner
            if not isinstance(owner, ir.Block) and _is_part(owner.operation):
                visit(owner.operation)
            elif operand not in leaves:
                leaves.append(operand)
        made.append(op)

    visit(root)
    return leaves, made
