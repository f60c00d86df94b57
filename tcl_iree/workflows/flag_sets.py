"""IREE's own ways to go faster: the flag sets every tuned result is compared with.

"IREE's best flags" anywhere in this project is the fastest of these.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from tcl_iree.target import Target
from tcl_iree.transform_dialect.cpu_limits import stack_flag

_IM2COL = "--iree-global-opt-use-im2col-for-convs"
_DATA_TILING = "--iree-opt-data-tiling"
_STACK = stack_flag(128 << 10)


@dataclass(frozen=True)
class FlagSet:
    """A named set of compile flags."""

    name: str
    flags: tuple[str, ...]


PLAIN = FlagSet("plain", ())


def flag_sets(target: Target, scope: str = "standard") -> tuple[FlagSet, ...]:
    """The flag sets for a target.

    Args:
        scope: `quick` (each flag alone), `standard` (opt level x data tiling x im2col, and microkernels on
            all of these without an opt level) or `all` (every combination).
    """
    if target.kind != "cpu":
        levels = [FlagSet(level or "plain", _level(level)) for level in ("", "O2", "O3")]
        return (*levels, FlagSet("im2col", (_IM2COL,)))
    made = {}
    for level, tiling, im2col, ukernels in itertools.product(("", "O2", "O3"), (0, 1), (0, 1), ("", "all", "none")):
        alone = bool(level) + tiling + im2col + bool(ukernels)
        if scope == "quick" and alone > 1:
            continue
        if scope == "standard" and ukernels and level:
            continue
        parts = [level, "data-tiling" * tiling, "im2col" * im2col, f"ukernels={ukernels}" if ukernels else ""]
        flags = [*_level(level), *[_DATA_TILING] * tiling, *[_IM2COL] * im2col]
        flags += [f"--iree-llvmcpu-enable-ukernels={ukernels}"] if ukernels else []
        name = "+".join(part for part in parts if part) or "plain"
        made[name] = FlagSet(name, tuple(flags))
    return tuple(made.values())


def with_larger_stack(flag_set: FlagSet) -> FlagSet:
    """The same with the stack limit IREE's message asks for; some models need it at O3."""
    return FlagSet(f"{flag_set.name}+stack128k", (*flag_set.flags, _STACK))


def _level(level: str) -> tuple[str, ...]:
    return (f"--iree-opt-level={level}",) if level else ()
