"""The parent's side of a worker process: start it, hand it jobs, replace it when it dies."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from tcl_iree.errors import MeasureError
from tcl_iree.measure.zygote import Job, Outcome
from tcl_iree.occupied import OCCUPIED
from tcl_iree.processes import scratch_directory

_ZYGOTE = "tcl_iree.measure.zygote"
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
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._closing = threading.Lock()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The worker's process id, while it runs."""
        process = self._process
        return process.pid if process else None

    def run(
        self, arguments: dict[str, Any], timeout: float, memory_bytes: int | None, cpus: Sequence[int] = ()
    ) -> Outcome:
        """Run the function once; a dead worker is an outcome too, and is replaced for the next job.

        Args:
            cpus: cores it may use; any by default.

        Raises:
            MeasureError: this machine cannot run jobs at all (no space, no processes).
        """
        started = time.monotonic()
        connection = self._ready()
        try:
            with OCCUPIED.going():
                connection.send(Job(arguments, timeout, memory_bytes, tuple(cpus)))
                if not connection.poll(timeout + _GRACE_SECONDS):
                    self.close()
                    return Outcome("timeout", None, "the worker stopped answering", time.monotonic() - started)
                outcome: Outcome = connection.recv()
        except (EOFError, OSError) as error:
            self.close()
            detail = f"the worker process was killed ({type(error).__name__})"
            return Outcome("died", None, detail, time.monotonic() - started)
        except BaseException:  # Ctrl-C: the answer to this job must not be taken for the next one's
            self.close()
            raise
        if outcome.status == "broken":
            raise MeasureError(f"this machine cannot run the job: {outcome.headline} (in {tempfile.gettempdir()})")
        return outcome

    def close(self) -> None:
        """Stop the worker and anything it runs."""
        with self._closing:
            connection, process, scratch = self._connection, self._process, self._scratch
            self._connection = self._process = self._scratch = None
        if connection:
            connection.close()
        if process:
            process.kill()
            process.wait()
        if scratch:
            scratch.cleanup()

    def _ready(self) -> Connection:
        if self._process and self._process.poll() is None and self._connection:
            return self._connection
        for attempt in (1, 2):  # one start may be hit by a kill from outside
            self.close()
            connection = self._start()
            try:
                if connection.poll(_START_SECONDS):
                    connection.recv()
                    return connection
            except (EOFError, OSError):
                if attempt == 2:
                    break
        self.close()
        raise MeasureError("a worker process did not start; its error is above")

    def _start(self) -> Connection:
        self._scratch = scratch_directory("worker")
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _ZYGOTE, str(theirs.fileno()), self._function, self._scratch.name],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=_environment(),
            )
        self._connection = Connection(ours.detach())
        return self._connection


def _environment() -> dict[str, str]:
    """The parent's environment, with its import path: the package may not be installed."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
