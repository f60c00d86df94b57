"""Find a workload by what users call it: the first digits of its key, its label, or its place in a model."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from tcl_iree.database import Database, WorkloadRecord
from tcl_iree.errors import DatabaseError
from tcl_iree.frontend import Extraction

_LISTED = 6


def find_workload(database: Database, wanted: str, network: Extraction | None = None) -> WorkloadRecord:
    """The one workload in the database that is meant.

    Args:
        wanted: the beginning of a key, or a label or a part of one; with a network also a place in the list that
            `tcl-iree extract` prints, from 1.
        network: look only among its dispatches.

    Raises:
        DatabaseError: there is none, or more than one.
    """
    known = {record.key: record for record in database.workloads()}
    if network:
        keys = [entry.workload.key for entry in network.dispatches]
        if wanted.isdigit() and 1 <= int(wanted) <= len(keys):
            place = network.dispatches[int(wanted) - 1].workload
            if place.key not in known:
                raise DatabaseError(f"{place.label} ({place.key}) was never measured; tune or collect {network.model}")
            return known[place.key]
        known = {key: known[key] for key in keys if key in known}
    found = _matching(list(known.values()), wanted)
    if len(found) == 1:
        return found[0]
    if found:
        raise DatabaseError(f"{len(found)} workloads are meant by {wanted!r}: {_listed(found)}; give more of the key")
    names = {name: record for record in known.values() for name in (record.label, record.key)}
    close = {names[name].key: names[name] for name in difflib.get_close_matches(wanted, names, _LISTED, 0.5)}
    hint = f"close to it: {_listed(list(close.values()))}; " if close else ""
    where = f"of {network.model} in {database.path}" if network else f"in {database.path}"
    raise DatabaseError(f"no workload {where} is called {wanted!r}; {hint}`tcl-iree explain` alone lists them")


def _matching(records: Sequence[WorkloadRecord], wanted: str) -> list[WorkloadRecord]:
    """By key, else by label, else by part of a label."""
    for fits in (
        lambda record: record.key.startswith(wanted),
        lambda record: record.label == wanted,
        lambda record: wanted in record.label,
    ):
        found = [record for record in records if fits(record)]
        if found:
            return found
    return []


def _listed(records: Sequence[WorkloadRecord]) -> str:
    more = [f"{len(records) - _LISTED} more"] if len(records) > _LISTED else []
    return ", ".join([*(f"{record.key[:12]} ({record.label})" for record in records[:_LISTED]), *more])
