"""What `benchmarks.versus_tvm` says of one op: latency at equal wall-clock time, and time to equal latency."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.curve import Curve

# The other's figure over ours: more than 1 where we are ahead.
RATIOS = ("latency_at_end", "latency_at_equal_time", "time_to_equal_latency")


def compared(ours: Curve, theirs: Curve) -> dict[str, Any]:
    """Our tuning beside theirs.

    - `latency_at_end`: their final latency over ours;
    - `latency_at_equal_time`: their final latency over the best that we knew when they were done;
    - `time_to_equal_latency`: when they first had their final latency over when we first had one as good; if we never
      had, over our whole search.

    Args:
        ours, theirs: in seconds since each began, and in latencies that were timed side by side.
    """
    done, then = theirs.seconds[-1], ours.after_seconds(theirs.seconds[-1])
    first = theirs.reach(theirs.final, len(theirs.seconds)).seconds
    equal = ours.reach(theirs.final, len(ours.seconds))
    return {
        "our_latency": ours.final,
        "our_latency_then": then,
        "our_seconds_to_equal": equal.seconds,
        "reached": equal.reached,
        "their_latency": theirs.final,
        "their_seconds": done,
        "their_seconds_to_it": first,
        "latency_at_end": theirs.final / ours.final,
        "latency_at_equal_time": theirs.final / then,
        "time_to_equal_latency": first / equal.seconds,
    }


def means(entries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Geometric means of the ratios, and of how many ops."""
    held = list(entries)
    found: dict[str, Any] = {name: statistics.geometric_mean([entry[name] for entry in held]) for name in RATIOS}
    return found | {"ops": len(held), "reached": sum(entry["reached"] for entry in held)}


def losses(entries: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, float]]:
    """Ops and figures where we are behind."""
    return [(op, name, entry[name]) for op, entry in entries.items() for name in RATIOS if entry[name] < 1.0]
