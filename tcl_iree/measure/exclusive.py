"""One measurement at a time on this machine: what runs beside another is timed wrong."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive() -> Iterator[None]:
    """Wait until no other process of this user measures; the kernel lets go for one that dies."""
    path = Path(tempfile.gettempdir()) / f"tcl_iree.{os.getuid()}.measuring"
    try:
        file = path.open("w")
    except OSError:  # no place for a lock is no reason not to measure
        yield
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
