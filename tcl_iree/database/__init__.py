"""One SQLite file that holds workloads, schedules and every trial, failures included."""

from tcl_iree.database.parquet import export_parquet, import_parquet
from tcl_iree.database.records import Schedule, Trial, WorkloadRecord
from tcl_iree.database.store import Database

__all__ = ["Database", "Schedule", "Trial", "WorkloadRecord", "export_parquet", "import_parquet"]
