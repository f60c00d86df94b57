"""Worker processes stay light and leave nothing behind."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tcl_iree.measure.worker import Worker
from tcl_iree.processes import scratch_directory


def loaded_modules() -> list[str]:
    return sorted(sys.modules)


def fail() -> None:
    raise ValueError("on purpose")


def hoard() -> int:
    return len(b"x" * (8 << 30))


def cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def litter() -> str:
    path = Path(tempfile.mkstemp()[1])
    return str(path)


def test_workers_import_neither_torch_nor_learning() -> None:
    for module in ("compile_job", "run_job", "model_job"):
        code = (
            f"import sys; import tcl_iree.measure.{module}; "
            "print([name for name in sys.modules if name.split('.')[0] == 'torch' or 'learning' in name])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]", done.stdout


def test_the_run_worker_does_not_load_the_compiler() -> None:
    code = (
        "import sys; import tcl_iree.measure.run_job; print('iree.compiler' in sys.modules, 'networkx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False False"


def test_an_exception_is_an_outcome_and_the_worker_goes_on() -> None:
    with Worker("test_workers:fail") as worker:
        first, second = (worker.run({}, timeout=10, memory_bytes=4 << 30) for _ in range(2))
    assert first.status == second.status == "raised"
    assert first.headline == "ValueError: on purpose"


def test_a_job_runs_on_the_cores_it_is_given() -> None:
    every = sorted(os.sched_getaffinity(0))
    with Worker("test_workers:cores") as worker:
        one = worker.run({}, timeout=10, memory_bytes=4 << 30, cpus=every[-1:])
        free = worker.run({}, timeout=10, memory_bytes=4 << 30)
    assert one.value == every[-1:]
    assert free.value == every


def test_a_job_that_eats_memory_is_stopped() -> None:
    with Worker("test_workers:hoard") as worker:
        outcome = worker.run({}, timeout=60, memory_bytes=2 << 30)
    assert outcome.status == "died"
    assert "memory limit" in outcome.detail


def test_scratch_files_go_with_the_job() -> None:
    with Worker("test_workers:litter") as worker:
        outcome = worker.run({}, timeout=10, memory_bytes=4 << 30)
        assert outcome.status == "done", outcome
        assert "tcl-iree-worker-" in outcome.value
        assert not Path(outcome.value).exists()


def test_scratch_of_dead_programs_is_swept() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    root = Path(tempfile.gettempdir())
    left, fresh = root / f"tcl-iree-worker-{process.pid}-old", root / f"tcl-iree-worker-{process.pid}-new"
    mine = Path(scratch_directory("test").name)
    for path in (left, fresh, mine):
        path.mkdir(exist_ok=True)
    for path in (left, mine):
        os.utime(path, (0, 0))
    with scratch_directory("test"):
        assert not left.exists(), "old and its program is gone"
        assert fresh.exists(), "too young to be judged"
        assert mine.exists(), "its program lives"
    fresh.rmdir()
    mine.rmdir()
