"""Compiled artifacts on disk, found by what they were built from, within a size limit.

    builds/<hash of payload, library, flags, IREE version>   names an artifact
    objects/<hash of the artifact>                           the artifact itself

A cache can be lost at any time without harm, so trouble with it (a full disk) is reported once
and then the cache is done without.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import threading
import warnings
from pathlib import Path

from tcl_iree.measure.results import Artifact

DEFAULT_LIMIT = 2 << 30
_TRIM_EVERY = 50


def default_cache_dir() -> Path:
    """`$TCL_IREE_CACHE`, or the user's cache directory."""
    if override := os.environ.get("TCL_IREE_CACHE"):
        return Path(override)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tcl-iree"


class ArtifactCache:
    """Content-addressed artifacts below one directory.

    Args:
        root: the directory; made when first needed.
        limit_bytes: least recently used artifacts go when their sum exceeds this.
    """

    def __init__(self, root: Path, limit_bytes: int = DEFAULT_LIMIT) -> None:
        self._builds, self._objects = root / "builds", root / "objects"
        self._limit = limit_bytes
        self._usable = True
        self._lock = threading.Lock()
        self._puts = 0

    @staticmethod
    def key(*parts: str) -> str:
        """The name of a build."""
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def get(self, key: str) -> Artifact | None:
        """The artifact built under `key`, if it is still here and whole."""
        try:
            entry = json.loads((self._builds / key).read_text())
            path = self._objects / entry["sha"]
            vmfb = path.read_bytes()
        except (OSError, ValueError, KeyError):
            return None
        if artifact_sha(vmfb) != entry["sha"]:
            path.unlink(missing_ok=True)
            return None
        for used in (path, self._builds / key):
            with contextlib.suppress(OSError):
                os.utime(used)
        return Artifact(vmfb, entry["sha"], entry["configured"])

    def put(self, key: str, artifact: Artifact) -> None:
        """Keep an artifact; never raises for want of space."""
        entry = json.dumps({"sha": artifact.sha, "configured": artifact.configured}).encode()
        try:
            with self._lock:
                if not self._usable:
                    return
                path = self._objects / artifact.sha
                if not path.exists():
                    self._write(path, artifact.vmfb)
                self._write(self._builds / key, entry)
                self._trim()
        except OSError as error:
            self._usable = False
            warnings.warn(
                f"the artifact cache {self._objects.parent} cannot be written ({error.strerror}); going on without it. "
                "Free some space or set TCL_IREE_CACHE to another directory.",
                stacklevel=2,
            )

    def _write(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.replace(name, path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise

    def _trim(self) -> None:
        """Keep the sum of all files within the limit; other processes may add and remove files meanwhile."""
        self._puts += 1
        if self._puts % _TRIM_EVERY != 1:
            return
        files = []
        for directory in (self._objects, self._builds):
            for entry in os.scandir(directory):
                with contextlib.suppress(FileNotFoundError):
                    facts = entry.stat()
                    files.append((facts.st_mtime, facts.st_size, entry.path))
        total = sum(size for _, size, _ in files)
        if total <= self._limit:
            return
        for _, size, path in sorted(files):
            if total <= 0.8 * self._limit:
                break
            total -= size
            Path(path).unlink(missing_ok=True)


def artifact_sha(vmfb: bytes) -> str:
    """Content hash of an artifact."""
    return hashlib.sha256(vmfb).hexdigest()
