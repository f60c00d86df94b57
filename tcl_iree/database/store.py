"""The database file: one writer, any number of readers, nothing lost once `add_trial` has returned."""

from __future__ import annotations

import errno
import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from pathlib import Path
from types import TracebackType

from tcl_iree.database.records import ScheduleRecord, Trial, WorkloadRecord
from tcl_iree.database.schema import check_ours, migrate, schema_version
from tcl_iree.errors import DatabaseError

_COLUMNS = tuple(field.name for field in fields(Trial))
_BOOLEANS = [index for index, name in enumerate(_COLUMNS) if name in ("calm", "stopped_early", "measured")]
_BUSY_SECONDS = 60.0
_RETRY_SECONDS = 0.02


class Database:
    """Workloads, schedules and trials in one SQLite file (write-ahead log).

    Args:
        path: the file; made if it is missing, unless `create` is False.
    """

    def __init__(self, path: str | Path, create: bool = True) -> None:
        self.path = Path(path)
        if not create and not self.path.exists():
            raise DatabaseError(f"no database at {self.path}; measure something first or check the path")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = _opened(self.path)
        except (sqlite3.Error, OSError) as error:
            raise _clear(error, self.path) from None

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything inside is written together or not at all."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise _clear(error, self.path) from None

    def add_trial(self, workload: WorkloadRecord, schedule: ScheduleRecord, trial: Trial) -> None:
        """Record one trial with its workload and schedule. On return it is on disk."""
        if (trial.workload, trial.schedule) != (workload.key, schedule.sha):
            raise ValueError("the trial belongs to another workload or schedule")
        with self.transaction():
            self.put_workloads([workload])
            self.put_schedules([schedule])
            if self.put_trials([trial]) != 1:
                raise DatabaseError(f"trial {trial.uid} is in {self.path} already")

    def put_workloads(self, rows: Sequence[WorkloadRecord]) -> None:
        """Insert workloads that are not there yet; call inside `transaction`."""
        self._connection.executemany(
            "INSERT INTO workloads VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", [astuple(row) for row in rows]
        )

    def put_schedules(self, rows: Sequence[ScheduleRecord]) -> None:
        """Insert schedules that are not there yet; call inside `transaction`."""
        values = [(row.sha, row.family, row.decisions_json, row.script, row.entry) for row in rows]
        self._connection.executemany("INSERT INTO schedules VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", values)

    def put_trials(self, rows: Sequence[Trial]) -> int:
        """Insert trials that are not there yet and return how many were new; call inside `transaction`."""
        places = ", ".join("?" * len(_COLUMNS))
        before = self._connection.total_changes
        self._connection.executemany(
            f"INSERT INTO trials ({', '.join(_COLUMNS)}) VALUES ({places}) ON CONFLICT DO NOTHING",
            [astuple(row) for row in rows],
        )
        return self._connection.total_changes - before

    def workloads(self) -> list[WorkloadRecord]:
        """All workloads."""
        rows = self._select("SELECT key, label, payload, flops, bytes FROM workloads ORDER BY key")
        return [WorkloadRecord(*row) for row in rows]

    def schedules(self) -> dict[str, ScheduleRecord]:
        """All schedules by their hash."""
        rows = self._select("SELECT sha, family, decisions, script, entry FROM schedules")
        return {
            sha: ScheduleRecord(family, json.loads(text), script, entry) for sha, family, text, script, entry in rows
        }

    def trials(
        self,
        workload: str | None = None,
        target: str | None = None,
        iree: str | None = None,
        flags: str | None = None,
        schedule: str | None = None,
        artifact: str | None = None,
    ) -> list[Trial]:
        """Trials that match everything given, oldest first."""
        wanted = {
            "workload": workload, "target": target, "iree": iree, "flags": flags, "schedule": schedule,
            "artifact": artifact,
        }  # fmt: skip
        given = {name: value for name, value in wanted.items() if value is not None}
        where = " AND ".join(f"{name} = ?" for name in given) or "1"
        rows = self._select(
            f"SELECT {', '.join(_COLUMNS)} FROM trials WHERE {where} ORDER BY created, uid",
            tuple(given.values()),
        )
        return [_trial(row) for row in rows]

    def merge(self, other: Database) -> int:
        """Take over everything another database has that this one lacks; returns how many trials were new."""
        trials = other.trials()  # before what they refer to: another process may be writing
        workloads, schedules = other.workloads(), list(other.schedules().values())
        with self.transaction():
            self.put_workloads(workloads)
            self.put_schedules(schedules)
            return self.put_trials(trials)

    def info(self) -> dict[str, object]:
        """Counts for people: schema, workloads, schedules, trials by group and status."""
        groups = self._select(
            "SELECT spec, target, iree, flags, status, COUNT(*), COUNT(DISTINCT workload), SUM(build_seconds),"
            " SUM(run_seconds) FROM trials GROUP BY spec, target, iree, flags, status ORDER BY 1, 2, 3, 4, 5"
        )
        names = (
            "spec",
            "target",
            "iree",
            "flags",
            "status",
            "trials",
            "workloads",
            "build_seconds",
            "run_seconds",
        )
        return {
            "path": str(self.path),
            "schema": schema_version(self._connection),
            "workloads": self._count("workloads"),
            "schedules": self._count("schedules"),
            "trials": self._count("trials"),
            "groups": [dict(zip(names, row, strict=True)) for row in groups],
        }

    def _count(self, table: str) -> int:
        return int(self._select(f"SELECT COUNT(*) FROM {table}")[0][0])

    def _select(self, query: str, values: tuple[object, ...] = ()) -> list[tuple]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise _clear(error, self.path) from None


def _opened(path: Path) -> sqlite3.Connection:
    """A connection to a file of the current schema.

    SQLite answers "locked" at once, without its usual waiting, when two processes switch a new file to the
    write-ahead log together; so the waiting is done here.
    """
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            check_ours(connection, str(path))
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            migrate(connection)
            return connection
        except BaseException as error:
            connection.close()
            locked = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
            if not locked or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_SECONDS)


def _trial(row: tuple) -> Trial:
    values = list(row)
    for index in _BOOLEANS:
        values[index] = None if values[index] is None else bool(values[index])
    return Trial(*values)


def _clear(error: Exception, path: Path) -> DatabaseError:
    text = str(error)
    if "is full" in text or getattr(error, "errno", None) == errno.ENOSPC:
        return DatabaseError(f"no space left to write {path}; free some and run again: everything reported is kept")
    if "not a database" in text or "malformed" in text:
        return DatabaseError(
            f"{path} is not a tcl-iree database, or is damaged ({text}); restore it or name another file"
        )
    if "locked" in text:
        return DatabaseError(
            f"another process holds {path} for longer than {_BUSY_SECONDS:g} s; wait for it or stop it"
        )
    return DatabaseError(f"cannot use the database {path}: {text}")
