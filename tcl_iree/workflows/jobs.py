"""Built candidates as one file, to be measured on another machine that has the device.

    manifest.json         version, IREE, target, flags, workloads, schedules, jobs
    objects/<sha256>      artifacts

The file is a zip. Artifacts are named by their content and the manifest's hash is in the archive's comment, so a file
that was damaged on its way is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tcl_iree.database import ScheduleRecord
from tcl_iree.errors import JobError
from tcl_iree.measure.builder import IREE_VERSION, Candidate
from tcl_iree.measure.cache import artifact_sha
from tcl_iree.measure.results import Artifact, BuildResult, Failure, FailureKind
from tcl_iree.target import Target
from tcl_iree.workload.analysis import analyse
from tcl_iree.workload.model import Workload

FORMAT = "tcl-iree-jobs"
FORMAT_VERSION = 1
_MANIFEST = "manifest.json"
# What `zipfile` raises on an archive with a byte or more changed, depending on which.
_DAMAGED = (OSError, zipfile.BadZipFile, zlib.error, KeyError, EOFError, RuntimeError, ValueError, struct.error)


@dataclass(frozen=True)
class Job:
    """One built candidate: a schedule of a workload, its code, and IREE's default code to measure it beside."""

    workload: Workload
    schedule: ScheduleRecord
    built: BuildResult
    default: BuildResult


def pack_jobs(path: Path, target: Target, flags: Sequence[str], jobs: Sequence[Job]) -> int:
    """Write jobs of one target and one set of flags as one file, whole or not at all; returns how many.

    Raises:
        JobError: there is nothing to pack, or no place to write it.
    """
    if not jobs:
        raise JobError("no candidate was built, so there is nothing to pack")
    artifacts: dict[str, bytes] = {}
    defaults = {job.workload.payload: job.default for job in jobs}
    position = {payload: index for index, payload in enumerate(defaults)}
    schedules = {job.schedule.sha: job.schedule for job in jobs}
    for result in (*defaults.values(), *(job.built for job in jobs)):
        assert result.artifact
        artifacts[result.artifact.sha] = result.artifact.vmfb
    manifest = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "iree": IREE_VERSION,
        "target": {"kind": target.kind, "arch": target.arch, "threads": target.threads, "key": target.key},
        "flags": list(flags),
        "workloads": [{"payload": payload, "default": _plain(default)} for payload, default in defaults.items()],
        "schedules": {sha: asdict(schedule) for sha, schedule in schedules.items()},
        "jobs": [
            {"workload": position[job.workload.payload], "schedule": job.schedule.sha, "built": _plain(job.built)}
            for job in jobs
        ],
    }
    _write(path, json.dumps(manifest, indent=1).encode(), artifacts)
    return len(jobs)


class JobFile:
    """A file of jobs, read and checked. It hands out built candidates as a `Builder` does.

    Raises:
        JobError: the file is missing, damaged, of another version of this project or of IREE, or for another machine.
    """

    def __init__(self, path: Path) -> None:
        try:
            with zipfile.ZipFile(path) as archive:
                manifest = archive.read(_MANIFEST)
                whole = archive.comment == hashlib.sha256(manifest).hexdigest().encode()
                self._vmfbs = {
                    name.removeprefix("objects/"): archive.read(name)
                    for name in archive.namelist()
                    if name.startswith("objects/")
                }
        except FileNotFoundError:
            raise JobError(f"no file of jobs at {path}; make one with `tcl-iree jobs pack`") from None
        except _DAMAGED as error:
            raise JobError(f"{path} is not a file of jobs, or is damaged ({error}); pack or copy it again") from None
        if not whole or any(artifact_sha(vmfb) != sha for sha, vmfb in self._vmfbs.items()):
            raise JobError(f"{path} was damaged or changed since it was packed; pack or copy it again")
        content = json.loads(manifest)
        if content.get("format") != FORMAT or content.get("version") != FORMAT_VERSION:
            raise JobError(f"{path} is of another version of tcl-iree; use the same version on both machines")
        if content["iree"] != IREE_VERSION:
            raise JobError(f"{path} was built by IREE {content['iree']} and here is {IREE_VERSION}; install that one")
        self.target = _target(content["target"], path)
        self.flags: tuple[str, ...] = tuple(content["flags"])
        self._results: dict[tuple[str, str, str], BuildResult] = {}
        self._defaults: dict[str, BuildResult] = {}
        try:
            self._load(content)
        except KeyError as missing:
            raise JobError(f"{path} is damaged: {missing} is missing; pack or copy it again") from None

    def _load(self, content: dict[str, Any]) -> None:
        self.workloads = [analyse(entry["payload"]) for entry in content["workloads"]]
        for workload, entry in zip(self.workloads, content["workloads"], strict=True):
            self._defaults[workload.payload] = self._result(entry["default"])
        schedules = {sha: ScheduleRecord(**entry) for sha, entry in content["schedules"].items()}
        self._schedules: dict[str, list[ScheduleRecord]] = {workload.payload: [] for workload in self.workloads}
        for row in content["jobs"]:
            payload, schedule = self.workloads[row["workload"]].payload, schedules[row["schedule"]]
            self._schedules[payload].append(schedule)
            self._results[payload, schedule.script or "", schedule.entry] = self._result(row["built"])

    def schedules(self, workload: Workload) -> list[ScheduleRecord]:
        """The schedules of a workload."""
        return self._schedules[workload.payload]

    def build_default(self, workload: Workload) -> BuildResult:
        """IREE's default code for a workload, as it was packed."""
        return self._defaults[workload.payload]

    def build_ahead(self, workload: Workload, libraries: Sequence[Candidate]) -> Iterator[BuildResult]:
        """Code of schedules, as it was packed."""
        missing = BuildResult(None, Failure(FailureKind.COMPILE_ERROR, "it was not packed"), 0.0)
        for entry in libraries:
            yield self._results.get((workload.payload, entry.text, entry.entry), missing)

    def _result(self, row: dict[str, Any]) -> BuildResult:
        artifact = Artifact(self._vmfbs[row["sha"]], row["sha"], row["configured"])
        return BuildResult(artifact, None, row["seconds"], row["cached"], row["static"])


def _plain(result: BuildResult) -> dict[str, Any]:
    assert result.artifact
    named = {"sha": result.artifact.sha, "configured": result.artifact.configured}
    return named | {"seconds": result.seconds, "cached": result.cached, "static": result.static}


def _target(entry: dict[str, Any], path: Path) -> Target:
    kind, arch, threads = entry["kind"], entry["arch"], entry["threads"]
    head = f"{kind}:{arch}" if arch else kind
    target = Target.parse(f"{head},threads={threads}" if kind == "cpu" else head)
    if kind == "cpu" and not arch and target.key != entry["key"]:
        raise JobError(f"{path} was built for the very CPU it was packed on; pack for a class such as cpu:avx2 instead")
    return target


def _write(path: Path, manifest: bytes, artifacts: dict[str, bytes]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                    archive.comment = hashlib.sha256(manifest).hexdigest().encode()
                    archive.writestr(_MANIFEST, manifest)
                    for sha, vmfb in artifacts.items():
                        archive.writestr(f"objects/{sha}", vmfb)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise JobError(f"cannot write {path}: {error.strerror or error}") from None
