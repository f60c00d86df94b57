import dataclasses
import random
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from processes import on_small_disk, wait_for

from tcl_iree.database import Database, ScheduleRecord, Trial, WorkloadRecord, export_parquet, import_parquet
from tcl_iree.database.schema import SCHEMA_VERSION
from tcl_iree.database.store import _clear
from tcl_iree.errors import DatabaseError

WORKLOAD = WorkloadRecord("k" * 16, "matmul 4x4x4 f32", "module {}", 128, 192)
SCHEDULE = ScheduleRecord("script", {"tile": [8, 32]}, "module {}")


def trial(uid: str, **changes: object) -> Trial:
    values: dict[str, object] = {
        "uid": uid, "workload": WORKLOAD.key, "target": "cpu-avx2-t1-abc", "spec": "cpu:avx2,threads=1",
        "iree": "3.13.0", "flags": "", "schedule": SCHEDULE.sha, "status": "ok", "detail": "", "artifact": "a" * 64, "reference": "b" * 64,
        "p10": 1e-3, "p50": 1.1e-3, "p90": 1.5e-3, "reference_p50": 2e-3, "ratio": 1.8, "ratio_error": 0.01,
        "calm": True, "stopped_early": False, "error": 0.2, "build_seconds": 0.3, "run_seconds": 0.9,
        "measured": True, "created": 1.0,
    }  # fmt: skip
    return Trial(**{**values, **changes})  # type: ignore[arg-type]


def failed(uid: str) -> Trial:
    empty = dict.fromkeys(
        (
            "artifact",
            "reference",
            "p10",
            "p50",
            "p90",
            "reference_p50",
            "ratio",
            "ratio_error",
            "calm",
            "stopped_early",
            "error",
        )
    )
    return trial(uid, status="compile_error", detail="no", measured=False, **empty)


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as database:
        for record in (trial("1"), failed("2")):
            database.add_trial(WORKLOAD, SCHEDULE, record)
    with Database(tmp_path / "a.db") as database:
        assert database.trials() == [trial("1"), failed("2")]
        assert database.workloads() == [WORKLOAD]
        assert database.schedules() == {SCHEDULE.sha: SCHEDULE}
        assert database.trials(target="other") == []
        assert [row.uid for row in database.trials(workload=WORKLOAD.key, artifact="a" * 64)] == ["1"]


