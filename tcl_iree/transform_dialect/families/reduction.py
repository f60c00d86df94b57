"""Row-wise work: sums, maxima, softmax, normalisations, whatever is computed of a row from reductions over it.

    for each workgroup, for each tile of rows:
        for each reduction: partial(rows, lanes) op= x(rows, lanes) over the row, then across the lanes
        for each elementwise op: y(rows, lanes) over the row

Where it is the rows that lie next to each other in memory (a reduction over columns), they are the lanes, and every
reduction goes step by step with its accumulators in registers.
"""

from __future__ import annotations

from math import prod

from iree.compiler import ir

from tcl_iree.target import Target
from tcl_iree.transform_dialect.backend import lower_to_vectors_and_buffers
from tcl_iree.transform_dialect.cpu_limits import CpuLimits, cpu_limits
from tcl_iree.transform_dialect.family import Decision, Family
from tcl_iree.transform_dialect.names import FILL, GENERIC
from tcl_iree.transform_dialect.rows import RowOp, Rows, rows_of
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import Script
from tcl_iree.transform_dialect.sizes import workgroup_tiles
from tcl_iree.workload.model import DTYPE_BYTES, Workload


class Reduction(Family):
    """Tiles of rows, reduced in lanes."""

    name = "reduction"

    def why_not(self, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        if target.kind != "cpu":
            return "it is for CPUs"
        found = rows_of(workload)
        return found if isinstance(found, str) else None

    def decisions(self, workload: Workload, target: Target) -> tuple[Decision, ...]:
        """See `Family`."""
        rows = _found(workload)
        limits = _limits(workload, target)
        row = rows.tiled
        at = tuple(loop for loop, size in enumerate(rows.sizes) if size)
        widths = [limits.lanes * factor // 2 for factor in (1, 2, 4, 8)]
        if rows.row_lanes:
            counts, spans = widths, [1, 2, 4, 8]
        else:
            counts, spans = [1, 2, 4, 8, 16], widths
        longest = max((loop.size for op in rows.ops for loop in (op.op.loops[i] for i in op.others)), default=1)
        return (
            Decision("workgroup", workgroup_tiles(list(rows.sizes), at)),
            Decision("rows", tuple(count for count in counts if count <= rows.sizes[row]) or (rows.sizes[row],)),
            Decision("span", tuple(span for span in spans if span <= longest) or (longest,)),
        )

    def why_illegal(self, schedule: Schedule, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        rows, limits = _found(workload), _limits(workload, target)
        count, span = schedule["rows"], schedule["span"]
        if count > (schedule["workgroup"][rows.tiled] or rows.sizes[rows.tiled]):
            return "a workgroup has fewer rows than a tile"
        vectors = span * -(-count // limits.lanes) if rows.row_lanes else count * -(-span // limits.lanes)
        if vectors > limits.registers:
            return f"{vectors} vectors of a tile do not fit {limits.registers} registers"
        return limits.why_not_stack(sum(_buffer_bytes(op, count, rows) for op in rows.ops[:-1]))

    def emit(self, script: Script, schedule: Schedule, workload: Workload, target: Target) -> None:
        """See `Family`."""
        rows = _found(workload)
        script.phase("The ops of the dispatch, distributed to workgroups.")
        handles = _find(script, rows)
        handles[-1], forall = script.tile_forall(handles[-1], schedule["workgroup"], "workgroup")
        for index in reversed(range(len(handles) - 1)):
            if rows.readers(index) > 1:
                script.merge_equal()
            handles[index], forall = script.fuse(handles[index], forall, "workgroup")
        script.phase("Tiles of rows.")
        _tile_rows(script, schedule, rows, handles)
        script.canonicalize()
        script.phase("Elementwise ops in lanes.")
        for op in _distinct([op for op in rows.ops if not op.reduces and op.op.kind == GENERIC]):
            _tile_elementwise(script, schedule, rows, op)
        script.phase("Reductions step by step." if rows.row_lanes else "Reductions in lanes, then across them.")
        for op in _distinct([op for op in rows.ops if op.reduces]):
            _tile_reduction(script, schedule, rows, op)
        script.canonicalize(fold_units=rows.row_lanes)
        lower_to_vectors_and_buffers(script)


def _find(script: Script, rows: Rows) -> list[ir.Value]:
    kinds = [op.op.kind for op in rows.ops]
    found = {kind: script.match([kind], name, kinds.count(kind)) for kind, name in ((FILL, "fill"), (GENERIC, "op"))
             if kind in kinds}  # fmt: skip
    taken = {kind: iter(handles) for kind, handles in found.items()}
    return [next(taken[kind]) for kind in kinds]


def _tile_rows(script: Script, schedule: Schedule, rows: Rows, handles: list[ir.Value]) -> None:
    extents = [schedule["workgroup"][loop] or size for loop, size in enumerate(rows.sizes)]
    tile = [min(1, size) for size in rows.sizes]
    tile[rows.tiled] = schedule["rows"]
    tile = [size if size < extent else 0 for size, extent in zip(tile, extents, strict=True)]
    if not any(tile):
        return
    _, loops = script.tile(handles[-1], tile, "rows")
    # A reduction accumulates in what the loop carries: the fill of that is no producer that could be pulled in.
    start = rows.last.start if rows.last.reduces else -1
    loop = loops[-1]
    for index in reversed(range(len(handles) - 1)):
        if index == start:
            of_fill = [0] * len(rows.ops[index].op.loops)
            for row, size in zip(rows.ops[index].rows, (tile[at] for at in rows.last.rows), strict=True):
                of_fill[row] = size
            script.tile(handles[index], of_fill, "start")
        else:
            if rows.readers(index) > 1:
                script.merge_equal()
            _, loop = script.fuse(handles[index], loop, "rows")
    if tile[rows.tiled] and extents[rows.tiled] % tile[rows.tiled]:
        position = [at for at, size in enumerate(tile) if size].index(rows.tiled)
        script.peel(loop if position == len(loops) - 1 else loops[position], "rows")


def _tile_elementwise(script: Script, schedule: Schedule, rows: Rows, op: RowOp) -> None:
    if not op.others:
        return
    inner = op.contiguous if op.contiguous in op.others else op.others[-1]
    _tile(script, schedule, op, {loop: schedule["span"] if loop == inner else 1 for loop in op.others})


def _tile_reduction(script: Script, schedule: Schedule, rows: Rows, op: RowOp) -> None:
    if rows.row_lanes:
        _tile(script, schedule, op, dict.fromkeys(op.others, 1))
        return
    extent = op.op.loops[op.contiguous].size
    span = min(schedule["span"], extent)
    sizes = [0 if loop in op.rows else span if loop == op.contiguous else 1 for loop in range(len(op.op.loops))]
    loops = script.tile_reduction(script.match_all([GENERIC], "reduction", op.iterators), sizes, "reduction")
    if extent % span and extent > span:
        script.peel(loops, "rest")


def _tile(script: Script, schedule: Schedule, op: RowOp, wanted: dict[int, int]) -> None:
    extents = [loop.size for loop in op.op.loops]
    tile = [wanted.get(loop, 0) if wanted.get(loop, 0) < extents[loop] else 0 for loop in range(len(extents))]
    if not any(tile):
        return
    name = "reduction" if op.reduces else "elementwise"
    _, loops = script.tile(script.match_all([GENERIC], name, op.iterators), tile, name)
    tiled = [loop for loop, size in enumerate(tile) if size]
    for loop, handle in reversed(list(zip(tiled, loops, strict=True))):
        if extents[loop] % tile[loop]:
            script.peel(handle, "rest")


def _distinct(ops: list[RowOp]) -> list[RowOp]:
    """One op of each signature: ops with equal kinds of loops are matched, and tiled, together."""
    return list({op.iterators: op for op in ops}.values())


def _buffer_bytes(op: RowOp, count: int, rows: Rows) -> int:
    """Bytes of an intermediate result for one tile of rows."""
    result = next(operand for operand in op.op.operands if operand.is_output)
    whole = prod(op.op.loops[loop].size for loop in op.others if not op.reduces)
    return count * whole * DTYPE_BYTES[result.dtype]


def _found(workload: Workload) -> Rows:
    found = rows_of(workload)
    assert not isinstance(found, str)
    return found


def _limits(workload: Workload, target: Target) -> CpuLimits:
    return cpu_limits(target, next(operand.dtype for operand in workload.root.operands if operand.is_output))
