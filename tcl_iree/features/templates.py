"""Steps of thousands of schedules at once: one script for each variant of a family, with formulas for its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from iree.compiler import ir

from tcl_iree.features.script_ops import ScriptOp, read_module
from tcl_iree.features.tracing import Formula, Formulas, Trace, Values, bare, formula_of
from tcl_iree.features.walk import ROW_NUMBERS, Walked, walk
from tcl_iree.target import Target
from tcl_iree.transform_dialect.families import family_of
from tcl_iree.transform_dialect.names import ENTRY
from tcl_iree.transform_dialect.schedule import Schedule, Value
from tcl_iree.transform_dialect.script import Script
from tcl_iree.workload.model import Workload


class _TracedScript(Script):
    """Builds the script of the plain numbers and keeps the traced ones beside."""

    def __init__(self, schedule: Schedule, trace: Trace) -> None:
        super().__init__(schedule)
        self._trace = trace
        self.sizes: list[tuple[int, ...]] = []
        self.values: list[str] = []

    def _keep(self, sizes: Sequence[int]) -> list[int]:
        self.sizes.append(tuple(sizes))
        return [bare(size) for size in sizes]

    def tile_forall(self, op: ir.Value, sizes: Sequence[int], name: str) -> tuple[ir.Value, ir.Value]:
        return super().tile_forall(op, self._keep(sizes), name)

    def tile_threads(self, op: ir.Value, sizes: Sequence[int], name: str) -> tuple[ir.Value, ir.Value]:
        return super().tile_threads(op, self._keep(sizes), name)

    def tile(self, op: ir.Value, sizes: Sequence[int], name: str) -> tuple[ir.Value, list[ir.Value]]:
        return super().tile(op, self._keep(sizes), name)

    def unroll(self, for_loop: ir.Value, factor: int, name: str) -> None:
        super().unroll(for_loop, self._keep([factor])[0], name)

    def copy_operand(self, op: ir.Value, index: int, name: str) -> ir.Value:
        return super().copy_operand(op, self._keep([index])[0], name)

    def interchange(self, op: ir.Value, order: Sequence[int], name: str) -> ir.Value:
        return super().interchange(op, self._keep(order), name)

    def interchange_each(self, ops: ir.Value, order: Sequence[int], name: str) -> None:
        super().interchange_each(ops, self._keep(order), name)

    def pack(self, op: ir.Value, sizes: Sequence[int], name: str) -> ir.Value:
        return super().pack(op, self._keep(sizes), name)

    def tile_reduction(self, ops: ir.Value, sizes: Sequence[int], name: str) -> ir.Value:
        return super().tile_reduction(ops, self._keep(sizes), name)

    def iree_op(self, name: str, result: bool = False, **attributes: str) -> None:
        plain = {}
        for key, text in attributes.items():
            plain[key] = self._trace.plain(text)
            if text.startswith("array<i64:"):
                inside = text.partition(":")[2].rstrip(">")
                self.sizes.append(tuple(self._trace.read(number) for number in inside.split(",")))
        super().iree_op(name, result, **plain)

    def annotate(self, op: ir.Value, name: str, attribute: str | None = None) -> None:
        if attribute is not None:
            self.values.append(attribute)
            attribute = self._trace.plain(attribute)
        super().annotate(op, name, attribute)

    def ops(self) -> list[ScriptOp]:
        """The finished script's ops, with traced numbers."""
        sizes, values = iter(self.sizes), iter(self.values)
        found = []
        for op in read_module(self.finish(), ENTRY):
            if op.sizes:
                op = replace(op, sizes=next(sizes))
            if op.name == "param.constant":
                op = replace(op, value=next(values))
            found.append(op)
        return found


@dataclass(frozen=True)
class Chosen:
    """Some of the schedules whose decisions are known."""

    values: Values
    positions: np.ndarray

    def of(self, formulas: Sequence[Formula]) -> np.ndarray:
        """What formulas give for them: schedule x formula."""
        return self.values.table(formulas, self.positions).T


class _Table:
    """Numbers that decisions may change, by their formulas."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._base = np.array([bare(number) for number in numbers], np.int64)
        found = [(index, formula_of(number)) for index, number in enumerate(numbers)]
        self._places = np.array([index for index, formula in found if formula], np.int64)
        self._formulas = [formula for _, formula in found if formula]

    def of(self, chosen: Chosen) -> np.ndarray:
        """Schedule x number."""
        made = np.broadcast_to(self._base, (len(chosen.positions), len(self._base))).copy()
        if self._formulas:
            made[:, self._places] = chosen.of(self._formulas)
        return made


class Template:
    """One variant of a family: its steps, and how their numbers follow from the decisions."""

    def __init__(self, walked: Walked) -> None:
        self.rows, self.nests = walked
        self._row_table = _Table([number for row in self.rows for number in row.numbers])
        self._nest_table = _Table([number for nest in self.nests for number in nest.numbers])

    def row_numbers(self, chosen: Chosen) -> np.ndarray:
        """Schedule x row x number, for schedules of this variant."""
        return self._row_table.of(chosen).reshape(len(chosen.positions), len(self.rows), ROW_NUMBERS)

    def nest_numbers(self, chosen: Chosen) -> np.ndarray:
        """Schedule x number, for schedules of this variant."""
        return self._nest_table.of(chosen)


@dataclass(eq=False)
class _Question:
    """A condition that tells variants apart, and where each answer leads."""

    formula: Formula
    answers: dict[int | bool, _Node] = field(default_factory=dict)
    stretch: _Stretch | None = None


@dataclass(frozen=True)
class _Stretch:
    """Questions in a row that have had one answer each so far, up to where ways part or a variant is known."""

    formulas: tuple[Formula, ...]
    answers: np.ndarray
    end: _Node


_Node = _Question | Template | None


def _ask(question: _Question, chosen: np.ndarray, values: Values) -> Iterator[tuple[_Node, np.ndarray]]:
    """Each answer's node, with the schedules that give it."""
    given = values.of(question.formula)[chosen]
    for answer in np.unique(given):
        yield question.answers.get(answer.item()), chosen[given == answer]


