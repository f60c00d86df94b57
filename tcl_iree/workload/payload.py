"""Isolate one dispatch: from the `hal.executable` IREE formed to a standalone, canonical payload.

What a name, a buffer offset or a packing of constants changed is undone here, so that two
dispatches of the same computation become the same text:

    %off = hal.interface.constant.load ... ordinal(0) : i32          (gone)
    %a = hal.interface.binding.subspan ... binding(0) offset(%off)   -> binding(0) offset(%c0)
    %b = hal.interface.binding.subspan ... binding(0) offset(%c4096) -> binding(1) offset(%c0)
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
from iree.compiler import ir

from tcl_iree.errors import WorkloadError

SUBSPAN = "hal.interface.binding.subspan"
ENTRY = "dispatch"

# Ops that only compute addresses or read what is known at run time; dead once offsets are gone.
ADDRESSING = {
    "arith.constant", "arith.index_cast", "arith.index_castui", "arith.extui", "arith.shli", "arith.ori",
    "hal.interface.constant.load", "util.assume.int", "iree_tensor_ext.dispatch.workload.ordinal",
}  # fmt: skip


def walk(op: ir.Operation) -> Iterator[ir.Operation]:
    """Every operation below `op`, itself included, parents first."""
    yield op
    for region in op.regions:
        for block in region:
            for child in block.operations:
                yield from walk(child.operation)


def isolate(executable: ir.Operation) -> str:
    """The canonical payload of the single dispatch in `executable`, a `hal.executable`.

    The executable is copied, not changed.

    Raises:
        WorkloadError: why this dispatch cannot be tuned.
    """
    with executable.context, ir.Location.unknown():
        clone = executable.clone()
        inner = [op for op in walk(clone) if op.name == "builtin.module"]
        functions = [op for op in walk(clone) if op.name == "func.func"]
        if not inner or not functions:
            raise WorkloadError("its code is external (no function to schedule)")
        if len(functions) > 1:
            raise WorkloadError("it calls other functions (a microkernel)")
        function = functions[0]
        body = function.regions[0].blocks[0]
        _renumber_bindings(body)
        _drop_dead_addressing(body)
        _refuse_runtime_values(body)
        _inline_resources(function)
        function.attributes["sym_name"] = ir.StringAttr.get(ENTRY)
        return str(inner[0])


def original_bindings(executable: ir.Operation) -> tuple[int, ...]:
    """For each binding of the payload that `isolate` gives, the one it was inside the model."""
    function = next(op for op in walk(executable) if op.name == "func.func")
    return tuple(binding for binding, _ in _spans(function.regions[0].blocks[0]))


def _spans(body: ir.Block) -> dict[tuple[int, int], list[ir.Operation]]:
    """Subspans by binding and offset, in the order a walk from the results back first meets them."""
    groups: dict[tuple[int, int], list[ir.Operation]] = {}
    for span in _subspans_from_results(body):
        offset = span.operands[0] if len(span.operands) else None
        groups.setdefault((int(ir.IntegerAttr(span.attributes["binding"]).value), hash(offset)), []).append(span)
    return groups


def _renumber_bindings(body: ir.Block) -> None:
    """Give each distinct (binding, offset) a binding of its own at offset 0, numbered from the results back."""
    groups = _spans(body)
    accesses = [_access(group) for group in groups.values()]
    layout = ir.Attribute.parse(pipeline_layout(accesses))
    with ir.InsertionPoint.at_block_begin(body):
        zero = ir.Operation.create(
            "arith.constant",
            results=[ir.IndexType.get()],
            attributes={"value": ir.IntegerAttr.get(ir.IndexType.get(), 0)},
        )
    for index, group in enumerate(groups.values()):
        for span in group:
            if len(span.operands) > 1:
                raise WorkloadError("its shapes are dynamic")
            attributes = {name: span.attributes[name] for name in ("alignment", "operandSegmentSizes")}
            # 1 = ReadOnly, 2 = Indirect: bindings come from a command buffer's arguments.
            flags = 3 if accesses[index] == "readonly" else 2
            attributes["descriptor_flags"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), flags)
            attributes["binding"] = ir.IntegerAttr.get(ir.IndexType.get(), index)
            attributes["layout"] = layout
            with ir.InsertionPoint(span):
                fresh = ir.Operation.create(
                    SUBSPAN, results=[span.results[0].type], operands=[zero.results[0]], attributes=attributes
                )
            span.results[0].replace_all_uses_with(fresh.results[0])
            span.erase()


def pipeline_layout(accesses: list[str]) -> str:
    """The `#hal.pipeline.layout` attribute of a dispatch whose bindings have these accesses."""
    flags = ['"ReadOnly|Indirect"' if access == "readonly" else "Indirect" for access in accesses]
    kinds = ", ".join(f"#hal.pipeline.binding<storage_buffer, {flag}>" for flag in flags)
    return f"#hal.pipeline.layout<bindings = [{kinds}], flags = Indirect>"


def access_of(span_type: ir.Type) -> str:
    """`readonly`, `writeonly` or `readwrite`, from a subspan's `dispatch.tensor<access:...>` type."""
    text = str(span_type)
    head, found, _ = text.partition(":")
    if not found or "dispatch.tensor<" not in head:
        raise WorkloadError(f"a binding is no tensor ({text})")
    return head.rpartition("<")[2]


