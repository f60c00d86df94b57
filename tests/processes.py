"""Processes in tests: find them, wait for them, run them on a small disk."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest


def children(pid: int) -> list[int]:
    """Direct children of a process."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def with_environment(mark: str) -> list[int]:
    """Processes whose environment holds `mark`."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (path / "environ").read_bytes() and int(path.name) != os.getpid():
                state = (path / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    found.append(int(path.name))
        except OSError:
            continue
    return found


def command_of(pid: int) -> bytes:
    """The command line of a process; nothing if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def wait_for(condition: Callable[[], object], seconds: float = 20.0) -> bool:
    """Poll until the condition holds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def on_small_disk(directory: Path, size: str, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command with `directory` on a file system of `size`, in a mount namespace of its own.

    What was on that file system at the end is copied to `<directory>.after`.
    """
    if not shutil.which("unshare"):
        pytest.skip("unshare is not installed")
    directory.mkdir()
    mount = f"mount -t tmpfs -o size={size} tmpfs {directory}"
    if subprocess.run(["unshare", "-r", "-m", "sh", "-c", mount], capture_output=True, check=False).returncode:
        pytest.skip("mount namespaces are not allowed here")
    script = f'{mount} && "$@"; code=$?; cp -r {directory} {directory}.after; exit $code'
    whole = ["unshare", "-r", "-m", "sh", "-c", script, "sh", *command]
    return subprocess.run(whole, capture_output=True, text=True, check=False)


def heed_interrupts() -> None:
    """For a child that is to be interrupted: a shell starts background jobs, and all below them, deaf to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
