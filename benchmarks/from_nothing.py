"""A place to tune in as if for the first time: no trials of earlier runs, and nothing compiled before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tcl_iree.database import Database
from tcl_iree.learning.native_code import native_code
from tcl_iree.processes import scratch_directory

_CACHE = "TCL_IREE_CACHE"


@contextmanager
def from_nothing() -> Iterator[Database]:
    """An empty database, and an empty cache of compiled code meanwhile: both are gone afterwards.

    The cost model's own compiled code is loaded before: it is there once for all.
    """
    native_code()
    before = os.environ.get(_CACHE)
    with scratch_directory("nothing") as scratch:
        os.environ[_CACHE] = str(Path(scratch) / "cache")
        try:
            with Database(Path(scratch) / "trials.db") as database:
                yield database
        finally:
            if before is None:
                del os.environ[_CACHE]
            else:
                os.environ[_CACHE] = before
