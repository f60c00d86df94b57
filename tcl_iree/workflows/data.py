"""Measured programs from wherever they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType

from tcl_iree.database import Database, import_parquet
from tcl_iree.errors import DatabaseError
from tcl_iree.learning.groups import Group, load_groups
from tcl_iree.processes import scratch_directory


class Programs(AbstractContextManager["Programs"]):
    """Trials of several files as one database.

    Args:
        sources: databases, Parquet files, or directories of Parquet files.

    Raises:
        DatabaseError: one is missing or of another kind.
    """

    def __init__(self, sources: Sequence[Path]) -> None:
        self._stack = ExitStack()
        with ExitStack() as stack:
            scratch = stack.enter_context(scratch_directory("data"))
            self.database = stack.enter_context(Database(Path(scratch) / "programs.db"))
            for source in sources:
                _take(self.database, source)
            self._stack = stack.pop_all()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def groups(self, platform: str | None = None) -> list[Group]:
        """What there is to learn from, of one platform if it is given: a target's key or the beginning of it."""
        return load_groups(self.database, platform or "")


def _take(database: Database, source: Path) -> None:
    if source.is_dir():
        files = sorted(source.glob("*.parquet"))
        if not files:
            raise DatabaseError(f"{source} has no .parquet files; collect some with `tcl-iree collect -o {source}`")
        for file in files:
            import_parquet(database, file)
    elif source.suffix == ".parquet":
        import_parquet(database, source)
    else:
        with Database(source, create=False) as other:
            database.merge(other)
