"""Numbers that remember how they were computed from a schedule's decisions.

Building a script takes milliseconds; a search wants thousands of candidates ranked in that time. So a family writes one
script with traced decisions. Every number in it then carries its formula, and every comparison on the way is kept as a
condition. All schedules that meet the conditions have the same script but for its numbers, and formulas give those
for thousands of schedules at once.

    rows = Traced(decision "rows")      rows // 2         -> a number with the formula rows // 2
    if rows < 8:                        -> a condition: (rows < 8) is what it is now
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

# Characters that no script has; they enclose a traced number in text.
_OPEN, _CLOSE = MARKS = "\ue000\ue001"
_MARK = re.compile(f"{_OPEN}(\\d+){_CLOSE}")


@dataclass(frozen=True, eq=False)
class Formula:
    """How a number follows from decisions: a decision's name, or an operation on formulas and constants."""

    decision: str
    apply: Callable[..., Any] | None = None
    inputs: tuple[Any, ...] = ()


class Formulas:
    """Formulas by what they say, so that equal ones are one object."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Formula] = {}

    def decision(self, name: str) -> Formula:
        """The value of a decision."""
        return self._known.setdefault((name,), Formula(name))

    def operation(self, apply: Callable[..., Any], *inputs: Formula | int) -> Formula:
        """An operation on formulas and constants."""
        return self._known.setdefault((apply, inputs), Formula("", apply, inputs))


class Values:
    """What formulas give for many schedules, each computed once."""

    def __init__(self, decisions: Mapping[str, np.ndarray]) -> None:
        self._decisions = decisions
        self._known: dict[Formula, np.ndarray] = {}
        self._places: dict[Formula, int] = {}
        self._table = np.zeros((0, max((len(column) for column in decisions.values()), default=0)), np.int64)

    def of(self, formula: Formula) -> np.ndarray:
        """One number a schedule."""
        if formula.apply is None:
            return self._decisions[formula.decision]
        if formula in self._known:
            return self._known[formula]
        with np.errstate(divide="ignore"):  # for schedules that an earlier condition rules out
            return self._compute(formula)

    def _compute(self, formula: Formula) -> np.ndarray:
        if formula.apply is None:
            return self._decisions[formula.decision]
        found = self._known.get(formula)
        if found is None:
            given = [self._compute(entry) if isinstance(entry, Formula) else entry for entry in formula.inputs]
            found = self._known[formula] = formula.apply(*given)
        return found

    def table(self, formulas: Sequence[Formula], chosen: np.ndarray) -> np.ndarray:
        """Formula x schedule, for some of the schedules."""
        places = self._places
        new = [formula for formula in formulas if formula not in places]
        if new:
            needed = len(places) + len(new)
            if needed > len(self._table):
                grown = np.empty((2 * needed, self._table.shape[1]), np.int64)
                grown[: len(places)] = self._table[: len(places)]
                self._table = grown
            for formula in new:
                place = places.setdefault(formula, len(places))
                self._table[place] = self.of(formula)
        rows = np.array([places[formula] for formula in formulas])
        return self._table[rows[:, None], chosen]


class Trace:
    """One traced run: the conditions it met, in order and each once, with what they gave."""

    def __init__(self, formulas: Formulas) -> None:
        self.formulas = formulas
        self.conditions: dict[Formula, int | bool] = {}
        self._texts: list[Traced] = []

    def number(self, value: int, decision: str) -> int:
        """A decision's value, traced; to whoever uses it, an integer."""
        return cast(int, Traced(value, self.formulas.decision(decision), self))

    def require(self, formula: Formula, outcome: int | bool) -> None:
        """From here on, the run is that of schedules for which the formula gives `outcome`."""
        self.conditions.setdefault(formula, outcome)

    def text(self, number: Traced) -> str:
        """A mark that stands for a traced number in text."""
        self._texts.append(number)
        return f"{_OPEN}{len(self._texts) - 1}{_CLOSE}"

    def plain(self, text: str) -> str:
        """A text with numbers in place of their marks."""
        return _MARK.sub(lambda mark: str(bare(self.read(mark[0]))), text)

    def read(self, text: str) -> int:
        """The number a mark stands for, or that is written out."""
        mark = _MARK.fullmatch(text.strip())
        return cast(int, self._texts[int(mark[1])]) if mark else int(text)


