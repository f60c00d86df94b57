"""Models that learn nothing: what any other has to beat."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tcl_iree.features.loop_graph import LoopGraph
from tcl_iree.features.statements import StatementEncoder, loop_graphs
from tcl_iree.features.steps import Candidate, StepReader
from tcl_iree.hardware import Hardware
from tcl_iree.learning.cost_model import CostModel, Epoch, FitOptions, State
from tcl_iree.learning.groups import Group
from tcl_iree.learning.recent import Recent
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

# A core adds to so many accumulators before the first sum is ready again.
_IN_FLIGHT = 8.0
# Vector instructions a core does while one element comes from the second cache, or from memory. Guesses.
_L2_COST = 0.4
_MEMORY_COST = 0.5


class _Unlearned(CostModel):
    def __init__(self) -> None:
        self._encoders = Recent(StatementEncoder)

    def fit(self, training: Sequence[Group], validation: Sequence[Group], options: FitOptions) -> list[Epoch]:
        return []

    def update(self, groups: Sequence[Group]) -> None:
        pass

    @property
    def config(self) -> dict[str, Any]:
        return {}

    def state(self) -> State:
        return {}

    def load_state(self, state: State) -> None:
        pass

    def embed(self, workload: Workload, target: Target, candidates: Sequence[Candidate]) -> np.ndarray:
        """Statement features, summed: there is nothing learned to show."""
        features, _ = self._encoders.of(workload, target).statements(candidates)
        return features.sum(axis=1)


class RandomModel(_Unlearned):
    """Guesses; the same candidate always gets the same guess."""

    name = "random"

    def predict(self, workload: Workload, target: Target, candidates: Sequence[Candidate]) -> np.ndarray:
        """See the class."""
        texts = (f"{workload.key} {candidate}" for candidate in candidates)
        digests = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts]
        return np.array([int.from_bytes(digest, "big") / 2**64 for digest in digests])


class RooflineModel(_Unlearned):
    """An estimate from first principles: arithmetic, traffic between caches, and cores that wait."""

    name = "roofline"

    def __init__(self) -> None:
        super().__init__()
        self._readers = Recent(StepReader)

    def predict(self, workload: Workload, target: Target, candidates: Sequence[Candidate]) -> np.ndarray:
        """The logarithm of a speed."""
        made = np.zeros(len(candidates))
        for steps in self._readers.of(workload, target).read(candidates):
            costs = [_cost(graph, target.hardware) for graph in loop_graphs(workload, steps)]
            made[steps.positions] = -np.log2(np.maximum(sum(costs, np.zeros(len(steps.positions))), 1e-9))
        return made


def _cost(graph: LoopGraph, hardware: Hardware) -> np.ndarray:
    """Time in units of one vector instruction."""
    count = graph.count
    width = graph.widest
    lanes = max(1.0, hardware.vector_bytes / width)
    outer = [np.ones(count), *graph.entered]
    executed = graph.runs * graph.points[-1]  # more than the op has, where tiles overlap its end
    parallel, innermost = np.ones(count), np.ones(count)
    for extent, loop in zip(graph.extents[-1], graph.op.loops, strict=True):
        parallel = parallel * extent if loop.kind == "parallel" else parallel
        innermost = np.where(extent > 1, extent, innermost)
    filled = innermost / (np.ceil(innermost / lanes) * lanes)
    accumulators = parallel / lanes
    busy = np.clip(accumulators / _IN_FLIGHT, 1.0 / _IN_FLIGHT, 1.0)
    spilled = np.maximum(1.0, accumulators / max(1, hardware.vector_registers))
    each = graph.flops / max(1, graph.op.points) / 2.0
    compute = each * executed / lanes / filled / busy * spilled
    traffic = _L2_COST * _traffic(graph, outer, hardware.l1_bytes)
    traffic = traffic + _MEMORY_COST * _traffic(graph, outer, hardware.l2_bytes)
    cores = max(1, hardware.cores)
    waiting = np.ceil(graph.workgroups / cores) * cores / graph.workgroups
    return np.maximum(compute, traffic / hardware.vector_bytes * lanes) * waiting


def _traffic(graph: LoopGraph, outer: list[np.ndarray], cache: int) -> np.ndarray:
    """Bytes that pass into a cache: what the largest tile that fits it holds, once for each such tile."""
    best = graph.bytes[-1] * outer[-1]
    for depth in range(graph.depth + 1):
        fits = graph.bytes[depth] <= max(1, cache)
        best = np.where(fits, np.minimum(best, graph.bytes[depth] * outer[depth]), best)
    return best
