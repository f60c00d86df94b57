"""Run other programs so that they cannot outlive this one, outgrow their limits or take forever."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tcl_iree.occupied import OCCUPIED

_PR_SET_PDEATHSIG = 1
_SCRATCH = "tcl-iree-"
_STALE_SECONDS = 3600.0

# Sets the limits in the new process itself: nothing runs between fork and exec in ours, which may have threads.
_LAUNCH = """
import ctypes, os, resource, sys
parent, memory = int(sys.argv[1]), int(sys.argv[2])
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != parent:
    os._exit(1)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_AS, (memory, resource.getrlimit(resource.RLIMIT_AS)[1]))
os.execv(sys.argv[3], sys.argv[3:])
"""


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when process `parent`, which started it, dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above
        os._exit(1)


def run_limited(command: Sequence[str], timeout: float, memory_bytes: int) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and capture what it prints.

    Raises:
        subprocess.TimeoutExpired: it took too long; it and its helpers are gone.
    """
    launcher = [sys.executable, "-S", "-E", "-c", _LAUNCH, str(os.getpid()), str(memory_bytes), *command]
    process = subprocess.Popen(
        launcher,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        with OCCUPIED.going():
            out, err = process.communicate(timeout=timeout)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def scratch_directory(kind: str) -> tempfile.TemporaryDirectory[str]:
    """A temporary directory; what programs that were killed left behind is removed on the way."""
    _sweep()
    return tempfile.TemporaryDirectory(prefix=f"{_SCRATCH}{kind}-{os.getpid()}-", ignore_cleanup_errors=True)


def _sweep() -> None:
    """Remove old directories of this user's programs that no longer run."""
    for path in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*-*-*"):
        owner = path.name.split("-")[-2]
        try:
            facts = path.stat()
        except OSError:
            continue
        stale = time.time() - facts.st_mtime > _STALE_SECONDS and facts.st_uid == os.getuid()
        if stale and owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(path, ignore_errors=True)
