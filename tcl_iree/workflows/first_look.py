"""A first look at the ways a model's dispatches can form: the same computations, a few schedules each, side by side.

The forms of a model differ in layouts, not in what is computed. So what one form makes of a convolution is put beside
what another makes of the same one, measured right after it; that says more than sums over whatever each form had time
for. Those with most time come first, in the form whose default is the fastest: some defaults are far too slow. Each is
looked at in all forms or in none.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from math import prod

from tcl_iree.report.progress import Step
from tcl_iree.workflows.workload_search import WorkloadSearch
from tcl_iree.workload.model import Workload

# Computations that are looked at make up so much of all.
_SHARE = 0.85


def first_look(forms: Sequence[Sequence[WorkloadSearch]], trials: int, time_limit: float | None, say: Step) -> bool:
    """Try a few schedules of the computations with most time in each form.

    Args:
        forms: the searches of each form that are worth it.
        trials: of one computation in one form.
        time_limit: seconds; a computation that was begun is looked at in all forms.

    Returns:
        Whether it was interrupted.
    """
    ends = math.inf if time_limit is None else time.monotonic() + time_limit
    groups = computations(forms)
    say("looking at layouts", total=trials * sum(map(len, groups)))
    try:
        for group in groups:
            if time.monotonic() > ends:
                break
            for search in group:
                for _ in search.step(trials):
                    say(f"a first look at {search.label}: best {search.best_ratio():.2f}x of the default", 1)
    except KeyboardInterrupt:
        return True
    return False


def computations(forms: Sequence[Sequence[WorkloadSearch]]) -> list[list[WorkloadSearch]]:
    """The searches of the same computation, one a form, those with most time first; those the forms share left out."""
    found: dict[tuple[int, int], dict[int, WorkloadSearch]] = {}
    for number, searches in enumerate(forms):
        for search in searches:
            of_form = found.setdefault(_computed(search.dispatch.workload), {})
            kept = of_form.get(number)
            if kept is None or search.dispatch.occurrences > kept.dispatch.occurrences:
                of_form[number] = search
    sizes = {
        key: min(search.default_seconds * search.dispatch.occurrences for search in of_form.values())
        for key, of_form in found.items()
        if len({search.dispatch.workload.key for search in of_form.values()}) > 1
    }
    groups, left = [], sum(sizes.values()) * _SHARE
    for key in sorted(sizes, key=lambda key: -sizes[key]):
        if left <= 0:
            break
        groups.append(list(found[key].values()))
        left -= sizes[key]
    return groups


def _computed(workload: Workload) -> tuple[int, int]:
    """What a dispatch computes whatever its layout: points of its root's loops, and of its result."""
    loops = workload.root.loops
    return prod(loop.size for loop in loops), prod(loop.size for loop in loops if loop.kind == "parallel")
