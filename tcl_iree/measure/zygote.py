"""The worker process: loads a job's libraries once, then forks one limited child per job.

    parent ── socket ──▶ zygote (libraries loaded, no threads) ── fork ──▶ child (one job, limits)

A child starts in milliseconds, and whatever happens to it (a compiler crash, a wild write, a
hang, kill -9) ends with it. If the parent dies the zygote sees its socket close and takes the
running child along; if the zygote dies the kernel takes the child.

Started as `python -m tcl_iree.measure.zygote FD MODULE:FUNCTION SCRATCH`; each job runs in an empty
directory below SCRATCH, which is also its TMPDIR.
"""

from __future__ import annotations

import errno
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
from pathlib import Path
from typing import Any

from tcl_iree.processes import die_with_parent

_LOG = "stderr.log"
_LOG_TAIL = 4000
_OUT_OF_MEMORY = 112
# Trouble of the machine, not of the job.
_MACHINE_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EAGAIN}


@dataclass(frozen=True)
class Job:
    """One call of the zygote's function, with limits; None or empty sets no limit."""

    arguments: dict[str, Any]
    timeout: float
    memory_bytes: int | None
    cpus: tuple[int, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How a job ended.

    Attributes:
        status: `done`, `raised` (a Python exception), `timeout`, `died`, or `broken` (the machine could not run it).
        value: what the function returned, if done.
        detail: first line: what happened; then a traceback or the tail of standard error.
    """

    status: str
    value: Any
    detail: str
    seconds: float

    @property
    def headline(self) -> str:
        """What happened, in one line."""
        return (self.detail.splitlines() or [self.status])[0][:400]


def serve(parent: Connection, function: Callable[..., Any], scratch: str) -> None:
    """Run jobs until the parent hangs up."""
    while True:
        try:
            job: Job = parent.recv()
        except (EOFError, OSError):
            return
        started = time.monotonic()
        try:
            status, value, detail = _run(job, function, parent, scratch)
        except OSError as error:  # no process, no descriptor, no space for the job's directory
            status, value, detail = "broken", None, str(error)
        try:
            parent.send(Outcome(status, value, detail, time.monotonic() - started))
        except OSError:
            return


def _run(job: Job, function: Callable[..., Any], parent: Connection, scratch: str) -> tuple[str, Any, str]:
    directory, zygote = tempfile.mkdtemp(dir=scratch), os.getpid()
    try:
        receive_fd, send_fd = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(receive_fd)
            parent.close()
            _child(job, function, Connection(send_fd, readable=False), directory, zygote)
        os.close(send_fd)
        with Connection(receive_fd, writable=False) as results:
            status, value = _await(results, parent, job.timeout)
        _kill_session(child)  # which holds the child's helpers (the linker) too
        _, code = os.waitpid(child, 0)
        if status in ("raised", "broken"):
            return status, None, str(value)
        detail = "" if status == "done" else f"{_ending(status, code, job)}\n{_log_tail(directory)}".strip()
        return status, value, detail
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _await(results: Connection, parent: Connection, timeout: float) -> tuple[str, Any]:
    ready = wait([results, parent], timeout)
    if results not in ready:  # too late, or the parent is gone: it speaks only between jobs
        return "timeout", None
    try:
        return results.recv()
    except (EOFError, OSError):
        return "died", None


def _ending(status: str, code: int, job: Job) -> str:
    if status == "timeout":
        return f"stopped after {job.timeout:g} s"
    if os.WIFSIGNALED(code):
        return f"killed by {signal.Signals(os.WTERMSIG(code)).name}"
    if os.WEXITSTATUS(code) == _OUT_OF_MEMORY:
        return f"reached its memory limit of {(job.memory_bytes or 0) / (1 << 30):.1f} GiB"
    return f"exited with {os.WEXITSTATUS(code)}"


def _log_tail(directory: str) -> str:
    try:
        return Path(directory, _LOG).read_text(errors="replace")[-_LOG_TAIL:].strip()
    except OSError:
        return ""


def _kill_session(child: int) -> None:
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def _child(job: Job, function: Callable[..., Any], results: Connection, directory: str, zygote: int) -> None:
    code = 1
    try:
        message: tuple[str, Any]
        try:
            _enter(job, directory, zygote)
            message = ("done", function(**job.arguments))
        except MemoryError:
            code = _OUT_OF_MEMORY
            return
        except Exception as error:
            machine = isinstance(error, OSError) and error.errno in _MACHINE_ERRORS
            headline = f"{type(error).__name__}: {error}".partition("\n")[0]
            message = ("broken" if machine else "raised", f"{headline}\n{traceback.format_exc()}")
        results.send(message)
        code = 0
    finally:
        os._exit(code)


def _enter(job: Job, directory: str, zygote: int) -> None:
    """Make this child a session of its own, in its own directory, within the job's limits."""
    os.setsid()
    die_with_parent(zygote)
    os.chdir(directory)
    os.environ["TMPDIR"] = tempfile.tempdir = directory
    log = os.open(_LOG, os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if job.cpus:
        os.sched_setaffinity(0, job.cpus)
    if job.memory_bytes is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = job.memory_bytes if hard == resource.RLIM_INFINITY else min(job.memory_bytes, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


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