class _Tree:
    """The variants of one family met so far, by the questions its script asks on the way."""

    def __init__(self, workload: Workload, target: Target) -> None:
        self._workload, self._target = workload, target
        self._formulas = Formulas()
        self._root: _Node = None

    def sort(self, schedules: Sequence[Schedule]) -> Iterator[tuple[Template, Chosen]]:
        """The variants among the schedules, and which are of each."""
        values = Values(_columns(schedules))
        waiting: list[tuple[_Node, np.ndarray]] = [(self._root, np.arange(len(schedules)))]
        while waiting:
            node, chosen = waiting.pop()
            if isinstance(node, Template):
                yield node, Chosen(values, chosen)
            elif node is None:  # a variant not met before: learn it from one schedule, then start again from the top
                self._learn(schedules[chosen[0]])
                waiting.append((self._root, chosen))
            else:
                waiting += self._led(node, chosen, values)

    def _led(self, node: _Question, chosen: np.ndarray, values: Values) -> Iterator[tuple[_Node, np.ndarray]]:
        """Where questions lead schedules: a whole stretch at once where they answer as others did before."""
        stretch = self._stretch(node)
        if len(stretch.formulas) > 1:
            alike = (values.table(stretch.formulas, chosen) == stretch.answers[:, None]).all(axis=0)
            if alike.any():
                yield stretch.end, chosen[alike]
            chosen = chosen[~alike]
        if len(chosen):
            yield from _ask(node, chosen, values)

    def _stretch(self, start: _Question) -> _Stretch:
        if start.stretch:
            return start.stretch
        formulas, answers = [], []
        node: _Node = start
        while isinstance(node, _Question) and len(node.answers) == 1:
            ((answer, after),) = node.answers.items()
            formulas.append(node.formula)
            answers.append(int(answer))
            node = after
        start.stretch = _Stretch(tuple(formulas), np.array(answers, np.int64), node)
        return start.stretch

    def _learn(self, schedule: Schedule) -> None:
        trace = Trace(self._formulas)
        template = trace_template(schedule, self._workload, self._target, trace)
        asked = list(trace.conditions.items())
        if not asked:
            self._root = template
            return
        if self._root is None:
            self._root = _Question(asked[0][0])
        node: _Node = self._root
        for (_, answer), (formula, _) in pairwise([*asked]):
            assert isinstance(node, _Question)
            node.stretch = None  # it may lead past where ways part now
            node = node.answers.setdefault(answer, _Question(formula))
        assert isinstance(node, _Question)
        node.stretch = None
        node.answers[asked[-1][1]] = template


def trace_template(schedule: Schedule, workload: Workload, target: Target, trace: Trace) -> Template:
    """The template of a schedule's variant; `trace` gets the conditions under which it is others' too."""
    script = _TracedScript(schedule, trace)
    family_of(schedule.family).emit(script, _traced(schedule, trace), workload, target)
    return Template(walk(script.ops(), workload, trace.read))


class Templates:
    """The variants met so far of one workload on one target."""

    def __init__(self, workload: Workload, target: Target) -> None:
        self._workload, self._target = workload, target
        self._trees: dict[tuple[object, ...], _Tree] = {}

    def sort(self, schedules: Sequence[Schedule]) -> Iterator[tuple[np.ndarray, Template, Chosen]]:
        """For each variant among the schedules: their positions, its template, and what its numbers follow from."""
        groups: dict[tuple[object, ...], list[int]] = {}
        for position, schedule in enumerate(schedules):
            groups.setdefault(_variant(schedule), []).append(position)
        for variant, positions in groups.items():
            tree = self._trees.setdefault(variant, _Tree(self._workload, self._target))
            for template, chosen in tree.sort([schedules[position] for position in positions]):
                yield np.array(positions)[chosen.positions], template, chosen


def _traced(schedule: Schedule, trace: Trace) -> Schedule:
    def value(name: str, given: Value) -> Value:
        if isinstance(given, bool | str):
            return given
        if isinstance(given, tuple):
            return tuple(trace.number(number, f"{name}.{index}") for index, number in enumerate(given))
        return trace.number(given, name)

    return Schedule(schedule.family, tuple((name, value(name, given)) for name, given in schedule.decisions))


def _variant(schedule: Schedule) -> tuple[object, ...]:
    """What can hold for a whole group only: family, flags, words, and how many numbers a decision has."""
    return (schedule.family, *[_fixed(given) for _, given in schedule.decisions])


def _fixed(given: Value) -> object:
    kind = type(given)
    if kind is int:
        return None
    return len(given) if isinstance(given, tuple) else (kind, given)


def _columns(schedules: Sequence[Schedule]) -> dict[str, np.ndarray]:
    """Decisions of schedules of one variant, one array each."""
    found: dict[str, np.ndarray] = {}
    for index, (name, first) in enumerate(schedules[0].decisions):
        values = [schedule.decisions[index][1] for schedule in schedules]
        if isinstance(first, tuple):
            table = np.array(values, np.int64).reshape(len(values), -1)
            found |= {f"{name}.{number}": table[:, number] for number in range(table.shape[1])}
        elif not isinstance(first, bool | str):
            found[name] = np.array(values, np.int64)
    return found
