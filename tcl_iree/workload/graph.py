"""The loop/tensor graph of a dispatch, and the structural key taken from it.

Nodes are ops, the loops of structured ops, and the buffers of the dispatch. Edges follow the data
(`operand=i`) or hang a loop on its op (`loop=d`). The key is a Merkle hash of that graph, read from
the stores back: names, SSA numbering, op order, buffer offsets and the *values* of floating-point
constants leave no trace in it; shapes, types, maps, bodies and every fused op do.
"""

from __future__ import annotations

import hashlib
from typing import Any

import networkx as nx
from iree.compiler import ir

from tcl_iree.workload.payload import SUBSPAN, access_of, walk
from tcl_iree.workload.structure import is_structured, loops_of

# Attributes that hold no meaning of their own (segment sizes) or name things.
_NAMELESS = {"operandSegmentSizes", "sym_name", "layout", "descriptor_flags", "alignment", "binding"}


def build_graph(ops: list[ir.Operation]) -> nx.DiGraph:
    """The graph of a dispatch's ops.

    Node attributes: `kind` (`op`, `loop` or `buffer`), `label` (what the node is, without names).
    Loop nodes also carry `size`, `dim` and `iterator`; `buffer` nodes `access` and `binding`.
    """
    graph = nx.DiGraph()
    index = {op: number for number, op in enumerate(ops)}
    for op, number in index.items():
        if op.name == SUBSPAN:
            span = op.results[0].type
            binding = int(ir.IntegerAttr(op.attributes["binding"]).value)
            graph.add_node(number, kind="buffer", label=str(span), access=access_of(span), binding=binding)
            continue
        graph.add_node(number, kind="op", label=_label(op), op=op.name)
        if is_structured(op):
            for dim, loop in enumerate(loops_of(op)):
                node = (number, dim)
                label = f"{loop.kind}:{loop.size}"
                graph.add_node(node, kind="loop", label=label, dim=dim, size=loop.size, iterator=loop.kind)
                graph.add_edge(node, number, loop=dim)
        for slot, (value, role) in enumerate(_inputs(op)):
            source = index.get(value.owner.operation) if not isinstance(value.owner, ir.Block) else None
            if source is not None:
                edge = graph.get_edge_data(source, number, {}).get("uses", ())
                graph.add_edge(source, number, uses=(*edge, f"{slot}:{role}:{_result_number(value)}"))
    return graph


def structural_key(graph: nx.DiGraph) -> str:
    """A key for the computation: 16 hex digits."""
    buffers: dict[int, int] = {}
    hashes: dict[Any, str] = {}

    def visit(node: Any) -> str:
        if node in hashes:
            return hashes[node]
        data = graph.nodes[node]
        if data["kind"] == "buffer":
            number = buffers.setdefault(data["binding"], len(buffers))
            hashes[node] = _digest("buffer", str(number), data["label"])
            return hashes[node]
        parts = [data["label"]]
        sources = sorted(graph.in_edges(node, data=True), key=_edge_order)
        for source, _, edge in sources:
            tag = f"loop{edge['loop']}" if "loop" in edge else ",".join(edge["uses"])
            parts.append(f"{tag}={visit(source)}")
        hashes[node] = _digest(*parts)
        return hashes[node]

    sinks = sorted(
        (node for node, data in graph.nodes(data=True) if data["kind"] == "op" and data["op"].endswith("tensor.store")),
    )
    return _digest(*[visit(node) for node in sinks])[:16]


def _edge_order(edge: tuple[Any, Any, dict[str, Any]]) -> tuple[int, int]:
    _, _, data = edge
    return (0, data["loop"]) if "loop" in data else (1, int(data["uses"][0].partition(":")[0]))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()


def _inputs(op: ir.Operation) -> list[tuple[ir.Value, str]]:
    """Operands, then values the op's regions capture from outside."""
    values = [(value, "operand") for value in op.operands]
    for inner in walk(op):
        if inner != op:
            values += [(value, "capture") for value in inner.operands]
    return values


def _result_number(value: ir.Value) -> int:
    return 0 if isinstance(value.owner, ir.Block) else ir.OpResult(value).result_number


def _label(op: ir.Operation) -> str:
    parts = [op.name, *_attributes(op), *(str(result.type) for result in op.results)]
    for inner in walk(op):
        if inner != op:
            parts += [inner.name, *_attributes(inner), *_wiring(op, inner)]
    return "|".join(parts)


def _attributes(op: ir.Operation) -> list[str]:
    if op.name == "arith.constant":
        return [_constant_label(op)]
    return [f"{name}={op.attributes[name]}" for name in op.attributes if name not in _NAMELESS]


def _constant_label(op: ir.Operation) -> str:
    """Floating-point and tensor values are left out: they change no schedule. Integers stay: an
    exponent, an offset or an axis shapes the code."""
    result = op.results[0].type
    value = op.attributes["value"]
    keep = isinstance(result, ir.IntegerType | ir.IndexType)
    return f"constant {value if keep else ''}: {result}"


def _wiring(parent: ir.Operation, inner: ir.Operation) -> list[str]:
    """How an op inside a region is connected: to block arguments or to earlier ops, by position."""
    order = {op: number for number, op in enumerate(walk(parent))}
    wires = []
    for value in inner.operands:
        if isinstance(value.owner, ir.Block):
            wires.append(f"arg{ir.BlockArgument(value).arg_number}")
        else:
            wires.append(f"op{order.get(value.owner.operation, 'outer')}.{_result_number(value)}")
    return [*wires, *(str(result.type) for result in inner.results)]
