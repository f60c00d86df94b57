"""Adaptive average pools of an exported torch model whose windows are all alike become plain average pools.

An adaptive pool may have windows of several sizes that overlap, so importers write it with a mask, as a sum over the
largest window. Where the image's size is a multiple of the result's, nothing of that is needed, and a plain pool has
schedules.
"""

from __future__ import annotations

import torch

_aten = torch.ops.aten
_ADAPTIVE = {_aten.adaptive_avg_pool2d.default, _aten._adaptive_avg_pool2d.default}


def even_pools(program: torch.export.ExportedProgram) -> int:
    """Replace those that can be replaced; returns how many. Means over the whole image stay: importers know them."""
    graph = program.graph_module.graph
    replaced = 0
    for node in list(graph.nodes):
        if node.target in _ADAPTIVE and (window := _window(node)):
            with graph.inserting_before(node):
                pool = graph.call_function(_aten.avg_pool2d.default, (node.args[0], window, window))
            pool.meta = dict(node.meta)
            node.replace_all_uses_with(pool)
            graph.erase_node(node)
            replaced += 1
    if replaced:
        program.graph_module.recompile()
    return replaced


def _window(node: torch.fx.Node) -> list[int] | None:
    """The size of all windows, if they are alike and there are several."""
    image, wanted = node.args[0].meta.get("val"), node.args[1]
    if image is None or not isinstance(wanted, (list, tuple)) or all(size == 1 for size in wanted):
        return None
    sizes = list(zip(image.shape[-2:], wanted, strict=True))
    if not all(isinstance(size, int) for pair in sizes for size in pair) or any(size % bins for size, bins in sizes):
        return None
    return [size // bins for size, bins in sizes]
