"""Which sizes a decision offers."""

from __future__ import annotations

_MOST_WORKGROUPS = 64


def divisors(number: int) -> list[int]:
    """All divisors, ascending."""
    return [candidate for candidate in range(1, number + 1) if number % candidate == 0]


def largest_divisor(number: int, most: int) -> int:
    """The largest divisor that is not more than `most`; asks for no more than it must, which traced numbers count."""
    return next(size for size in range(most, 0, -1) if number % size == 0)


def power_below(number: int) -> int:
    """The largest power of two that is not more."""
    return 1 << (number.bit_length() - 1)


def spread(values: list[int], count: int) -> tuple[int, ...]:
    """At most `count` of the values, evenly spaced by rank, both ends kept."""
    if len(values) <= count:
        return tuple(values)
    step = (len(values) - 1) / (count - 1)
    return tuple(sorted({values[round(index * step)] for index in range(count)}))


def workgroup_tiles(sizes: list[int], loops: range | tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Ways to distribute: one of the loops in up to 64 equal parts; one workgroup for all is the first.

    Each is a tile size for every loop, 0 for those left whole.
    """
    first = max(loops, key=lambda loop: sizes[loop])
    found = [(first, sizes[first])]
    for loop in loops:
        parts = [count for count in divisors(sizes[loop]) if 1 < count <= _MOST_WORKGROUPS or 1 < count == sizes[loop]]
        found += [(loop, sizes[loop] // count) for count in spread(parts, 7)]
    return tuple(tuple(tile if loop == at else 0 for loop in range(len(sizes))) for at, tile in found)
