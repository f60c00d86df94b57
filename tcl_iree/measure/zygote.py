"""The worker process: loads a job's libraries once, then forks one limited child per job.

    parent ── socket ──▶ zygote (libraries loaded, no threads) ── fork ──▶ child (one job, limits)

A child starts in milliseconds, and whatever happens to it (a compiler crash, a wild write, a
hang, kill -9) ends with it. If the parent dies the zygote sees its socket close and takes the
running child along; if the zygote dies the kernel takes the child.

Started as `python -m tcl_iree.measure.zygote FD MODULE:FUNCTION SCRATCH`; each job runs in an empty
directory below SCRATCH, which is also its TMPDIR.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

_PR_SET_PDEATHSIG = 1
_STDERR_TAIL = 4000
_OUT_OF_MEMORY = 112


@dataclass(frozen=True)
class Job:
    """One call of the zygote's function, with limits."""

    arguments: dict[str, Any]
    timeout: float
    memory_bytes: int


@dataclass(frozen=True)
class Outcome:
    """How a job ended.

    Attributes:
        status: `done`, `raised` (a Python exception), `timeout` or `died`.
        value: what the function returned, if done.
        detail: exception or signal, and the tail of standard error.
    """

    status: str
    value: Any
    detail: str
    seconds: float


def serve(parent: Connection, function: Callable[..., Any], scratch: str) -> None:
    """Run jobs until the parent hangs up."""
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    while True:
        try:
            job: Job = parent.recv()
        except (EOFError, OSError):
            return
        parent.send(_run(job, function, parent))


def _run(job: Job, function: Callable[..., Any], parent: Connection) -> Outcome:
    started = time.monotonic()
    receive_fd, send_fd = os.pipe()
    directory, zygote = tempfile.mkdtemp(), os.getpid()
    with tempfile.TemporaryFile() as log:
        child = os.fork()
        if child == 0:
            os.close(receive_fd)
            _child(job, function, Connection(send_fd, readable=False), log.fileno(), parent, directory, zygote)
        os.close(send_fd)
        with Connection(receive_fd, writable=False) as results:
            status, value = _await(results, parent, job.timeout)
        # The child's own session holds its helpers (the linker) too.
        _kill_session(child)
        _, code = os.waitpid(child, 0)
        log.seek(max(0, log.seek(0, os.SEEK_END) - _STDERR_TAIL))
        tail = log.read().decode(errors="replace").strip()
    shutil.rmtree(directory, ignore_errors=True)
    detail = ""
    if status == "raised":
        status, value, detail = "raised", None, str(value)
    elif status != "done":
        detail = f"{_ending(status, code, job)}\n{tail}".strip()
    return Outcome(status, value, detail, time.monotonic() - started)


def _await(results: Connection, parent: Connection, timeout: float) -> tuple[str, Any]:
    deadline = time.monotonic() + timeout
    while True:
        ready = wait([results, parent], max(0.0, deadline - time.monotonic()))
        if results in ready:
            try:
                return results.recv()
            except (EOFError, OSError):
                return "died", None
        if parent in ready:  # the parent speaks only between jobs, so it is gone: go with it
            return "timeout", None
        if not ready:
            return "timeout", None


def _ending(status: str, code: int, job: Job) -> str:
    if status == "timeout":
        return f"stopped after {job.timeout:g} s"
    if os.WIFSIGNALED(code):
        return f"killed by {signal.Signals(os.WTERMSIG(code)).name}"
    if os.WEXITSTATUS(code) == _OUT_OF_MEMORY:
        return f"reached its memory limit of {job.memory_bytes / (1 << 30):.1f} GiB"
    return f"exited with {os.WEXITSTATUS(code)}"


def _kill_session(child: int) -> None:
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def _child(
    job: Job,
    function: Callable[..., Any],
    results: Connection,
    log_fd: int,
    parent: Connection,
    directory: str,
    zygote: int,
) -> None:
    try:
        os.setsid()
        os.chdir(directory)
        os.environ["TMPDIR"] = tempfile.tempdir = directory
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != zygote:  # it died before the line above
            os._exit(1)
        parent.close()
        os.dup2(log_fd, 1)
        os.dup2(log_fd, 2)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (job.memory_bytes, job.memory_bytes))
        try:
            message = ("done", function(**job.arguments))
        except MemoryError:
            os._exit(_OUT_OF_MEMORY)
        except Exception:
            message = ("raised", traceback.format_exc())
        results.send(message)
    finally:
        os._exit(0)


def main() -> None:
    """Entry point of the worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    descriptor, target, scratch = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    module, _, name = target.partition(":")
    function = getattr(importlib.import_module(module), name)
    parent = Connection(descriptor)
    parent.send("ready")
    serve(parent, function, scratch)


if __name__ == "__main__":
    # Under `-m` this file is `__main__`; jobs arrive pickled as the importable module's classes.
    from tcl_iree.measure import zygote

    zygote.main()
