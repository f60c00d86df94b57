"""A live table of dispatches while a model is tuned; silence where there is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tcl_iree.report.progress import Step, bar, silent, stepper
from tcl_iree.report.tables import error_console, seconds, table

# Lines of the terminal that are not rows: title, head, what is left out, the whole model, the bar, the prompt.
_OTHER_LINES = 7


@dataclass(frozen=True)
class Standing:
    """How the search of one dispatch stands.

    Attributes:
        occurrences: how often one inference runs it.
        default_seconds: time of IREE's default.
        best: default's time over that of the fastest so far; None if nothing worked yet.
        trials: schedules tried so far, earlier runs included.
    """

    label: str
    occurrences: int
    default_seconds: float
    best: float | None
    trials: int

    @property
    def before(self) -> float:
        """Seconds of one inference by default."""
        return self.occurrences * self.default_seconds

    @property
    def after(self) -> float:
        """Seconds of one inference with the faster of the default and the best so far."""
        return self.before / max(1.0, self.best or 0.0)


# Told how all dispatches stand, heaviest first, each time that changes.
Show = Callable[[Sequence[Standing]], None]


def unseen(standings: Sequence[Standing]) -> None:
    """A `Show` that shows nothing."""


@contextmanager
def live_tuning(text: str) -> Iterator[tuple[Step, Show]]:
    """What to tell of a tuning run as it goes on: a table of its dispatches and a bar of its phase."""
    console = error_console()
    if not console.is_terminal:
        yield silent, unseen
        return
    phase = bar(console)
    last: Sequence[Standing] = ()

    def show(standings: Sequence[Standing]) -> None:
        nonlocal last
        last = standings

    def view() -> RenderableType:
        most = max(3, console.height - _OTHER_LINES)
        return Group(standing_table(last, most), Text(), phase) if last else phase

    with Live(console=console, transient=True, get_renderable=view):
        yield stepper(phase, phase.add_task(text, total=1)), show


def standing_table(standings: Sequence[Standing], most: int) -> Table:
    """The heaviest dispatches, and what all of them together come to."""
    before, after = (sum(getattr(entry, name) for entry in standings) for name in ("before", "after"))
    rows = [
        [
            entry.label,
            f"{100 * entry.before / (before or 1.0):.1f} %",
            seconds(entry.default_seconds),
            seconds(entry.default_seconds / entry.best) if entry.best else "-",
            f"{entry.best:.2f}x" if entry.best else "-",
            str(entry.trials),
        ]
        for entry in standings[:most]
    ]
    if len(standings) > most:
        rows.append([f"{len(standings) - most} more", *[""] * 5])
    speed = f"{before / after:.2f}x" if after else "-"
    rows.append(["all dispatches of one inference", "", seconds(before), seconds(after), speed, ""])
    names = ["dispatch", "share", "default", "best", "speed-up", "trials"]
    return table("", names, rows, numeric=range(1, 6))
