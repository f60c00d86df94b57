"""Tables, their version, and how an older file becomes a current one."""

from __future__ import annotations

import sqlite3

from tcl_iree.errors import DatabaseError

SCHEMA_VERSION = 4
APPLICATION_ID = 0x74636C49  # "tclI"

# Each entry takes a file from version i to version i + 1; the first makes an empty file.
_MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE workloads (
      key TEXT PRIMARY KEY, label TEXT NOT NULL, payload TEXT NOT NULL,
      flops INTEGER NOT NULL, bytes INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE schedules (
      sha TEXT PRIMARY KEY, family TEXT NOT NULL, decisions TEXT NOT NULL, script TEXT, entry TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE trials (
      uid TEXT PRIMARY KEY, workload TEXT NOT NULL REFERENCES workloads(key), target TEXT NOT NULL, spec TEXT NOT NULL,
      iree TEXT NOT NULL, flags TEXT NOT NULL, schedule TEXT NOT NULL REFERENCES schedules(sha),
      status TEXT NOT NULL, detail TEXT NOT NULL, artifact TEXT, reference TEXT,
      p10 REAL, p50 REAL, p90 REAL, reference_p50 REAL, ratio REAL, ratio_error REAL, calm INTEGER,
      stopped_early INTEGER, error REAL, build_seconds REAL NOT NULL, run_seconds REAL NOT NULL, created REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX trials_by_group ON trials (workload, target, iree, flags, schedule);
    """,
    """
    ALTER TABLE trials ADD COLUMN measured INTEGER NOT NULL DEFAULT 1;
    CREATE INDEX trials_by_artifact ON trials (workload, target, artifact);
    """,
    """
    ALTER TABLE trials ADD COLUMN static TEXT;
    """,
    """
    ALTER TABLE trials ADD COLUMN hardware TEXT;
    ALTER TABLE trials ADD COLUMN origin TEXT NOT NULL DEFAULT '';
    """,
)
assert len(_MIGRATIONS) == SCHEMA_VERSION


def check_ours(connection: sqlite3.Connection, path: str) -> None:
    """Refuse files that are not this project's, before anything is written to them.

    Raises:
        DatabaseError: another program's file, or one written by a newer version of this project.
    """
    tables = int(connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0])
    version, owner = schema_version(connection), int(connection.execute("PRAGMA application_id").fetchone()[0])
    if tables and owner != APPLICATION_ID:
        raise DatabaseError(f"{path} is not a tcl-iree database; name another file")
    if version > SCHEMA_VERSION:
        raise DatabaseError(
            f"{path} has schema {version}, this tcl-iree knows up to {SCHEMA_VERSION}; upgrade tcl-iree to read it"
        )


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file to the current schema, in one transaction per step."""
    version = schema_version(connection)
    while version < SCHEMA_VERSION:
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = schema_version(connection)  # another process may have been faster
            if version < SCHEMA_VERSION:
                for statement in _MIGRATIONS[version].split(";"):
                    connection.execute(statement)
                version += 1
                connection.execute(f"PRAGMA user_version = {version}")
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def schema_version(connection: sqlite3.Connection) -> int:
    """The version a file says it has; 0 for an empty one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
