"""What a report tells of each dispatch beyond its figures: how its search went, its script, IREE's own way."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from tcl_iree.errors import LibraryError
from tcl_iree.report.history import DispatchHistory, TriedSchedule
from tcl_iree.transform_dialect.configured import default_configurations
from tcl_iree.transform_dialect.library import Library
from tcl_iree.workload.model import Workload

_log = logging.getLogger(__name__)


def dispatch_histories(
    workloads: Sequence[Workload],
    library: Library,
    tried: Mapping[str, tuple[TriedSchedule, ...]] | None = None,
) -> tuple[DispatchHistory, ...]:
    """The histories of workloads for which something was tried or chosen, in order.

    Args:
        library: what was chosen.
        tried: the trials of each workload's search, by key.
    """
    scripts = {entry.key: entry.script for entry in library.entries}
    tried = tried or {}
    told = [load for load in workloads if load.key in scripts or tried.get(load.key)]
    defaults = _defaults([load for load in told if load.key in scripts], library)
    return tuple(
        DispatchHistory(load.key, tried.get(load.key, ()), scripts.get(load.key), defaults.get(load.key, ""))
        for load in told
    )


def _defaults(workloads: Sequence[Workload], library: Library) -> dict[str, str]:
    """How IREE configures workloads by itself, by key; nothing if it does not say, which must not cost the report."""
    header = library.header
    flags = header.compile_flags[len(header.target.compile_flags) :]
    try:
        found = default_configurations(workloads, header.target, flags)
    except LibraryError as error:
        _log.warning("the report is without IREE's own configurations: %s", error)
        return {}
    return {load.key: text for load, text in zip(workloads, found, strict=True)}
