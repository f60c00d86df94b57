"""The parent's side of a contender: start its process, ask it for slices of calls, end it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contender_process import Ready, Setup
from tcl_iree.errors import MeasureError
from tcl_iree.measure.exclusive import exclusive
from tcl_iree.target import Target

_SLICE_SECONDS = 300.0


@dataclass(frozen=True)
class Contender:
    """Who takes part.

    Attributes:
        peer, options: see `Setup`.
        measures: it times code while it is set up, so nobody else may measure then.
        instead: who takes part where this one does not start.
        python: the interpreter it needs, where its library is not installed beside this project.
    """

    name: str
    peer: str
    options: dict[str, Any] = field(default_factory=dict)
    measures: bool = False
    instead: Contender | None = None
    python: str = sys.executable


class Running:
    """A contender's process, set up and idle until it is asked.

    Args:
        log: a file for what it prints.
        limit: seconds it has to get ready.

    Raises:
        MeasureError: why it is not ready.
    """

    def __init__(
        self, contender: Contender, target: Target, draws: Sequence[Sequence[np.ndarray]], log: Path, limit: float
    ) -> None:
        ours, theirs = socket.socketpair()
        with theirs, log.open("wb") as printed:
            self._process = subprocess.Popen(
                [contender.python, "-m", "benchmarks.contender_process", str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                env=_environment(target.threads),
                start_new_session=True,
            )
        self._connection, self._log = Connection(ours.detach()), log
        setup = Setup(contender.peer, contender.options, target.cpus, [list(draw) for draw in draws])
        try:
            with exclusive() if contender.measures else nullcontext():
                ready = self._ask(setup, limit)
        except BaseException:
            self.close()
            raise
        assert isinstance(ready, Ready)
        self.about, self.outputs = ready.about, ready.outputs

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def slice(self, calls: int) -> float:
        """Seconds per call of so many calls in a row.

        Raises:
            MeasureError: it died or hangs.
        """
        seconds = self._ask(calls, _SLICE_SECONDS)
        assert isinstance(seconds, float)
        return seconds

    def close(self) -> None:
        """End the process and its helpers."""
        self._connection.close()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _ask(self, question: Setup | int, limit: float) -> Ready | float:
        try:
            self._connection.send(question)
            if not self._connection.poll(limit):
                raise MeasureError(f"it gave no answer within {limit:g} s")
            answer = self._connection.recv()
        except (EOFError, OSError):
            raise MeasureError(f"its process died: {self._last_words()}") from None
        if isinstance(answer, str):
            raise MeasureError(answer[:300])
        return answer

    def _last_words(self) -> str:
        code = self._process.wait()
        lines = self._log.read_text(errors="replace").strip().splitlines()
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"{how}; {lines[-1][:300]}" if lines else how


def _environment(threads: int) -> dict[str, str]:
    """The parent's, with one thread count for every library; how their pools wait is left as users have it.

    TVM would bind its threads to the machine's first cores, whichever it may use.
    """
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TVM_NUM_THREADS")
    return {**os.environ, **dict.fromkeys(names, str(threads)), "TVM_BIND_THREADS": "0"}
