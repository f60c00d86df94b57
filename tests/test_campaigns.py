"""Long campaigns: random dispatches against numpy, and random kills. Run by `make test-long`."""

import contextlib
import os
import random
import signal
import subprocess
import threading
import time
import uuid
from pathlib import Path

import pytest
from conftest import DATA, QUICK, workload_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from processes import children, wait_for, with_environment
from test_faults import program

from tcl_iree.database import Database, ScheduleRecord
from tcl_iree.measure.builder import Builder
from tcl_iree.measure.runner import Runner
from tcl_iree.target import Target
from tcl_iree.workflows.trials import TrialSession, check_reference
from tcl_iree.workload.analysis import analyse
from tcl_iree.workload.model import Workload

pytestmark = pytest.mark.long

SIZES = st.sampled_from([1, 2, 3, 7, 8, 16, 17, 31, 64, 100])
DTYPES = st.sampled_from(["f32", "f16", "bf16", "i32", "i8"])


def add(dtype: str) -> str:
    return "arith.addi" if dtype.startswith("i") else "arith.addf"


def mul(dtype: str) -> str:
    return "arith.muli" if dtype.startswith("i") else "arith.mulf"


@st.composite
def models(draw: st.DrawFn) -> str:
    """A contraction with any operand transposed, and any of three consumers."""
    m, n, k, dtype = draw(SIZES), draw(SIZES), draw(SIZES), draw(DTYPES)
    wide = {"f16": "f32", "bf16": "f32", "i8": "i32"}.get(dtype, dtype)
    left, right = draw(st.sampled_from(["m, k", "k, m"])), draw(st.sampled_from(["k, n", "n, k"]))
    size = {"m": m, "n": n, "k": k}
    shapes = ["x".join(str(size[dim]) for dim in dims.split(", ")) for dims in (left, right)]
    widen = {"f16": "arith.extf", "bf16": "arith.extf", "i8": "arith.extsi"}.get(dtype)
    cast = f"%p = {widen} %a : {dtype} to {wide}\n      %q = {widen} %b : {dtype} to {wide}" if widen else ""
    p, q = ("%p", "%q") if widen else ("%a", "%b")
    consumer = draw(st.sampled_from(["%in", f"{add(wide)} %in, %row", f"{mul(wide)} %in, %in"]))
    tail = "linalg.yield %in" if consumer == "%in" else f"%r = {consumer} : {wide}\n      linalg.yield %r"
    zero = "0" if wide.startswith("i") else "0.0"
    return f"""func.func @main(%x: tensor<{shapes[0]}x{dtype}>, %y: tensor<{shapes[1]}x{dtype}>, %bias: tensor<{n}x{wide}>) -> tensor<{m}x{n}x{wide}> {{
  %zero = arith.constant {zero} : {wide}
  %empty = tensor.empty() : tensor<{m}x{n}x{wide}>
  %init = linalg.fill ins(%zero : {wide}) outs(%empty : tensor<{m}x{n}x{wide}>) -> tensor<{m}x{n}x{wide}>
  %product = linalg.generic {{
      indexing_maps = [affine_map<(m, n, k) -> ({left})>, affine_map<(m, n, k) -> ({right})>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %y : tensor<{shapes[0]}x{dtype}>, tensor<{shapes[1]}x{dtype}>) outs(%init : tensor<{m}x{n}x{wide}>) {{
    ^bb0(%a: {dtype}, %b: {dtype}, %c: {wide}):
      {cast}
      %s = {mul(wide)} {p}, {q} : {wide}
      %t = {add(wide)} %c, %s : {wide}
      linalg.yield %t : {wide}
  }} -> tensor<{m}x{n}x{wide}>
  %result = linalg.generic {{
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%product, %bias : tensor<{m}x{n}x{wide}>, tensor<{n}x{wide}>) outs(%empty : tensor<{m}x{n}x{wide}>) {{
    ^bb0(%in: {wide}, %row: {wide}, %out: {wide}):
      {tail} : {wide}
  }} -> tensor<{m}x{n}x{wide}>
  return %result : tensor<{m}x{n}x{wide}>
}}"""


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(text=models())
def test_random_contractions_agree_with_numpy(
    text: str, target: Target, builder: Builder, runner: Runner, tmp_path_factory: pytest.TempPathFactory
) -> None:
    workload = workload_of(text, tmp_path_factory.mktemp("model"), target)
    assert analyse(workload.payload) == workload
    artifact = builder.build_default(workload).artifact
    assert artifact
    check = check_reference(workload, artifact, runner)
    assert check.status == "confirmed", (check, text)
    assert runner.measure(workload, artifact, artifact).timing


def test_kill_9_at_any_moment_twenty_times(tmp_path: Path) -> None:
    reported: set[str] = set()
    moments = random.Random(0)
    for _ in range(20):
        mark = f"TCL_IREE_TEST_MARK={uuid.uuid4().hex}"
        name, _, value = mark.partition("=")
        command = program([str(tmp_path / "a.db"), str(tmp_path / "cache"), "100"])
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, name: value})
        time.sleep(2 + 6 * moments.random())
        process.send_signal(signal.SIGKILL)
        assert process.stdout
        reported |= {line.split()[0] for line in process.stdout if line.endswith("\n")}
        process.wait()
        assert wait_for(lambda mark=mark: not with_environment(mark)), f"orphans: {with_environment(mark)}"
    with Database(tmp_path / "a.db") as database:
        assert database._select("PRAGMA integrity_check") == [("ok",)]
        assert reported <= {trial.uid for trial in database.trials()}
    assert reported


def test_random_kills_of_workers_cost_single_trials(matmul: Workload, target: Target, tmp_path: Path) -> None:
    text = (DATA / "tile_matmul.mlir").read_text()
    stop = threading.Event()
    moments = random.Random(1)

    def kill_now_and_then() -> None:
        while not stop.wait(0.2 + moments.random()):
            pids = [pid for pid in [runner.pid, *(worker.pid for worker in builder._all_workers)] if pid]
            victims = [*pids, *(child for pid in pids for child in children(pid))]
            if victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(moments.choice(victims), signal.SIGKILL)

    with (
        Database(tmp_path / "a.db") as database,
        Builder(target, cache=None) as builder,
        Runner(target, QUICK) as runner,
    ):
        session = TrialSession(matmul, builder, runner, database)
        thread = threading.Thread(target=kill_now_and_then)
        thread.start()
        try:
            schedules = [
                ScheduleRecord(
                    "script", {"number": number}, text.replace("[32, 64, 0]", f"[{8 * (number % 8 + 1)}, 64, 0]")
                )
                for number in range(60)
            ]
            trials = [trial for schedule in schedules for trial in session.measure([schedule])]
        finally:
            stop.set()
            thread.join()
        assert len(trials) == 60
        assert {trial.status for trial in trials} <= {"ok", "crash"}
        assert [trial.status for trial in trials].count("ok") >= 30
        assert {trial.uid for trial in trials} <= {trial.uid for trial in database.trials()}
