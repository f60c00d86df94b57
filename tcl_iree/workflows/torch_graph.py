"""A functional torch graph that runs as modules compiled by IREE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils.weak import TensorWeakRef

from tcl_iree.errors import DatabaseError, LearningError, MeasureError, ModelError, TclIreeError
from tcl_iree.workflows.model_runs import agreement
from tcl_iree.workflows.tuned import TuneResult

Tuner = Callable[[Any, tuple[Any, ...]], TuneResult]


class CompiledGraph:
    """Runs a graph as compiled modules: one for each set of weights and sizes it meets.

    Weights are constants of a module and sizes are fixed in it, so every call looks whether they are those of a module
    there is. If not, the graph runs in eager mode once, and what is compiled then has to give the same.

    Args:
        graph: a `torch.fx.GraphModule` without side effects.
        weights: which of its arguments stay the same from call to call.
        tuner: compiles a torch module for example inputs.
        eager: told why a graph is left to eager mode from now on, if it is.
    """

    def __init__(self, graph: Any, weights: Sequence[int], tuner: Tuner, eager: Callable[[str], None]) -> None:
        self._graph, self._weights, self._tuner, self._eager = graph, weights, tuner, eager
        self._modules: list[_Module] = []
        self._compiled = 0
        self._given_up = False

    def __call__(self, *arguments: Any) -> Sequence[Any]:
        """What the graph gives.

        Raises:
            DatabaseError, LearningError: an option names a database or cost model that cannot be used.
        """
        for module in self._modules:
            if module.fits(arguments):
                return module(arguments)
        return self._graph(*arguments) if self._given_up else self._meet(arguments)

    def _meet(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """Run the graph in eager mode, and compile it for these weights and sizes."""
        self._modules = [module for module in self._modules if module.lasting]
        random = torch.get_rng_state()
        outputs = self._graph(*arguments)
        try:
            self._require_compilable(arguments, drew=not torch.equal(random, torch.get_rng_state()))
            self._compiled += 1
            self._modules.append(_Module(self._graph, self._weights, arguments, outputs, self._tuner))
        except (DatabaseError, LearningError):
            raise
        except Exception as error:  # whatever torch, the importer or the compiler trips over: eager mode is there
            self._given_up = True
            self._eager(str(error) if isinstance(error, TclIreeError) else f"{type(error).__name__}: {error}")
        return outputs

    def _require_compilable(self, arguments: Sequence[Any], drew: bool) -> None:
        elsewhere = [value.device for value in arguments if _is_tensor(value) and value.device.type != "cpu"]
        limit = torch._dynamo.config.recompile_limit
        if drew:
            raise ModelError("it draws random numbers, and compiled code would draw others")
        if elsewhere:
            raise ModelError(f"a tensor is on {elsewhere[0]}; give it tensors on the CPU, whatever the target")
        if self._compiled >= limit:
            raise ModelError(
                f"it was compiled for {limit} sets of sizes and weights, and meets another; "
                "torch._dynamo.config.recompile_limit allows more"
            )


class _Module:
    """A graph compiled for some weights and sizes."""

    def __init__(
        self, graph: Any, weights: Sequence[int], arguments: Sequence[Any], expected: Sequence[Any], tuner: Tuner
    ) -> None:
        self._weights = [_Weight(index, arguments[index]) for index in weights if not arguments[index].is_inference()]
        constant = {weight.index for weight in self._weights}
        self._sizes = [(index, _size(value)) for index, value in enumerate(arguments) if index not in constant]
        self._inputs = [index for index, _ in self._sizes if _is_tensor(arguments[index])]
        self._others = [None if _is_tensor(value) else value for value in expected]
        self._outputs = {index: _layout(value) for index, value in enumerate(expected) if _is_tensor(value)}
        with _disable_current_modes(), torch.inference_mode(False), torch.no_grad():
            given = {index: value for index, value in enumerate(arguments) if index not in self._inputs}
            inputs = tuple(arguments[index].detach().clone() for index in self._inputs)
            self._run = tuner(_frozen(graph, given, list(self._outputs)), inputs).loaded
        self._check(arguments, [expected[index] for index in self._outputs])

    @property
    def lasting(self) -> bool:
        """Whether the weights are still there and as they were."""
        return all(weight.same(weight.reference()) for weight in self._weights)

    def fits(self, arguments: Sequence[Any]) -> bool:
        """Whether this was compiled for these weights and sizes."""
        return all(_size(arguments[index]) == size for index, size in self._sizes) and all(
            weight.same(arguments[weight.index]) for weight in self._weights
        )

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        """What the graph gives, in new tensors with the strides that eager mode gives them."""
        outputs = list(self._others)
        for (index, layout), tensor in zip(self._outputs.items(), self._tensors(arguments), strict=True):
            outputs[index] = _laid_out(tensor, layout)
        return outputs

    def _tensors(self, arguments: Sequence[Any]) -> list[Any]:
        arrays = self._run([arguments[index].numpy(force=True) for index in self._inputs])
        return [torch.from_numpy(array) for array in arrays]

    def _check(self, arguments: Sequence[Any], expected: Sequence[Any]) -> None:
        tensors = self._tensors(arguments)
        for wanted, got in zip(expected, tensors, strict=True):
            if (wanted.shape, wanted.dtype) != (got.shape, got.dtype):
                raise MeasureError(
                    f"compiled, it gives {got.dtype} of {list(got.shape)} for {wanted.dtype} of {list(wanted.shape)}"
                )
        status, _ = agreement(*([[value.numpy(force=True) for value in values]] for values in (expected, tensors)))
        if status != "ok":
            raise MeasureError(f"compiled, it gives a {status}")


class _Weight:
    """A tensor as it was when it became a constant; writes through `.data` leave no trace and are not seen."""

    def __init__(self, index: int, tensor: Any) -> None:
        self.index, self.reference = index, TensorWeakRef(tensor)
        self._written, self._address = tensor._version, tensor.data_ptr()

    def same(self, tensor: Any) -> bool:
        """Whether this is that tensor, with nothing written since."""
        return (
            tensor is not None
            and tensor is self.reference()
            and tensor._version == self._written
            and tensor.data_ptr() == self._address
        )


def _frozen(graph: Any, given: Mapping[int, Any], outputs: Sequence[int]) -> Any:
    """A graph with some of its arguments given, that returns only some of its outputs."""
    frozen = torch.fx.Graph()
    held = {node.target: attrgetter(node.target)(graph) for node in graph.graph.find_nodes(op="get_attr")}
    arguments: dict[Any, Any] = {}
    for index, node in enumerate(graph.graph.find_nodes(op="placeholder")):
        if index not in given:
            arguments[node] = frozen.placeholder(node.name)
        elif _is_tensor(given[index]):
            held[f"given_{index}"] = given[index].detach()
            arguments[node] = frozen.get_attr(f"given_{index}")
        else:
            arguments[node] = given[index]
    returned = frozen.graph_copy(graph.graph, arguments)
    frozen.output(tuple(returned[index] for index in outputs))
    return torch.fx.GraphModule(held, frozen, "Graph")


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _size(value: Any) -> Any:
    return value.shape if _is_tensor(value) else value


def _layout(tensor: Any) -> Any:
    """A tensor without elements of this shape and these strides, or dense ones where elements share memory."""
    return torch.empty_like(tensor, device="meta")


def _laid_out(tensor: Any, layout: Any) -> Any:
    if tensor.stride() == layout.stride() or tensor.shape != layout.shape:  # the shape may depend on the values
        return tensor
    return torch.empty_strided(tensor.shape, layout.stride(), dtype=tensor.dtype).copy_(tensor)