def test_merge_takes_what_is_new_and_only_that(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as a, Database(tmp_path / "b.db") as b:
        for uid in ("1", "2"):
            a.add_trial(WORKLOAD, SCHEDULE, trial(uid))
        for uid in ("2", "3"):
            b.add_trial(WORKLOAD, SCHEDULE, trial(uid))
        assert a.merge(b) == 1
        assert a.merge(b) == 0
        assert [row.uid for row in a.trials()] == ["1", "2", "3"]


def test_merge_reads_a_database_that_is_being_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = dataclasses.replace(SCHEDULE, script="// another")
    with Database(tmp_path / "a.db") as a, Database(tmp_path / "b.db") as b:
        b.add_trial(WORKLOAD, SCHEDULE, trial("1"))
        read = b.schedules

        def schedules() -> dict[str, ScheduleRecord]:
            found = read()
            b.add_trial(WORKLOAD, newer, dataclasses.replace(trial("2"), schedule=newer.sha))
            return found

        monkeypatch.setattr(b, "schedules", schedules)
        assert a.merge(b) == 1
        monkeypatch.undo()
        assert a.merge(b) == 1


def test_only_a_full_disk_is_called_one(tmp_path: Path) -> None:
    denied = _clear(PermissionError(13, "Permission denied", str(tmp_path / "full-run")), tmp_path / "full-run")
    assert "no space" not in str(denied)
    assert "no space" in str(_clear(OSError(28, "No space left on device"), tmp_path))
    assert "no space" in str(_clear(sqlite3.OperationalError("database or disk is full"), tmp_path))


def test_parquet_round_trip(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as a, Database(tmp_path / "b.db") as b:
        for record in (trial("1", static='{"registers": 40}'), failed("2")):
            a.add_trial(WORKLOAD, SCHEDULE, record)
        assert export_parquet(a, tmp_path / "out.parquet") == 2
        assert import_parquet(b, tmp_path / "out.parquet") == 2
        assert import_parquet(b, tmp_path / "out.parquet") == 0
        assert b.trials() == a.trials()
        assert b.workloads() == a.workloads()
        assert b.schedules() == a.schedules()


def test_an_export_without_static_figures_is_still_read(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as a, Database(tmp_path / "b.db") as b:
        a.add_trial(WORKLOAD, SCHEDULE, trial("1", static='{"registers": 40}'))
        export_parquet(a, tmp_path / "new.parquet")
        table = pq.read_table(tmp_path / "new.parquet")
        pq.write_table(table.drop_columns(["static"]), tmp_path / "old.parquet")
        assert import_parquet(b, tmp_path / "old.parquet") == 1
        assert b.trials() == [trial("1", static=None)]


# Columns that the first version of the file lacked.
NEWER = ("measured", "static", "hardware", "origin")


def test_an_older_database_is_migrated(tmp_path: Path) -> None:
    from tcl_iree.database import schema

    path = tmp_path / "old.db"
    connection = sqlite3.connect(path)
    connection.executescript(schema._MIGRATIONS[0])
    connection.execute("PRAGMA user_version = 1")
    connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    names = [field.name for field in dataclasses.fields(Trial) if field.name not in NEWER]
    values = [getattr(trial("1"), name) for name in names]
    connection.execute("INSERT INTO workloads VALUES (?, ?, ?, ?, ?)", dataclasses.astuple(WORKLOAD))
    connection.execute(
        "INSERT INTO schedules VALUES (?, ?, ?, ?, ?)",
        (SCHEDULE.sha, SCHEDULE.family, SCHEDULE.decisions_json, SCHEDULE.script, SCHEDULE.entry),
    )
    places = ", ".join("?" * len(names))
    connection.execute(f"INSERT INTO trials ({', '.join(names)}) VALUES ({places})", values)
    connection.commit()
    connection.close()
    with Database(path) as database:
        assert database.info()["schema"] == SCHEMA_VERSION
        assert database.trials() == [trial("1")]


def test_a_newer_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    with Database(path) as database:
        database.add_trial(WORKLOAD, SCHEDULE, trial("1"))
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.commit()
    connection.close()
    with pytest.raises(DatabaseError, match="upgrade tcl-iree"):
        Database(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "places.sqlite")
    other.execute("CREATE TABLE places (name TEXT)")
    other.commit()
    other.close()
    before = (tmp_path / "places.sqlite").read_bytes()
    with pytest.raises(DatabaseError, match="not a tcl-iree database"):
        Database(tmp_path / "places.sqlite")
    assert (tmp_path / "places.sqlite").read_bytes() == before
    path = tmp_path / "x.db"
    path.write_bytes(b"hello" * 1000)
    with pytest.raises(DatabaseError, match="not a tcl-iree database"):
        Database(path)
    with pytest.raises(DatabaseError, match="no database at"):
        Database(tmp_path / "missing.db", create=False)
    with Database(tmp_path / "a.db") as database:
        for name in ("missing.parquet", "x.db"):
            with pytest.raises(DatabaseError, match=r"no file at|not a readable Parquet"):
                import_parquet(database, tmp_path / name)


WRITER = """
import sys, itertools
sys.path[:0] = sys.argv[3].split(":")
from test_database import WORKLOAD, SCHEDULE, trial
from tcl_iree.database import Database
with Database(sys.argv[1]) as database:
    for number in itertools.count():
        uid = f"{sys.argv[2]}-{number}"
        database.add_trial(WORKLOAD, SCHEDULE, trial(uid))
        print(uid, flush=True)
        if number >= int(sys.argv[4]):
            break
"""


def writing(path: Path, name: str, count: int) -> list[str]:
    here = Path(__file__).parent
    return [sys.executable, "-c", WRITER, str(path), name, f"{here}:{here.parent}", str(count)]


def writer(path: Path, name: str, count: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(writing(path, name, count), stdout=subprocess.PIPE, text=True)


def test_two_processes_write_one_database(tmp_path: Path) -> None:
    processes = [writer(tmp_path / "a.db", name, 200) for name in ("x", "y")]
    reported = [line.strip() for process in processes for line in process.communicate()[0].splitlines()]
    assert all(process.returncode == 0 for process in processes)
    with Database(tmp_path / "a.db") as database:
        assert sorted(reported) == sorted(row.uid for row in database.trials())
    assert len(reported) == 402


def test_many_open_a_new_database_at_once(tmp_path: Path) -> None:
    together = threading.Barrier(8)

    def opened(path: Path) -> int:
        together.wait()
        with Database(path) as database:
            return len(database.trials())

    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            assert list(pool.map(opened, [tmp_path / f"{number}.db"] * 8)) == [0] * 8


def test_nothing_reported_is_lost_under_sigkill(tmp_path: Path) -> None:
    path, reported = tmp_path / "a.db", set()
    pause = random.Random(0)
    for round_number in range(50):
        process = writer(path, str(round_number), 10**9)
        assert process.stdout
        lines: list[str] = []
        reader = threading.Thread(target=lambda out=process.stdout, into=lines: into.extend(out))
        reader.start()
        assert wait_for(lambda lines=lines: lines, seconds=60), "the writer has written nothing"
        time.sleep(pause.random() * 0.05)
        process.kill()
        process.wait()
        reader.join()
        reported |= {line.strip() for line in lines if line.endswith("\n")}
    with Database(path) as database:
        kept = database.trials()
        assert database._select("PRAGMA integrity_check") == [("ok",)]
    assert reported <= {row.uid for row in kept}
    assert all(row == trial(row.uid) for row in kept), "a half-written record"
    assert len(reported) >= 50


def test_a_full_disk_is_one_clear_error_and_keeps_what_was_reported(tmp_path: Path) -> None:
    small = tmp_path / "small"
    done = on_small_disk(small, "600k", writing(small / "a.db", "x", 10**9))
    assert done.returncode != 0
    assert "no space left" in done.stderr.splitlines()[-1]
    reported = done.stdout.split()
    assert reported
    with Database(tmp_path / "small.after" / "a.db") as database:
        assert set(reported) <= {row.uid for row in database.trials()}
