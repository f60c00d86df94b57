"""The parent's side of a worker process: start it, hand it jobs, replace it when it dies."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any

from tcl_iree.errors import MeasureError
from tcl_iree.measure.zygote import Job, Outcome

_ZYGOTE = "tcl_iree.measure.zygote"
_SCRATCH = "tcl-iree-scratch-"
_START_SECONDS = 120.0
_GRACE_SECONDS = 10.0


class Worker:
    """Runs one job at a time in a fresh child of a warm process.

    Args:
        function: `module:function` to call; its module must import neither torch nor learning code.
    """

    def __init__(self, function: str) -> None:
        self._function = function
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._scratch: str | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The worker's process id, while it runs."""
        return self._process.pid if self._process else None

    def run(self, arguments: dict[str, Any], timeout: float, memory_bytes: int) -> Outcome:
        """Run the function once; a dead worker is an outcome too, and is replaced for the next job."""
        started = time.monotonic()
        connection = self._ready()
        try:
            connection.send(Job(arguments, timeout, memory_bytes))
            if not connection.poll(timeout + _GRACE_SECONDS):
                self.close()
                return Outcome("timeout", None, "the worker stopped answering", time.monotonic() - started)
            return connection.recv()
        except (EOFError, OSError) as error:
            self.close()
            detail = f"the worker process was killed ({type(error).__name__})"
            return Outcome("died", None, detail, time.monotonic() - started)
        except BaseException:  # Ctrl-C: the answer to this job must not be taken for the next one's
            self.close()
            raise

    def close(self) -> None:
        """Stop the worker and anything it runs."""
        if self._connection:
            self._connection.close()
            self._connection = None
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def _ready(self) -> Connection:
        if self._process and self._process.poll() is None and self._connection:
            return self._connection
        self.close()
        _sweep_scratch()
        self._scratch = tempfile.mkdtemp(prefix=f"{_SCRATCH}{os.getpid()}-")
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _ZYGOTE, str(theirs.fileno()), self._function, self._scratch],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=_environment(),
            )
        self._connection = Connection(ours.detach())
        if not self._connection.poll(_START_SECONDS):
            self.close()
            raise MeasureError("a worker process did not start; can `python -m tcl_iree.measure.zygote` be imported?")
        try:
            self._connection.recv()
        except (EOFError, OSError):
            self.close()
            raise MeasureError("a worker process died while starting; its error is above") from None
        return self._connection


def _environment() -> dict[str, str]:
    """The parent's environment, with its import path: the package may not be installed."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def _sweep_scratch() -> None:
    """Remove what programs that were killed left behind."""
    for path in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        owner = path.name.removeprefix(_SCRATCH).partition("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(path, ignore_errors=True)
