"""A schedule: a family's name and its decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# What a decision can be: a number, a flag, a word, or numbers one per loop.
Value = int | bool | str | tuple[int, ...]

DEFAULT_FAMILY = "default"


@dataclass(frozen=True)
class Schedule:
    """One way to compile a workload; a value, equal to any other with the same decisions.

    Attributes:
        family: name of the family that can build it.
        decisions: pairs of name and value, by name.
    """

    family: str
    decisions: tuple[tuple[str, Value], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "decisions", tuple(sorted(self.decisions)))

    @staticmethod
    def of(family: str, **decisions: Value) -> Schedule:
        """A schedule from keywords."""
        return Schedule(family, tuple(decisions.items()))

    @staticmethod
    def from_plain(family: str, decisions: Mapping[str, Any]) -> Schedule:
        """A schedule from plain data, such as JSON, where tuples are lists."""
        pairs = ((name, tuple(value) if isinstance(value, list) else value) for name, value in decisions.items())
        return Schedule(family, tuple(pairs))

    @property
    def plain(self) -> dict[str, Any]:
        """The decisions as plain data, ready for JSON."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in self.decisions}

    def __getitem__(self, name: str) -> Any:
        return dict(self.decisions)[name]

    @property
    def words(self) -> dict[str, str]:
        """The decisions as people read them."""
        return {name: _word(value) for name, value in self.decisions}

    def __str__(self) -> str:
        return " ".join([self.family, *(f"{name}={word}" for name, word in self.words.items())])


def _word(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
