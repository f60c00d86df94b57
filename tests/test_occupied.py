"""The clock of what is compiled and measured."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from tcl_iree.occupied import OCCUPIED, Occupied
from tcl_iree.processes import run_limited


def test_what_goes_on_at_once_counts_once() -> None:
    clock = Occupied()
    started = time.monotonic()
    inside = threading.Event()

    def other() -> None:
        with clock.going():
            inside.set()
            time.sleep(0.2)

    thread = threading.Thread(target=other)
    with clock.going():
        thread.start()
        inside.wait()
    assert 0 < clock.seconds <= time.monotonic() - started, "the other still goes on"
    thread.join()
    shown = clock.seconds
    assert 0.2 <= shown <= time.monotonic() - started
    time.sleep(0.05)
    assert clock.seconds == shown, "nothing goes on"


def test_it_stops_where_something_fails() -> None:
    clock = Occupied()
    with pytest.raises(ValueError, match="no"), clock.going():
        raise ValueError("no")
    assert clock.seconds == clock.seconds


def test_programs_that_are_run_are_counted() -> None:
    before = OCCUPIED.seconds
    run_limited([sys.executable, "-c", "import time; time.sleep(0.1)"], 60.0, 1 << 32)
    assert OCCUPIED.seconds - before >= 0.1
