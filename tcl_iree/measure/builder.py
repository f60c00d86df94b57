"""Compile candidates: one payload with one transform library, in a limited process, proven applied."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from queue import SimpleQueue
from types import TracebackType

from iree.compiler.version import VERSION as IREE_VERSION

from tcl_iree.errors import MeasureError
from tcl_iree.hardware import host_cpu, machine_memory
from tcl_iree.measure.cache import ArtifactCache, artifact_sha, default_cache_dir
from tcl_iree.measure.harness import harness_module
from tcl_iree.measure.ptxas import assemble, find_ptxas
from tcl_iree.measure.results import Artifact, BuildResult, Failure, FailureKind
from tcl_iree.measure.worker import Worker
from tcl_iree.measure.zygote import Outcome
from tcl_iree.target import Target
from tcl_iree.transform_dialect.names import ENTRY
from tcl_iree.workload.model import Workload

_JOB = "tcl_iree.measure.compile_job:job"
# Builds for each worker, where building and running take turns.
_AHEAD = 4
# Debug symbols cost compile time and change no instruction.
BUILD_FLAGS = ("--iree-llvmcpu-debug-symbols=false",)


@dataclass(frozen=True)
class Candidate:
    """A transform script as text, and the named sequence IREE is to start at."""

    text: str
    entry: str = ENTRY


class Builder:
    """Compiles payloads for one target.

    Args:
        target: what to compile for.
        flags: further compile flags, the same for every candidate.
        workers: compile processes; one per core by default.
        timeout: seconds one compile may take.
        memory_bytes: address space one compile may use; by default the machine's memory, shared out, up to 6 GiB.
        cache: where artifacts are kept; None keeps nothing. The default is the user's cache directory.
    """

    def __init__(
        self,
        target: Target,
        flags: Sequence[str] = (),
        workers: int | None = None,
        timeout: float = 30.0,
        memory_bytes: int | None = None,
        cache: ArtifactCache | str | None = "default",
    ) -> None:
        if reason := target.why_not_compile():
            raise MeasureError(f"cannot compile for {target}: {reason}")
        self.target = target
        self.flags = tuple(flags)
        self._timeout = timeout
        self._cache = ArtifactCache(default_cache_dir()) if isinstance(cache, str) else cache
        self._workers: SimpleQueue[Worker] = SimpleQueue()
        self._all_workers = [Worker(_JOB) for _ in range(workers or host_cpu().cores)]
        self._memory = memory_bytes or min(6 << 30, machine_memory() // len(self._all_workers))
        for worker in self._all_workers:
            self._workers.put(worker)
        self._device: str | None = None
        self._ptxas = find_ptxas() if target.kind == "cuda" else None
        self._defaults: dict[tuple[str, tuple[int, ...]], BuildResult] = {}

    def __enter__(self) -> Builder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop the compile processes."""
        for worker in self._all_workers:
            worker.close()

    def build_default(self, workload: Workload) -> BuildResult:
        """IREE's own code for the payload: candidate zero, and the reference of all others."""
        # Not by key: workloads of one key may differ in the values of constants.
        known = (workload.payload, workload.spans)
        if known not in self._defaults:
            result = self._assembled(self._build(workload, None, None))
            if result.failure and result.failure.kind in (FailureKind.CRASH, FailureKind.COMPILE_TIMEOUT):
                return result  # may have been killed from outside: worth another try next time
            self._defaults[known] = result
        return self._defaults[known]

    def build(self, workload: Workload, library: Candidate, cpus: Sequence[int] = ()) -> BuildResult:
        """Compile the payload with `library`, on these cores if any are named, and prove that it was applied."""
        default = self.build_default(workload)
        if default.failure:
            detail = f"IREE's default does not compile: {default.failure.detail}"
            return BuildResult(None, Failure(default.failure.kind, detail), default.seconds)
        assert default.artifact
        return self._assembled(self._build(workload, library, default.artifact.configured, cpus))

    def build_many(self, workload: Workload, libraries: Sequence[Candidate]) -> list[BuildResult]:
        """Compile many candidates of one workload, in parallel over the workers, in order."""
        self.build_default(workload)
        pool = ThreadPoolExecutor(len(self._all_workers))
        try:
            return list(pool.map(lambda library: self.build(workload, library), libraries))
        except BaseException:  # Ctrl-C: do not wait for what nobody wants any more
            pool.shutdown(wait=False, cancel_futures=True)
            self.close()
            raise
        finally:
            pool.shutdown()

    def build_ahead(self, workload: Workload, libraries: Sequence[Candidate]) -> Iterator[BuildResult]:
        """Compile many candidates for a caller that runs each in turn, in order.

        While one runs, the next are built on the cores that the target leaves free. If it leaves none, a few are built
        at a time, and nothing while they run.
        """
        free = self.target.free_cpus
        if not free:
            chunk = _AHEAD * len(self._all_workers)
            for start in range(0, len(libraries), chunk):
                yield from self.build_many(workload, libraries[start : start + chunk])
            return
        self.build_default(workload)
        pool = ThreadPoolExecutor(min(len(free), len(self._all_workers)))
        try:
            for built in [pool.submit(self.build, workload, library, free) for library in libraries]:
                yield built.result()
        except KeyboardInterrupt:
            self.close()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _build(
        self,
        workload: Workload,
        library: Candidate | None,
        default_configured: str | None,
        cpus: Sequence[int] = (),
    ) -> BuildResult:
        started = time.monotonic()
        flags = [*self.target.compile_flags, *BUILD_FLAGS, *self.flags]
        module = harness_module(workload, self._device_attribute())
        text, entry = (library.text, library.entry) if library else ("", "")
        key = ArtifactCache.key(IREE_VERSION, module, text, entry, *flags)
        if self._cache and (found := self._cache.get(key)):
            return BuildResult(found, None, time.monotonic() - started, cached=True)
        outcome = self._run(
            cpus,
            task="compile",
            module=module,
            flags=flags,
            library=library.text if library else None,
            entry=entry,
            default_configured=default_configured,
        )
        if outcome.status != "done":
            return BuildResult(None, _failure(outcome), outcome.seconds)
        if "failure" in outcome.value:
            failure = Failure(FailureKind(outcome.value["failure"]), outcome.value["detail"])
            return BuildResult(None, failure, outcome.seconds)
        vmfb = outcome.value["vmfb"]
        artifact = Artifact(vmfb, artifact_sha(vmfb), outcome.value["configured"])
        if self._cache:
            self._cache.put(key, artifact)
        return BuildResult(artifact, None, outcome.seconds)

    def _assembled(self, built: BuildResult) -> BuildResult:
        """A CUDA result with what `ptxas` says of it; code that it refuses would be refused by the driver, too."""
        if not built.artifact or not self._ptxas:
            return built
        report = assemble(built.artifact, self.target, self._ptxas)
        if report.error:
            failure = Failure(FailureKind.COMPILE_ERROR, f"ptxas: {report.error}")
            return replace(built, artifact=None, failure=failure)
        return replace(built, static=json.dumps(report.as_dict()))

    def _device_attribute(self) -> str:
        if self._device is None:
            flags = [*self.target.compile_flags, *self.flags]
            outcome = self._run(task="probe", flags=flags)
            if outcome.status == "died":  # perhaps killed from outside
                outcome = self._run(task="probe", flags=flags)
            if outcome.status != "done":
                raise MeasureError(f"IREE rejects the flags for target {self.target}: {outcome.headline}")
            self._device = str(outcome.value)
        return self._device

    def _run(self, cpus: Sequence[int] = (), **arguments: object) -> Outcome:
        worker = self._workers.get()
        try:
            return worker.run(arguments, self._timeout, self._memory, cpus)
        finally:
            self._workers.put(worker)


def _failure(outcome: Outcome) -> Failure:
    kinds = {
        "timeout": FailureKind.COMPILE_TIMEOUT,
        "died": FailureKind.CRASH,
        "raised": FailureKind.COMPILE_ERROR,
    }
    return Failure(kinds[outcome.status], outcome.detail)
