"""The distinct workloads of several networks."""

from __future__ import annotations

from collections.abc import Sequence

from tcl_iree.errors import ModelError, TclIreeError
from tcl_iree.frontend import Dispatch, load_model
from tcl_iree.report.progress import Step
from tcl_iree.target import Target
from tcl_iree.workflows.base_flags import Base
from tcl_iree.workflows.layouts import CHANGE, formed, with_layouts


def form_dispatches(
    networks: Sequence[str], target: Target, base: Base, layouts: str, say: Step
) -> tuple[list[Dispatch], dict[str, str]]:
    """Each distinct workload once, however many networks have it; and which networks were left out, and why.

    Args:
        networks: whatever `load_model` reads.
        layouts: `keep` those the networks have, or `change` them.

    Raises:
        ModelError: no network has any.
    """
    say("forming dispatches", total=len(networks))
    found: dict[str, Dispatch] = {}
    left: dict[str, str] = {}
    for network in networks:
        say(f"forming dispatches of {network}")
        try:
            model = load_model(network)
            changed = with_layouts(model, target, base) if layouts == CHANGE else None
            extraction = changed[1] if changed else formed(model, target, base)
            found = {entry.workload.key: entry for entry in extraction.dispatches} | found
        except TclIreeError as error:
            left[network] = str(error)
        say(f"formed dispatches of {network}", 1)
    if not found:
        reasons = "; ".join(f"{network}: {reason}" for network, reason in left.items())
        raise ModelError(f"no network has dispatches to measure ({reasons})")
    return list(found.values()), left
