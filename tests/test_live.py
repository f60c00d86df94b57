"""The live table of a tuning run: what it shows, on a terminal and elsewhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest
from rich.console import Console

from tcl_iree.report.live import Standing, live_tuning, standing_table

STANDINGS = [
    Standing("matmul 64x64x64 f32", 2, 3e-3, 2.0, 16),
    Standing("conv 8x8 f32", 1, 2e-3, 0.5, 4),
    Standing("softmax 16x16 f32", 1, 1e-3, None, 0),
]
# Shows what stands above on a terminal, as a run that has just begun would.
RUN = f"""
import time
from tcl_iree.report.live import Standing, live_tuning
with live_tuning("importing the model") as (say, show):
    say("searching", total=48)
    show({STANDINGS!r})
    say("matmul 64x64x64 f32: best 2.00x of the default", 16)
    time.sleep(1.0)
print("done")
"""


def lines(most: int) -> list[str]:
    console = Console(width=120)
    with console.capture() as held:
        console.print(standing_table(STANDINGS, most))
    return [re.sub(r"\s{2,}", " | ", line.strip()) for line in held.get().splitlines()]


def test_rows_tell_shares_times_and_what_all_come_to() -> None:
    assert lines(10)[1:] == [
        "matmul 64x64x64 f32 | 66.7 % | 3 ms | 1.5 ms | 2.00x | 16",
        "conv 8x8 f32 | 22.2 % | 2 ms | 4 ms | 0.50x | 4",
        "softmax 16x16 f32 | 11.1 % | 1 ms | - | - | 0",
        "all dispatches of one inference | 9 ms | 6 ms | 1.50x",  # what is slower than the default is not used
    ]


def test_what_does_not_fit_is_counted() -> None:
    assert lines(1)[2] == "2 more"
    assert len(lines(1)) == 4


def test_without_a_terminal_nothing_is_written(capfd: pytest.CaptureFixture[str]) -> None:
    with live_tuning("importing the model") as (say, show):
        say("searching", total=3)
        show(STANDINGS)
        say("tried", 1)
    assert capfd.readouterr() == ("", "")


def test_on_a_terminal_the_table_and_the_phase_are_drawn_and_taken_away() -> None:
    ours, theirs = pty.openpty()
    environment = {
        **os.environ,
        "COLUMNS": "120",
        "LINES": "30",
        "TERM": "xterm",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    with subprocess.Popen(
        [sys.executable, "-c", RUN], stdout=subprocess.PIPE, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                written += (part := os.read(ours, 65536))
            except OSError:  # the other end was closed
                break
            if not part:
                break
        assert process.stdout
        assert process.stdout.read() == b"done\n"
    os.close(ours)
    text = written.decode()
    for words in (
        "matmul 64x64x64 f32",
        "66.7 %",
        "all dispatches of one inference",
        "best 2.00x of the default",
        "16/48",
    ):
        assert words in text
    assert text.rstrip().endswith("\x1b[2K"), "the last thing written clears the lines"
