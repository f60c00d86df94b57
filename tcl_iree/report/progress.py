"""Progress on standard error: a live bar on a terminal, silence elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from tcl_iree.report.tables import error_console


class Step(Protocol):
    """Called as work goes on."""

    def __call__(self, text: str, advance: int = 0, total: int | None = None) -> None:
        """Say what is going on, and how many steps were finished; `total` starts a phase of so many steps."""


def silent(text: str, advance: int = 0, total: int | None = None) -> None:
    """A `Step` that says nothing."""


@contextmanager
def progress(total: int, text: str) -> Iterator[Step]:
    """A bar over `total` steps."""
    with bar(error_console()) as shown:
        yield stepper(shown, shown.add_task(text, total=total))


def bar(console: Console) -> Progress:
    """A bar with what is going on, steps done, and the time taken and left."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def stepper(shown: Progress, task: TaskID) -> Step:
    """A `Step` that moves one task of a bar."""

    def step(text: str, advance: int = 0, total: int | None = None) -> None:
        if total is not None:
            shown.reset(task, total=total)
        shown.update(task, description=text, advance=advance)

    return step
