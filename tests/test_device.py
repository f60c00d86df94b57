"""Who calls a device with workers gives way to them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tcl_iree.measure.device import SharedDevice

LINUX = pytest.mark.skipif(
    sys.platform != "linux" or os.sched_getscheduler(0) != os.SCHED_OTHER,
    reason="threads have no such class elsewhere, and one that was given another keeps it",
)
CLASSES = {os.SCHED_OTHER: "normal", os.SCHED_BATCH: "batch"} if sys.platform == "linux" else {}


def own_class() -> str:
    return CLASSES[os.sched_getscheduler(0)]


@LINUX
def test_a_thread_gives_way_to_workers_while_it_calls_a_shared_device() -> None:
    shared = SharedDevice("local-task", [])
    assert own_class() == "normal"
    assert shared.run(own_class) == "batch"
    assert own_class() == "normal"
    assert SharedDevice("local-sync", []).run(own_class) == "normal"


@LINUX
@pytest.mark.parametrize(("name", "then"), [("local-task", "batch"), ("local-sync", "normal")])
def test_a_thread_that_opens_a_device_gives_way_to_its_workers(name: str, then: str) -> None:
    code = (
        "import os, time\n"
        "from pathlib import Path\n"
        "from tcl_iree.measure.device import open_device\n"
        f"device = open_device('{name}', ['--task_topology_group_count=2'])\n"
        "for _ in range(100):\n"  # a thread takes its name when it first runs
        "    tasks = {int(task.name): (task / 'comm').read_text() for task in Path('/proc/self/task').iterdir()}\n"
        "    workers = [task for task, name in tasks.items() if 'iree-worker' in name]\n"
        f"    if len(workers) == {2 if then == 'batch' else 0}:\n"
        "        break\n"
        "    time.sleep(0.1)\n"
        "print(os.sched_getscheduler(0), *(os.sched_getscheduler(task) for task in workers))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = [CLASSES[int(word)] for word in done.stdout.split()]
    assert found == [then, *(["normal", "normal"] if then == "batch" else [])]


@LINUX
def test_a_call_that_fails_says_so_to_its_caller() -> None:
    def fail() -> None:
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        SharedDevice("local-task", []).run(fail)
    assert own_class() == "normal"
