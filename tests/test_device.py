"""Who calls a device with workers gives way to them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tcl_iree.measure.device import SharedDevice

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads have no priority of their own")


def priority() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0)


@LINUX
def test_a_shared_device_leaves_its_process_the_priority_it_has() -> None:
    before = priority()
    shared = SharedDevice("local-task", [])
    assert priority() == before
    assert shared.run(priority) == min(19, before + 10)


@LINUX
@pytest.mark.parametrize(("name", "lower"), [("local-task", 10), ("local-sync", 0)])
def test_a_thread_that_opens_a_device_gives_way_to_its_workers(name: str, lower: int) -> None:
    code = (
        "import os, time\n"
        "from pathlib import Path\n"
        "from tcl_iree.measure.device import open_device\n"
        "before = os.getpriority(os.PRIO_PROCESS, 0)\n"
        f"device = open_device('{name}', ['--task_topology_group_count=2'])\n"
        "for _ in range(100):\n"  # a thread takes its name when it first runs
        "    tasks = {int(task.name): (task / 'comm').read_text() for task in Path('/proc/self/task').iterdir()}\n"
        "    workers = [task for task, name in tasks.items() if 'iree-worker' in name]\n"
        f"    if len(workers) == {2 if lower else 0}:\n"
        "        break\n"
        "    time.sleep(0.1)\n"
        "assert all(os.getpriority(os.PRIO_PROCESS, task) == before for task in workers)\n"
        "print(len(workers), os.getpriority(os.PRIO_PROCESS, 0) - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2" if lower else "0", str(min(19, priority() + lower) - priority())]


@LINUX
def test_a_call_that_fails_says_so_to_its_caller() -> None:
    def fail() -> None:
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        SharedDevice("local-task", []).run(fail)
