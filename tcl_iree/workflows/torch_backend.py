"""`torch.compile(model, backend="tcl_iree")`: the graphs that Dynamo finds in a model, tuned and run by IREE.

For inference. What IREE cannot run, and what has to be differentiated, runs as without `torch.compile`, with one
warning for each graph that tells why.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._guards import TracingContext

from tcl_iree.errors import OptionError
from tcl_iree.target import Target
from tcl_iree.workflows.torch_graph import CompiledGraph, Tuner
from tcl_iree.workflows.tune import tune
from tcl_iree.workflows.tune_options import TuneOptions

_WHERE = re.compile(r'File "([^"]+)", line (\d+)')
_GRADIENTS = "gradients are asked of it, and compiled code has none; call it under torch.no_grad()"


class _GradientsWanted(Exception):
    """AOT autograd asks for a graph to go back through."""


def backend(
    graph: Any, inputs: Sequence[Any], *, mode: str | None = None, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """Compile one of Dynamo's graphs; `torch.compile` calls this.

    In-place writes, views and what is passed through are AOT autograd's: it makes the graph functional and puts them
    back around it.

    Args:
        graph: a `torch.fx.GraphModule`.
        inputs: its example inputs, weights included.
        mode: the modes are inductor's; none is taken.
        options: `target`, `database` and fields of `TuneOptions`, of which `effort` is `none` unless given.

    Raises:
        OptionError, TargetError: an option that means nothing, or a target that cannot run here.
    """
    if mode:
        raise OptionError(f"backend tcl_iree has no mode {mode!r}; say options={{'effort': ...}} instead")
    tuner = _tuner(options or {})
    eager = partial(_warn_of_eager, _where(graph))
    if _differentiable(graph):
        eager(_GRADIENTS)
        return graph.forward
    try:
        return aot_autograd(fw_compiler=_refuse, inference_compiler=partial(_compiled, tuner, eager))(graph, inputs)
    except _GradientsWanted:
        eager(_GRADIENTS)
        return graph.forward


def _tuner(options: Mapping[str, Any]) -> Tuner:
    """`tune` with these options, which are looked at now: at the first call it would be late."""
    given = {"effort": "none", "target": "cpu", "database": None, **options}
    target, database = given.pop("target"), given.pop("database")
    names = [entry.name for entry in fields(TuneOptions)]
    if unknown := sorted(set(given) - set(names)):
        raise OptionError(f"there is no option {unknown[0]!r}; known: target, database, {', '.join(names)}")
    TuneOptions(**given)
    place = Target.parse(target) if isinstance(target, str) else target
    place.require_runnable()
    return partial(tune, target=place, database=database, **given)


def _differentiable(graph: Any) -> bool:
    """Whether autograd would have to go back through the graph."""
    (output,) = graph.graph.find_nodes(op="output")
    made = [node for node in output.all_input_nodes if node.op.startswith("call_")]
    return any(getattr(node.meta.get("example_value"), "requires_grad", False) for node in made)


def _refuse(*_: Any) -> Any:
    raise _GradientsWanted


def _compiled(tuner: Tuner, eager: Callable[[str], None], graph: Any, _: Sequence[Any]) -> Callable[..., Any]:
    """The functional graph as AOT autograd hands it over, weights among its arguments."""
    if not any(node.op == "call_function" for node in graph.graph.nodes):
        return make_boxed_func(graph.forward)
    facts = TracingContext.get().fw_metadata
    weights = sorted(set(facts.static_input_indices) - set(facts.mutated_inp_runtime_indices))
    return make_boxed_func(CompiledGraph(graph, weights, tuner, eager))


def _warn_of_eager(where: str, reason: str) -> None:
    warnings.warn(f"tcl_iree leaves a graph{where} to eager mode: {reason}", stacklevel=2)


def _where(graph: Any) -> str:
    """The line of the user's code that a graph starts at, where Dynamo tells."""
    traces = (found for node in graph.graph.nodes if (found := _WHERE.search(node.stack_trace or "")))
    first = next(traces, None)
    return f" that starts at {first[1]}:{first[2]}" if first else ""
