"""Run artifacts: verified against IREE's default code, timed beside it, each in a process of its own."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from tcl_iree.hardware import machine_memory
from tcl_iree.measure.exclusive import exclusive
from tcl_iree.measure.results import Artifact, Failure, FailureKind, RunResult
from tcl_iree.measure.timing import TimingPolicy
from tcl_iree.measure.worker import Worker
from tcl_iree.measure.zygote import Outcome
from tcl_iree.processes import scratch_directory
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

_JOB = "tcl_iree.measure.run_job:job"
# More of them would hold a machine that has become slower for minutes to a speed it had before.
_RECENT = 12
_EXPECTATIONS = 16
# IREE's own code may be hundreds of times slower than what replaces it; it is measured alone but once.
_OWN_PATIENCE = 4.0


class Runner:
    """Measures artifacts of one target, one at a time, and never beside another process that measures.

    Args:
        target: where to run; it must be usable here.
        policy: how long to time one candidate.
        timeout: seconds one measurement may take, verification included; the reference's own may take four times that.
        memory_bytes: address space one measurement may use; by default most of the machine's memory.
    """

    def __init__(
        self,
        target: Target,
        policy: TimingPolicy | None = None,
        timeout: float = 30.0,
        memory_bytes: int | None = None,
    ) -> None:
        target.require_runnable()
        self.target = target
        policy = policy or TimingPolicy()
        self._policy = policy.several_threads() if target.threads > 1 else policy
        self._timeout = timeout
        # A CUDA driver reserves address space far beyond what it uses: no limit can be set on it.
        self._memory = None if target.kind == "cuda" else memory_bytes or int(0.8 * machine_memory())
        self._worker = Worker(_JOB)
        self._scratch = scratch_directory("expected")
        # What each reference computes, the latest last.
        self._expected: list[Path] = []
        # Calm speed of each reference: recent measurements only, since the machine's own speed drifts.
        self._floors: dict[str, deque[float]] = {}

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop the run process."""
        self._worker.close()
        self._scratch.cleanup()

    @property
    def pid(self) -> int | None:
        """Process id of the run worker, while it lives."""
        return self._worker.pid

    def measure(
        self, workload: Workload, artifact: Artifact, reference: Artifact, best_ratio: float = 0.0
    ) -> RunResult:
        """Verify and time `artifact` beside `reference` (IREE's default code for the same workload).

        Args:
            best_ratio: the best ratio so far; candidates several times slower are not timed in full.
        """
        floors = self._floors.setdefault(reference.sha, deque(maxlen=_RECENT))
        outcome = self._run(
            task="measure",
            workload=workload,
            vmfb=artifact.vmfb,
            reference_vmfb=reference.vmfb,
            expected=self._place(workload, reference),
            policy=self._policy,
            floor=min(floors, default=None),
            best_ratio=best_ratio,
            patience=_OWN_PATIENCE if artifact.sha == reference.sha else 1.0,
        )
        if outcome.status != "done":
            return RunResult(None, _failure(outcome), outcome.seconds)
        if "floor" in outcome.value:
            floors.append(outcome.value["floor"])
        return _result(outcome.value, outcome.seconds)

    def check(self, workload: Workload, artifact: Artifact, reference: Artifact) -> Failure | None:
        """What is wrong with an artifact, None if it computes what `reference` does; nothing is timed."""
        outcome = self._run(
            task="check",
            workload=workload,
            vmfb=artifact.vmfb,
            reference_vmfb=reference.vmfb,
            expected=self._place(workload, reference),
        )
        if outcome.status != "done":
            return _failure(outcome)
        wrong = outcome.value.get("wrong")
        return Failure(FailureKind.WRONG_RESULT, wrong) if wrong else None

    def compare(self, workload: Workload, artifacts: Sequence[Artifact], reference: Artifact) -> list[RunResult]:
        """Verify several artifacts and time them in the same rounds, beside `reference`: figures to choose by.

        If they cannot run in one process (one of them crashes it), each is measured alone.
        """
        if not artifacts:
            return []
        floors = self._floors.setdefault(reference.sha, deque(maxlen=_RECENT))
        outcome = self._run(
            task="compare",
            workload=workload,
            vmfbs=[artifact.vmfb for artifact in artifacts],
            reference_vmfb=reference.vmfb,
            expected=self._place(workload, reference),
            policy=self._policy,
            floor=min(floors, default=None),
        )
        if outcome.status != "done":
            return [self.measure(workload, artifact, reference) for artifact in artifacts]
        if outcome.value["floor"]:
            floors.append(outcome.value["floor"])
        return [_result(value, outcome.seconds / len(artifacts)) for value in outcome.value["results"]]

    def outputs(self, workload: Workload, artifact: Artifact, seed: int) -> dict[int, np.ndarray] | Failure:
        """What an artifact computes from the inputs of `seed`, by binding."""
        outcome = self._run(task="outputs", workload=workload, vmfb=artifact.vmfb, seed=seed)
        return outcome.value["outputs"] if outcome.status == "done" else _failure(outcome)

    def _place(self, workload: Workload, reference: Artifact) -> Path:
        """Where jobs keep what the reference computes; those that were asked for longest ago give way."""
        place = Path(self._scratch.name) / f"{workload.key}-{reference.sha}"
        self._expected = [kept for kept in self._expected if kept != place] + [place]
        while len(self._expected) > _EXPECTATIONS:
            shutil.rmtree(self._expected.pop(0), ignore_errors=True)
        return place

    def _run(self, patience: float = 1.0, **arguments: object) -> Outcome:
        arguments |= {"device": self.target.device, "flags": list(self.target.runtime_flags)}
        with exclusive():
            return self._worker.run(arguments, patience * self._timeout, self._memory, self.target.cpus)


def _result(value: dict[str, Any], seconds: float) -> RunResult:
    if "wrong" in value:
        return RunResult(None, Failure(FailureKind.WRONG_RESULT, value["wrong"]), seconds, value["error"])
    return RunResult(value["timing"], None, seconds, value["error"])


def _failure(outcome: Outcome) -> Failure:
    kinds = {"timeout": FailureKind.RUN_TIMEOUT, "died": FailureKind.CRASH, "raised": FailureKind.RUN_ERROR}
    return Failure(kinds[outcome.status], outcome.detail)
