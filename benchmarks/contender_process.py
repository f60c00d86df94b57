"""The process of one contender: sets a peer up, shows its outputs, then runs so many calls whenever it is asked.

Started as `python -m benchmarks.contender_process FD PARENT`, talking through that socket:

    parent                                 contender
    Setup                           ──▶
                                    ◀──    Ready, or why not (text)
    how many calls                  ──▶
                                    ◀──    seconds per call
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from benchmarks.peers import PEERS
from tcl_iree.processes import die_with_parent


@dataclass(frozen=True)
class Setup:
    """What to run, where and on which inputs.

    Attributes:
        peer, options: name and arguments of the peer's class.
        cpus: cores it may use.
        draws: inputs to show outputs of; calls are timed with the first.
    """

    peer: str
    options: dict[str, Any]
    cpus: tuple[int, ...]
    draws: list[list[np.ndarray]]


@dataclass(frozen=True)
class Ready:
    """A peer that runs: what it is, and what it computes from each draw of inputs."""

    about: str
    outputs: list[list[np.ndarray]]


def main() -> None:
    """Serve the parent until it hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    descriptor, parent = map(int, sys.argv[1:])
    die_with_parent(parent)
    connection = Connection(descriptor)
    try:
        _serve(connection)
    except (EOFError, BrokenPipeError):
        return
    except Exception as error:
        connection.send(f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")


def _serve(connection: Connection) -> None:
    setup: Setup = connection.recv()
    os.sched_setaffinity(0, setup.cpus)  # before any library counts cores
    peer = PEERS[setup.peer](**setup.options)
    outputs = [[array.copy() for array in peer.read(peer.bind(draw)())] for draw in setup.draws]
    call = peer.bind(setup.draws[0])
    connection.send(Ready(peer.about, outputs))
    while True:
        calls = connection.recv()
        call()  # others ran since the last slice: caches and threads are cold
        started = time.perf_counter()
        for _ in range(calls):
            call()
        connection.send((time.perf_counter() - started) / calls)


if __name__ == "__main__":
    # Under `-m` this file is `__main__`; messages are pickled as the importable module's classes.
    from benchmarks import contender_process

    contender_process.main()
