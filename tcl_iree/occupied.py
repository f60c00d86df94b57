"""How long other programs have been compiling or running something for this one: the rest of its time is its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Occupied:
    """A clock that runs while anything is compiled or measured, however many things at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._going = 0
        self._since = self._before = 0.0

    @contextmanager
    def going(self) -> Iterator[None]:
        """Something is compiled or measured inside this."""
        with self._lock:
            if self._going == 0:
                self._since = time.monotonic()
            self._going += 1
        try:
            yield
        finally:
            with self._lock:
                self._going -= 1
                if self._going == 0:
                    self._before += time.monotonic() - self._since

    @property
    def seconds(self) -> float:
        """What the clock shows."""
        with self._lock:
            return self._before + (time.monotonic() - self._since if self._going else 0.0)


OCCUPIED = Occupied()
"""The clock of this process."""
