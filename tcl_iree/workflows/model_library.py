"""A library of whatever can be in one: schedules that cannot are named, not fatal."""

from __future__ import annotations

from collections.abc import Sequence

from tcl_iree.errors import LibraryError
from tcl_iree.target import Target
from tcl_iree.transform_dialect.library import Library, Tuned, merge
from tcl_iree.workflows.base_flags import Base, stack_limit


def build_library(target: Target, base: Base, parts: Sequence[Tuned]) -> tuple[Library, dict[str, str]]:
    """The schedules in one library, less those whose dispatch cannot be told from others.

    Returns:
        The library, and what is wrong with each workload that is not in it, by key.
    """

    def build(chosen: Sequence[Tuned]) -> Library:
        return Library.build(target, chosen, base.flag_set.flags, stack_limit(target), base.graph)

    try:
        return build(parts), {}
    except LibraryError:
        fitting, problems = [build([])], {}
        for part in parts:
            try:
                fitting.append(build([part]))
            except LibraryError as error:
                problems[part.workload.key] = f"not used: {error}"
        return merge(fitting)[0], problems
