"""A script's transform ops in the order they run, as plain data."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

from iree.compiler import ir

from tcl_iree.errors import FeatureError
from tcl_iree.mlir import shared_context

# Where ops keep the numbers they are given, most of them one for each loop.
_SIZES = (
    "static_sizes", "static_tile_sizes", "static_num_threads", "tile_sizes", "num_threads", "static_packed_sizes",
    "iterator_interchange", "static_vector_sizes", "workgroup_dims", "static_chunk_sizes", "operand_index", "factor",
    "dimension", "static_split_point",
)  # fmt: skip
# MLIR's mark for a number that is known only when the script runs.
_DYNAMIC = -(2**63)
_ITERATOR = re.compile(r"iterator_type<(\w+)>")
_MAPPING = re.compile(r"#gpu\.(\w+)<")
# What a matcher finds that names no ops: the one a schedule is built around.
ROOT = "<root>"


@dataclass(frozen=True)
class ScriptOp:
    """One transform op.

    Attributes:
        name: without its dialect: `structured.tile_using_for`.
        operands, results: handles and parameters, as numbers that stand for the script's values.
        sizes: the numbers it is given; 0 where a loop is left alone.
        words: what it names: ops to match, a pass and its options, patterns, an attribute, a mapping.
        iterators: kinds of the loops an op must have to be matched.
        value: the text of a constant parameter.
    """

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    sizes: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    iterators: tuple[str, ...] = ()
    value: str = ""


def read_script(text: str, entry: str) -> list[ScriptOp]:
    """The ops that run when IREE starts a script at `entry`.

    Raises:
        FeatureError: the text is no valid MLIR, or has no such sequence.
    """
    with shared_context(any_dialect=True):
        try:
            module = ir.Module.parse(text)
        except ir.MLIRError as error:
            raise FeatureError(f"the script is not valid MLIR: {error.message}") from None
        return read_module(module, entry)


def read_module(module: ir.Module, entry: str) -> list[ScriptOp]:
    """The ops that run when IREE starts a script's module at `entry`."""
    reader = _Reader(module)
    if entry not in reader.sequences:
        raise FeatureError(f"the script has no sequence @{entry}; it has {', '.join(reader.sequences) or 'none'}")
    return list(reader.run(entry, ()))


class _Reader:
    """Follows a script through the sequences it includes."""

    def __init__(self, module: ir.Module) -> None:
        self.sequences: dict[str, ir.Operation] = {}
        for op in module.body.operations:
            if op.operation.name == "transform.named_sequence":
                self.sequences[ir.StringAttr(op.attributes["sym_name"]).value] = op.operation
        self._values: dict[ir.Value, int] = {}
        self._active: list[str] = []

    def run(self, name: str, given: tuple[int, ...]) -> Iterator[ScriptOp]:
        sequence = self.sequences.get(name)
        if sequence is None or name in self._active or not sequence.regions[0].blocks:
            return
        self._active.append(name)
        yield from self._block(sequence.regions[0].blocks[0], given)
        self._active.pop()

    def _block(self, block: ir.Block, given: tuple[int, ...]) -> Iterator[ScriptOp]:
        for index, argument in enumerate(block.arguments):
            self._values[argument] = given[index] if index < len(given) else self._new()
        for op in block.operations:
            yield from self._op(op.operation)

    def _op(self, op: ir.Operation) -> Iterator[ScriptOp]:
        operands = tuple(self._number(value) for value in op.operands)
        results = tuple(self._number(value) for value in op.results)
        name = op.name.removeprefix("transform.")
        if op.name == "transform.include":
            yield from self.run(ir.FlatSymbolRefAttr(op.attributes["target"]).value, operands)
            return
        if op.name == "transform.foreach_match":
            for matcher, action in zip(_symbols(op, "matchers"), _symbols(op, "actions"), strict=True):
                given = yield from self._matched(matcher, operands)
                yield from self.run(action, given)
            return
        made = ScriptOp(name, operands, results, _sizes(op), *_words(op))
        if name == "apply_patterns":
            patterns = [inner.operation.name.rpartition("apply_patterns.")[2] for inner in op.regions[0].blocks[0]]
            yield replace(made, words=tuple(patterns))
            return
        if name != "yield":
            yield made
        for region in op.regions:
            for block in region.blocks:
                yield from self._block(block, operands)

    def _matched(self, name: str, operands: tuple[int, ...]) -> Generator[ScriptOp, None, tuple[int, ...]]:
        """What a matcher finds, as if matched by name, and its constants; returns what it hands to its action."""
        sequence = self.sequences.get(name)
        if sequence is None or not sequence.regions[0].blocks:
            return operands
        block = sequence.regions[0].blocks[0]
        wanted, handed = [], operands
        for argument in block.arguments:
            self._values[argument] = self._new()
        for op in block.operations:
            if op.operation.name == "transform.match.operation_name":
                wanted += [ir.StringAttr(kind).value for kind in ir.ArrayAttr(op.attributes["op_names"])]
        found = tuple(self._values[argument] for argument in block.arguments[:1])
        yield ScriptOp("structured.match", operands[:1], found, words=tuple(wanted) or (ROOT,))
        for op in block.operations:
            if op.operation.name == "transform.param.constant":
                yield from self._op(op.operation)
            elif op.operation.name == "transform.yield":
                handed = tuple(self._number(value) for value in op.operands)
        return handed

    def _number(self, value: ir.Value) -> int:
        return self._values[value] if value in self._values else self._values.setdefault(value, self._new())

    def _new(self) -> int:
        return len(self._values) + 1


