"""Under which of IREE's flags to tune: they decide which dispatches there are."""

from __future__ import annotations

from dataclasses import dataclass

from tcl_iree.errors import ModelError
from tcl_iree.report.bench import BenchReport, BenchRow
from tcl_iree.target import Target
from tcl_iree.transform_dialect.cpu_limits import STACK_FLAG, STACK_LIMIT_BYTES
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.workflows.flag_sets import PLAIN, FlagSet, flag_sets

# Schedules do not touch data-tiled dispatches, and without data tiling microkernels are not used.
_UNTUNABLE = ("data-tiling", "ukernels", "stack")
# Convolutions as matrix products are worth most, and harm nothing that has none.
_USUAL = "O2+im2col"
# Other flags than none must pay by more than the noise between two runs.
_WORTH = 1.05


@dataclass(frozen=True)
class Base:
    """The flags a model's dispatches are formed under, and why these.

    Attributes:
        layouts: the graph schedule they are formed under as well, if any; `graph` is its script.
    """

    flag_set: FlagSet
    reason: str
    layouts: Schedule | None = None
    graph: str = ""

    @property
    def name(self) -> str:
        """The flag set's name, with the layouts."""
        return f"{self.flag_set.name} with {self.layouts}" if self.layouts else self.flag_set.name


def choose_base(wanted: str, target: Target, report: BenchReport | None) -> Base:
    """The base flags.

    Args:
        wanted: `auto`, the name of a flag set (`plain`, `im2col`, `O3+im2col`, ...), or flags as on a command line.
        report: the flag sets as measured on the whole model; `auto` takes the fastest that leaves dispatches to tune.

    Raises:
        ModelError: no such flag set.
    """
    if wanted == "auto":
        return _fastest(report) if report else _usual(target)
    if wanted.startswith("-"):
        return Base(FlagSet("given", tuple(wanted.split())), "as asked for")
    names = {flag_set.name: flag_set for flag_set in flag_sets(target, "all")}
    if wanted not in names:
        raise ModelError(
            f"no flag set {wanted!r} to tune under; give auto, flags that start with -, or one of {', '.join(names)}"
        )
    return Base(names[wanted], "as asked for")


def _usual(target: Target) -> Base:
    """What is fastest most often, for when nothing is measured."""
    if target.kind != "cpu":
        return Base(PLAIN, "nothing was measured to choose by")
    usual = next(flag_set for flag_set in flag_sets(target, "all") if flag_set.name == _USUAL)
    return Base(usual, "nothing was measured to choose by; this is fastest most often")


def with_stack(base: FlagSet, target: Target) -> FlagSet:
    """What every candidate and the default are compiled with: on a CPU with room for buffers, im2col+stack64k."""
    if target.kind != "cpu":
        return base
    return FlagSet(f"{base.name}+stack{STACK_LIMIT_BYTES >> 10}k", (*base.flags, STACK_FLAG))


def stack_limit(target: Target) -> int:
    """Bytes of stack that a dispatch may ask for; 0 where there is no such limit."""
    return STACK_LIMIT_BYTES if target.kind == "cpu" else 0


def _fastest(report: BenchReport) -> Base:
    rows = [row for row in report.rows if row.median and not row.same_as and _tunable(row)]
    plain = next((row for row in rows if row.name == PLAIN.name), None)
    best = min(rows, key=lambda row: row.median or 0.0, default=None)
    if best is None:
        return Base(PLAIN, "no flag set whose dispatches can be tuned gave a time")
    if plain and best is not plain and (plain.median or 0.0) < _WORTH * (best.median or 0.0):
        return Base(PLAIN, f"{best.name} is less than {100 * (_WORTH - 1):.0f} % faster")
    gain = f", {(plain.median or 0.0) / (best.median or 1.0):.2f}x of plain" if plain and best is not plain else ""
    return Base(FlagSet(best.name, best.flags), f"the fastest flag set whose dispatches can be tuned{gain}")


def _tunable(row: BenchRow) -> bool:
    return not any(word in flag for word in _UNTUNABLE for flag in row.flags)
