"""The values that describe a workload. All immutable, all plain data."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

DTYPE_BYTES = {
    "f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "i1": 1, "index": 8,
}  # fmt: skip


@dataclass(frozen=True)
class Loop:
    """One loop of a structured op: its trip count, and `parallel` or `reduction`."""

    size: int
    kind: str


@dataclass(frozen=True)
class Operand:
    """One operand of a structured op.

    Attributes:
        shape: empty for a scalar.
        map: how loops address it, as `(d0, d1, d2) -> (d0, d2)`.
        source: `input` (read from memory), `op` (made by another structured op), `constant` or `empty`.
        is_output: whether the op writes it.
        producer: index in the workload's ops of the op that makes it; -1 if none does.
    """

    shape: tuple[int, ...]
    dtype: str
    map: str
    source: str
    is_output: bool
    producer: int = -1


@dataclass(frozen=True)
class StructuredOp:
    """One op with loops.

    Attributes:
        kind: the MLIR op name, `linalg.matmul`.
        role: `root`, `fill`, `producer` (before the root) or `consumer` (after it).
        body: the scalar computation as one expression over `in0`, `out0`, ...
    """

    kind: str
    role: str
    loops: tuple[Loop, ...]
    operands: tuple[Operand, ...]
    body: str
    flops: int

    @property
    def points(self) -> int:
        """Size of the iteration space."""
        return prod(loop.size for loop in self.loops)

    @property
    def computes(self) -> str:
        """What it does, coarsely: `elementwise`, `contraction`, `conv`, `reduction` or `pool`."""
        if not any(loop.kind == "reduction" for loop in self.loops):
            return "elementwise"
        inputs = [operand for operand in self.operands if not operand.is_output and operand.shape]
        strided = any(sign in operand.map.partition("->")[2] for operand in inputs for sign in "+*")
        multiplies = "mul" in self.body and len(inputs) >= 2
        if strided:
            return "conv" if multiplies else "pool"
        return "contraction" if multiplies else "reduction"


@dataclass(frozen=True)
class Binding:
    """One buffer of the dispatch.

    Attributes:
        access: `readonly`, `writeonly` or `readwrite`.
    """

    shape: tuple[int, ...]
    dtype: str
    access: str

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole buffer."""
        return prod(self.shape) * DTYPE_BYTES[self.dtype]


@dataclass(frozen=True)
class Workload:
    """One distinct dispatch.

    Attributes:
        key: stable structural name; equal for equal computations, whatever they are called.
        payload: the dispatch as a standalone `builtin.module` with one function `@dispatch`.
        bytes: least memory traffic: every input read once, every output written once.
        gathers: whether integer inputs address other tensors (so their values must stay in range).
        index_limit: exclusive upper bound for such values.
        spans: for each binding, how many bytes the model touches before a dispatch finds it in the same place again, or
            0 if it stays in the nearest cache; none stands for 0 everywhere. It is measured so. Where a dispatch stands
            in a model says this, not the dispatch itself: the key does not depend on it.
    """

    key: str
    payload: str
    bindings: tuple[Binding, ...]
    ops: tuple[StructuredOp, ...]
    flops: int
    bytes: int
    gathers: bool = False
    index_limit: int = 0
    spans: tuple[int, ...] = ()

    def __hash__(self) -> int:
        return hash(self.key)  # it stands for all the rest, and is looked up thousands of times a second

    @property
    def root(self) -> StructuredOp:
        """The op a schedule is built around."""
        return next(op for op in self.ops if op.role == "root")

    @property
    def label(self) -> str:
        """A readable name: root kind, sizes, type, and how many ops are fused to it."""
        sizes = "x".join(str(loop.size) for loop in self.root.loops) or "scalar"
        fused = sum(op.role in ("producer", "consumer") for op in self.ops)
        return f"{self._root_name()} {sizes} {self._dtypes()}" + (f" +{fused}" if fused else "")

    def _root_name(self) -> str:
        root = self.root
        return root.computes if root.kind == "linalg.generic" else root.kind.rpartition(".")[2]

    def _dtypes(self) -> str:
        names = [operand.dtype for operand in self.root.operands if operand.shape]
        return names[0] if len(set(names)) == 1 else "x".join(dict.fromkeys(names))