def _symbols(op: ir.Operation, name: str) -> list[str]:
    return [ir.FlatSymbolRefAttr(symbol).value for symbol in ir.ArrayAttr(op.attributes[name])]


def _sizes(op: ir.Operation) -> tuple[int, ...]:
    for name in _SIZES:
        if name in op.attributes and (found := _numbers(op.attributes[name])):
            return found
    return ()


def _numbers(attribute: ir.Attribute) -> tuple[int, ...]:
    if isinstance(attribute, ir.DenseI64ArrayAttr | ir.DenseI32ArrayAttr):
        found = [int(number) for number in attribute]
    elif isinstance(attribute, ir.ArrayAttr):
        found = [int(entry.value) for entry in attribute if isinstance(entry, ir.IntegerAttr)]
    elif isinstance(attribute, ir.IntegerAttr):
        found = [int(attribute.value)]
    else:
        found = []
    return tuple(0 if number == _DYNAMIC else number for number in found)


def _words(op: ir.Operation) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Words, iterators and constant of one op."""
    attributes = op.attributes
    if op.name == "transform.structured.match":
        kinds = [ir.StringAttr(kind).value for kind in ir.ArrayAttr(attributes["ops"])] if "ops" in attributes else []
        wanted = str(attributes["op_attrs"]) if "op_attrs" in attributes else ""
        return tuple(kinds), tuple(_ITERATOR.findall(wanted)), ""
    if op.name == "transform.apply_registered_pass":
        return (ir.StringAttr(attributes["pass_name"]).value, *_options(attributes)), (), ""
    if op.name == "transform.annotate":
        return (ir.StringAttr(attributes["name"]).value,), (), ""
    if op.name == "transform.param.constant":
        return (), (), str(attributes["value"])
    if "mapping" in attributes:
        return tuple(dict.fromkeys(_MAPPING.findall(str(attributes["mapping"])))), (), ""
    return (), (), ""


def _options(attributes: ir.OpAttributeMap) -> list[str]:
    if "options" not in attributes:
        return []
    options = attributes["options"]
    if isinstance(options, ir.StringAttr):
        return options.value.split()
    named = ir.DictAttr(options)
    return [f"{named[i].name}={str(named[i].attr).strip(chr(34))}" for i in range(len(named))]
