"""The whole program under kill -9, and full disks."""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from conftest import DATA
from processes import command_of, heed_interrupts, on_small_disk, wait_for, with_environment

from tcl_iree.database import Database

ROOT = Path(__file__).parent.parent

MEASURE = """
import sys
sys.path[:0] = sys.argv[1].split(":")
from conftest import DATA, QUICK
from pathlib import Path
from tcl_iree.database import Database, ScheduleRecord
from tcl_iree.frontend import extract, load_model
from tcl_iree.measure.builder import Builder
from tcl_iree.measure.cache import ArtifactCache
from tcl_iree.measure.runner import Runner
from tcl_iree.target import Target
from tcl_iree.workflows.trials import TrialSession

target = Target.parse("cpu,threads=1")
(entry,) = extract(load_model(DATA / "matmul_bias_relu.mlir"), target).dispatches
text = (DATA / "tile_matmul.mlir").read_text()
cache = ArtifactCache(Path(sys.argv[3]))
with Database(sys.argv[2]) as database, Builder(target, cache=cache) as builder, Runner(target, QUICK) as runner:
    session = TrialSession(entry.workload, builder, runner, database)
    print(session.default.uid, flush=True)
    for number in range(int(sys.argv[4])):
        schedule = ScheduleRecord("script", {"number": number}, text.replace("[32, 64, 0]", f"[{8 + 8 * number}, 64, 0]"))
        for trial in session.measure([schedule]):
            print(trial.uid, trial.status, flush=True)
"""


def program(arguments: list[str]) -> list[str]:
    return [sys.executable, "-c", MEASURE, f"{ROOT / 'tests'}:{ROOT}", *arguments]


@pytest.mark.parametrize("after", [0, 1, 3])
def test_kill_9_of_the_whole_program_leaves_no_orphan_and_no_loss(after: int, tmp_path: Path) -> None:
    mark = f"TCL_IREE_TEST_MARK={uuid.uuid4().hex}"
    name, _, value = mark.partition("=")
    command = program([str(tmp_path / "a.db"), str(tmp_path / "cache"), "100"])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, name: value})
    assert process.stdout
    reported = [process.stdout.readline().split()[0] for _ in range(after + 1)]
    assert len(with_environment(mark)) >= 2, "workers should be running"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert wait_for(lambda: not with_environment(mark)), f"orphans: {with_environment(mark)}"
    with Database(tmp_path / "a.db") as database:
        assert set(reported) <= {trial.uid for trial in database.trials()}


def test_a_full_disk_under_the_cache_costs_only_the_cache(tmp_path: Path) -> None:
    done = on_small_disk(tmp_path / "cache", "24k", program([str(tmp_path / "a.db"), str(tmp_path / "cache"), "4"]))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split().count("ok") == 4
    assert "artifact cache" in done.stderr
    with Database(tmp_path / "a.db") as database:
        assert len(database.trials()) == 5


def recorded(path: Path) -> int:
    if not path.exists():
        return 0
    with Database(path) as database:
        return len(database.trials())


def command_line(arguments: list[str], directory: Path, mark: str) -> "subprocess.Popen[str]":
    """The `tcl-iree` command in a session of its own, marked in its environment."""
    name, _, value = mark.partition("=")
    environment = {**os.environ, name: value, "TCL_IREE_CACHE": str(directory / "cache"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tcl_iree", *arguments, "--target", "cpu,threads=1"]
    return subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )


@pytest.mark.parametrize("moment", ["running", "building"])
def test_ctrl_c_keeps_what_was_measured(moment: str, tmp_path: Path) -> None:
    mark = f"TCL_IREE_TEST_MARK={uuid.uuid4().hex}"
    model, scripts = tmp_path / "model.mlir", []
    text, source = (DATA / "tile_matmul.mlir").read_text(), (DATA / "matmul_bias_relu.mlir").read_text()
    if moment == "building":
        text, source = (DATA / "compile_forever.mlir").read_text(), source.replace("96", "768")
    model.write_text(source)
    for number in range(60):
        path = tmp_path / f"{number}.mlir"
        path.write_text(text.replace("[32, 64, 0]", f"[{number + 1}, 64, 0]"))
        scripts.append(str(path))
    database, wanted = tmp_path / "a.db", 4 if moment == "running" else 1
    process = command_line(["measure", str(model), *scripts, "--db", str(database)], tmp_path, mark)
    try:
        assert wait_for(lambda: recorded(database) >= wanted, seconds=180)
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130, err
    assert err.strip().splitlines() == ["tcl-iree: interrupted; everything reported so far is kept"]
    assert recorded(database) >= wanted
    assert wait_for(lambda: not with_environment(mark)), f"orphans: {with_environment(mark)}"


def test_kill_9_during_a_whole_model_compile_leaves_no_orphan(tmp_path: Path) -> None:
    mark = f"TCL_IREE_TEST_MARK={uuid.uuid4().hex}"
    process = command_line(["bench", f"{ROOT / 'examples' / 'small_cnn.py'}:build"], tmp_path, mark)

    def compiling() -> bool:
        return any(b"iree-compile" in command_of(pid) for pid in with_environment(mark))

    assert wait_for(compiling, seconds=60)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert wait_for(lambda: not with_environment(mark)), f"orphans: {with_environment(mark)}"