def _access(group: list[ir.Operation]) -> str:
    accesses = {access_of(span.results[0].type) for span in group}
    return accesses.pop() if len(accesses) == 1 else "readwrite"


def _subspans_from_results(body: ir.Block) -> list[ir.Operation]:
    """Subspans in the order a walk from the stores back to the loads first meets them."""
    found: list[ir.Operation] = []
    seen: set[int] = set()

    def visit(value: ir.Value) -> None:
        owner = value.owner
        if isinstance(owner, ir.Block) or hash(owner.operation) in seen:
            return
        op = owner.operation
        seen.add(hash(op))
        for inner in walk(op):
            for operand in inner.operands:
                visit(operand)
        if op.name == SUBSPAN:
            found.append(op)

    for op in body.operations:
        if op.operation.name.endswith("tensor.store"):
            for operand in op.operation.operands:
                visit(operand)
    if not found:
        raise WorkloadError("it stores no tensor")
    return found


def _drop_dead_addressing(body: ir.Block) -> None:
    changed = True
    while changed:
        dead = [
            op.operation
            for op in body.operations
            if op.operation.name in ADDRESSING | {SUBSPAN}
            and not any(list(result.uses) for result in op.operation.results)
        ]
        for op in dead:
            op.erase()
        changed = bool(dead)


def _inline_resources(function: ir.Operation) -> None:
    """Replace constants that live in the model's resource section, which a payload does not have.

        arith.constant dense_resource<bias> : tensor<64xf32>
     -> arith.constant dense<[0.5, 1.19, ...]> : tensor<64xf32>

    Their values change neither schedule nor key, so fixed ones stand in: positive (a variance may be among them),
    no two neighbours alike (a splat would be folded), no two constants alike (they would be merged, and what reads
    them would have fewer operands than in the model), and 0 or 1 for integers (they may be indices).
    """
    resources = [
        op
        for op in walk(function)
        if op.name == "arith.constant" and str(op.attributes["value"]).startswith("dense_resource<")
    ]
    for number, op in enumerate(resources):
        tensor = ir.RankedTensorType(op.results[0].type)
        count = int(np.prod(tensor.shape, dtype=np.int64))
        values = _stand_ins(str(tensor.element_type), np.arange(count), number)
        text = json.dumps(values.reshape(tensor.shape).tolist())
        op.attributes["value"] = ir.Attribute.parse(f"dense<{text}> : {tensor}")


def _stand_ins(element: str, index: np.ndarray, number: int) -> np.ndarray:
    """Values of constant `number`: 0 and 1 in turn but for one slip, or 89 values from a place of its own."""
    if element.startswith("i"):
        bits = (index + (index > number)) % 2
        return bits == 1 if element == "i1" else bits
    return 0.5 + ((index + 5 * number) * 61 % 89) / 89


def _refuse_runtime_values(body: ir.Block) -> None:
    for op in body.operations:
        if op.operation.name == "hal.interface.constant.load":
            raise WorkloadError("it takes sizes or scalars known only at run time (dynamic shapes)")
        for result in op.operation.results:
            if isinstance(result.type, ir.RankedTensorType) and not ir.RankedTensorType(result.type).has_static_shape:
                raise WorkloadError("its shapes are dynamic")