def bare(number: Any) -> int:
    """The number itself, without a condition."""
    return number.value if isinstance(number, Traced) else int(number)


def formula_of(number: Any) -> Formula | None:
    """How a number follows from decisions; None for a constant."""
    return number.formula if isinstance(number, Traced) else None


def _calculated(apply: Callable[..., Any], *, swapped: bool = False) -> Callable[[Traced, Any], Any]:
    def method(self: Traced, other: Any) -> Any:
        if not isinstance(other, int | Traced):
            return NotImplemented
        pair = (other, self) if swapped else (self, other)
        formula = self.trace.formulas.operation(apply, *(_formula(number) for number in pair))
        return Traced(apply(*(bare(number) for number in pair)), formula, self.trace)

    return method


def _compared(apply: Callable[..., Any]) -> Callable[[Traced, Any], Any]:
    def method(self: Traced, other: Any) -> Any:
        if not isinstance(other, int | Traced):
            return NotImplemented
        outcome = bool(apply(self.value, bare(other)))
        self.trace.require(self.trace.formulas.operation(apply, self.formula, _formula(other)), outcome)
        return outcome

    return method


def _formula(number: Any) -> Formula | int:
    return formula_of(number) or int(number)


class Traced:
    """A number with its formula, to be used like an integer.

    It is none, or Python would take its value behind its back: where the bare number is needed, for a range or an
    index, Python has to ask for it, and its value becomes a condition.
    """

    def __init__(self, value: int, formula: Formula, trace: Trace) -> None:
        self.value, self.formula, self.trace = value, formula, trace

    __add__ = _calculated(operator.add)
    __radd__ = _calculated(operator.add, swapped=True)
    __sub__ = _calculated(operator.sub)
    __rsub__ = _calculated(operator.sub, swapped=True)
    __mul__ = _calculated(operator.mul)
    __rmul__ = _calculated(operator.mul, swapped=True)
    __floordiv__ = _calculated(operator.floordiv)
    __rfloordiv__ = _calculated(operator.floordiv, swapped=True)
    __mod__ = _calculated(operator.mod)
    __rmod__ = _calculated(operator.mod, swapped=True)
    __lshift__ = _calculated(operator.lshift)
    __rlshift__ = _calculated(operator.lshift, swapped=True)
    __lt__ = _compared(operator.lt)
    __le__ = _compared(operator.le)
    __gt__ = _compared(operator.gt)
    __ge__ = _compared(operator.ge)
    __eq__ = _compared(operator.eq)
    __ne__ = _compared(operator.ne)

    def __neg__(self) -> Traced:
        return Traced(-self.value, self.trace.formulas.operation(operator.neg, self.formula), self.trace)

    def __bool__(self) -> bool:
        self.trace.require(self.trace.formulas.operation(operator.ne, self.formula, 0), self.value != 0)
        return self.value != 0

    def bit_length(self) -> Traced:
        """See `int`."""
        return Traced(self.value.bit_length(), self.trace.formulas.operation(_bit_length, self.formula), self.trace)

    def __index__(self) -> int:
        self.trace.require(self.formula, self.value)
        return self.value

    __int__ = __index__

    def __hash__(self) -> int:
        return hash(int(self))

    def __str__(self) -> str:
        return self.trace.text(self)

    __repr__ = __str__


def _bit_length(numbers: np.ndarray) -> np.ndarray:
    return np.ceil(np.log2(numbers.astype(np.float64) + 1.0)).astype(np.int64)
