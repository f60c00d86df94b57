"""Convolutions with channels last, a panel of filters at a time: each is read from memory once, and used for all rows.

`convolution` goes through all filters for every image row. Late layers have few rows and filters by the megabyte, which
then come from memory again and again. Here, in each workgroup:

    for each panel of output channels (narrower panels for what is left over)
      for each image row
        for each tile of columns
          for each block of input channels, for each window position, for k: accumulators(columns x lanes) += ..

A panel is a loop of the root where filters were cut into panels ahead of time, else a part of its lanes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tcl_iree.target import Target
from tcl_iree.transform_dialect.families.convolution import (
    Dims,
    convolution_dims,
    lower_products,
    tile_panel,
    tile_sizes,
    why_not_products,
)
from tcl_iree.transform_dialect.family import Decision
from tcl_iree.transform_dialect.fused_ops import FusedOps
from tcl_iree.transform_dialect.register_tiles import RegisterTiles
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import Script
from tcl_iree.transform_dialect.sizes import divisors, spread
from tcl_iree.transform_dialect.view import View, indices
from tcl_iree.workload.model import Workload


@dataclass(frozen=True)
class PanelDims(Dims):
    """The loops by what they do; `extra` are those of the image.

    Attributes:
        panels: the loop over panels cut ahead of time, None where the filters are whole.
    """

    panels: int | None

    def workgroup(self, schedule: Schedule, view: View) -> dict[int, int]:
        """What one workgroup takes of every parallel loop it does not take whole."""
        taken = super().workgroup(schedule, view)
        return taken if self.panels is None else taken | {self.panels: schedule["panel_workgroup"]}


@cache
def panel_dims(workload: Workload) -> tuple[View, PanelDims] | str:
    """The view and loops of a convolution whose lanes are output channels, or why it is none."""
    found = convolution_dims(workload)
    if isinstance(found, str):
        return found
    view, dims = found
    filters = indices(view.inputs[dims.panel])
    if any(len(index) > 1 for index in filters):
        return "lanes are not output channels"
    own = {loop for index in filters for loop in index}
    panels = [loop for loop in dims.extra if loop in own]
    image = tuple(loop for loop in dims.extra if loop not in own)
    if len(panels) > 1 or not image:
        return "there is one image row only, or the filters have more loops than panels and channels"
    return view, PanelDims(dims.lanes, dims.rows, image, dims.window, dims.k, dims.panel, panels[0] if panels else None)


class FilterPanels(RegisterTiles[PanelDims]):
    """Register tiles of columns x output channels, all image rows of a workgroup for each panel of filters."""

    name = "filter_panels"

    def dims(self, workload: Workload) -> tuple[View, PanelDims] | str:
        """See `RegisterTiles`."""
        return panel_dims(workload)

    def decisions(self, workload: Workload, target: Target) -> tuple[Decision, ...]:
        """See `Family`."""
        view, dims = self.found(workload)
        limits = self.limits(view, target)
        if dims.panels is None:
            wide = [size for size in divisors(view.size(dims.lanes)) if size % limits.lanes == 0]
            shared = Decision("lane_workgroup", spread(wide, 6) or (view.size(dims.lanes),))
        else:
            shared = Decision("panel_workgroup", spread(divisors(view.size(dims.panels)), 6))
        return (shared, *tile_sizes(view, dims, limits))

    def why_illegal(self, schedule: Schedule, workload: Workload, target: Target) -> str | None:
        """See `Family`."""
        view, dims = self.found(workload)
        lanes = _lanes(schedule, view, dims)
        if lanes < view.size(dims.lanes) and lanes % schedule["lanes"]:
            return "a workgroup's lanes are not a whole number of panels"
        return (
            why_not_products(schedule, lanes)
            or self.why_not_tile(schedule, view, dims, target)
            or self.why_not_alone(schedule, view, dims, target)
        )

    def emit(self, script: Script, schedule: Schedule, workload: Workload, target: Target) -> None:
        """See `Family`."""
        view, dims = self.found(workload)
        ops = FusedOps(script, view)
        script.phase("The ops of the dispatch.")
        ops.find()
        script.phase("Distribute to workgroups.")
        workgroup = dims.workgroup(schedule, view)
        ops.distribute(workgroup)
        script.phase("Panels of filters, narrower ones for what is left over.")
        if dims.panels is not None and workgroup[dims.panels] > 1:
            ops.tile_parallel({dims.panels: 1}, "filters")
        lanes = _lanes(schedule, view, dims)
        for number, _ in enumerate(ops.segment(dims.lanes, lanes, schedule["lanes"])):
            script.phase(f"Panel {number}: image rows, columns, blocks of input channels, window positions.")
            if taken := {loop: 1 for loop in dims.extra if workgroup[loop] > 1}:
                ops.tile_parallel(taken, "extra", number)
            tile_panel(ops, schedule, dims, number)
        ops.tile_result_fill(dims.lanes, lanes, schedule["lanes"])
        lower_products(script, schedule, dims)


def _lanes(schedule: Schedule, view: View, dims: PanelDims) -> int:
    """The lanes that one workgroup takes."""
    taken: int = view.size(dims.lanes) if dims.panels is not None else schedule["lane_workgroup"]
    return taken
