"""One SQLite file that holds workloads, schedules and every trial, failures included."""

from tcl_iree.database.location import default_database
from tcl_iree.database.parquet import export_parquet, import_parquet, trial_uids
from tcl_iree.database.records import UNMEASURED, ScheduleRecord, Trial, WorkloadRecord, usual_default
from tcl_iree.database.store import Database

__all__ = [
    "UNMEASURED",
    "Database",
    "ScheduleRecord",
    "Trial",
    "WorkloadRecord",
    "default_database",
    "export_parquet",
    "import_parquet",
    "trial_uids",
    "usual_default",
]
