"""Share a database as one Parquet file: one row a trial, with its workload and schedule."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tcl_iree.database.records import ScheduleRecord, Trial, WorkloadRecord
from tcl_iree.database.store import Database
from tcl_iree.errors import DatabaseError

FORMAT = b"tcl-iree-trials"
FORMAT_VERSION = 1

_TYPES = {"str": pa.string(), "float": pa.float64(), "bool": pa.bool_(), "int": pa.int64()}
_WORKLOAD = tuple(field.name for field in fields(WorkloadRecord) if field.name != "key")
_SCHEDULE = ("family", "decisions", "script", "entry")


def export_parquet(database: Database, path: Path, trials: Sequence[Trial] | None = None) -> int:
    """Write trials, all unless some are given; the file appears whole or not at all. Returns the number of rows."""
    chosen = database.trials() if trials is None else trials
    workloads = {row.key: row for row in database.workloads()}  # after the trials: another process may be measuring
    schedules = database.schedules()
    rows = []
    for trial in chosen:
        workload, schedule = workloads[trial.workload], schedules[trial.schedule]
        row = asdict(trial) | {f"workload_{name}": getattr(workload, name) for name in _WORKLOAD}
        row |= {"family": schedule.family, "decisions": schedule.decisions_json}
        rows.append(row | {"script": schedule.script, "entry": schedule.entry})
    table = pa.Table.from_pylist(rows, schema=_schema())
    _write_whole(table, path)
    return len(rows)


def import_parquet(database: Database, path: Path) -> int:
    """Take over the trials of a file; returns how many were new.

    Raises:
        DatabaseError: the file is missing, no Parquet file, or not one of ours.
    """
    if not path.exists():
        raise DatabaseError(f"no file at {path}")
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise DatabaseError(f"{path} is not a readable Parquet file: {error}") from None
    version = json.loads((table.schema.metadata or {}).get(FORMAT, b"0"))
    if not 1 <= version <= FORMAT_VERSION:
        raise DatabaseError(f"{path} is no tcl-iree export (or of a newer version); make one with `tcl-iree db export`")
    rows = table.to_pylist()
    # Files written before a column existed lack it.
    names = tuple(field.name for field in fields(Trial) if field.name in table.schema.names)
    workloads = {
        row["workload"]: WorkloadRecord(row["workload"], *(row[f"workload_{name}"] for name in _WORKLOAD))
        for row in rows
    }
    schedules = [
        ScheduleRecord(row["family"], json.loads(row["decisions"]), row["script"], row["entry"]) for row in rows
    ]
    with database.transaction():
        database.put_workloads(list(workloads.values()))
        database.put_schedules(schedules)
        return database.put_trials([Trial(**{name: row[name] for name in names}) for row in rows])


def trial_uids(path: Path) -> list[str]:
    """The identifiers of the trials in a file.

    Raises:
        DatabaseError: it is no Parquet file of trials.
    """
    try:
        return pq.read_table(path, columns=["uid"])["uid"].to_pylist()
    except (pa.ArrowException, OSError, KeyError) as error:
        raise DatabaseError(f"{path} is not a readable Parquet file of trials: {error}") from None


def _schema() -> pa.Schema:
    columns = [(field.name, _TYPES[str(field.type).partition(" ")[0]]) for field in fields(Trial)]
    columns += [(f"workload_{name}", pa.int64() if name in ("flops", "bytes") else pa.string()) for name in _WORKLOAD]
    columns += [(name, pa.string()) for name in _SCHEDULE]
    return pa.schema(columns, metadata={FORMAT: str(FORMAT_VERSION)})


def _write_whole(table: pa.Table, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        os.close(descriptor)
        try:
            pq.write_table(table, name, compression="zstd")
            os.replace(name, path)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise DatabaseError(f"cannot write {path}: {error.strerror or error}") from None
