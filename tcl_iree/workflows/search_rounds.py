"""The rounds of a search over all workloads of a model."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from tcl_iree.report.progress import Step
from tcl_iree.search import TaskScheduler
from tcl_iree.workflows.tune_options import TuneOptions
from tcl_iree.workflows.workload_search import WorkloadSearch

# Schedules that a strategy is asked for at a time: few enough that even a quick search has several rounds to learn from
# and to give to those with most to gain.
BATCH, _LEAST_BATCH, _ROUNDS = 16, 8, 4
INTERRUPTED = "the search was interrupted"
# A round of sixteen that is thought to save less than this share of the model's time is not worth taking.
_ENOUGH = 5e-4
# A workload with much to gain may get so many times its share of the trials.
_MOST = 4


def search_rounds(searches: Sequence[WorkloadSearch], options: TuneOptions, say: Step, spent: float = 0.0) -> list[str]:
    """Try `options.budget` schedules a workload, more of those with more to gain; an interrupt ends it.

    Random search, the yardstick, gives every workload its equal share.

    Args:
        spent: seconds of the time limit that are over already.

    Returns:
        What the user should know of how it ended.
    """
    equal = options.strategy == "random"
    most = options.budget * (1 if equal else _MOST)
    # Every trial times the default again; what that changes is no gain.
    defaults = [search.default_seconds for search in searches]
    # What this search has found, and not what the database knows: run again, it goes the same way until there is news.
    tasks = [
        (search.dispatch.occurrences, taken / max(1.0, search.found_ratio()))
        for search, taken in zip(searches, defaults, strict=True)
    ]
    batch = min(BATCH, max(_LEAST_BATCH, options.budget // _ROUNDS))
    scheduler = TaskScheduler(tasks, 0.0 if equal else _ENOUGH * batch / BATCH)
    deadline = time.monotonic() + (math.inf if options.time_limit is None else options.time_limit - spent)
    left = options.budget * len(searches)
    say("searching", total=left)
    try:
        while left > 0 and (position := scheduler.next()) is not None:
            search = searches[position]
            best = search.found_ratio()
            for trial in search.step(min(batch, options.budget, left, most - search.asked)):
                best = max(best, trial.ratio or 0.0)
                ends = deadline - time.monotonic()
                within = "" if options.time_limit is None else f", at most {max(0.0, ends):.0f} s more"
                say(f"{search.dispatch.workload.label}: best {best:.2f}x of the default{within}", 1)
                left -= 1
                if ends < 0:
                    return [f"the search was ended by its time limit of {options.time_limit:g} s"]
            more = not search.exhausted and search.asked < most
            scheduler.tell(position, defaults[position] / best if best else None, more)
    except KeyboardInterrupt:
        say("finishing with what was found; interrupt again to stop at once")
        return [INTERRUPTED]
    if left > 0 and scheduler.next() is None and any(task.open for task in scheduler.tasks):
        return [f"the search ended {left} trials early: no workload is thought to gain from more"]
    return []
