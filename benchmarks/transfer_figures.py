"""Figures of chains of platforms: average, forgetting and forward transfer, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.transfer_chains import Outcome
from tcl_iree.learning.evaluation import FIGURES, Figure, ahead, figure_name, interval, mean_figure
from tcl_iree.learning.metrics import Ranked

FORMS = ("average", "forgetting", "forward_transfer")


def figures(order: Sequence[str], found: Sequence[Outcome], alone: Sequence[Outcome] | None) -> dict[str, Any]:
    """All figures of one method.

    Args:
        found: one outcome a seed.
        alone: those of training from scratch on the same labels.
    """
    made: dict[str, Any] = {figure_name(figure): _of(figure, order, found, alone) for figure in FIGURES}
    return made | {
        "size": asdict(found[0].size),
        "teachers": [list(outcome.teachers) for outcome in found],
        "seconds": float(np.mean([outcome.seconds for outcome in found])),
    }


def leads(order: Sequence[str], held: Mapping[str, Sequence[Outcome]], ours: str) -> dict[str, Any]:
    """95 % intervals of one method's lead over the others, over all platforms after the last."""
    last = {method: [_final(order, outcome) for outcome in found] for method, found in held.items()}
    return {
        method: {figure_name(figure): ahead(last[ours], pools, figure) for figure in FIGURES}
        for method, pools in last.items()
        if method != ours
    }


def _of(
    figure: Figure, order: Sequence[str], found: Sequence[Outcome], alone: Sequence[Outcome] | None
) -> dict[str, Any]:
    final = [_final(order, outcome) for outcome in found]
    made: dict[str, Any] = {
        "average": mean_figure(final, figure),
        "average_interval": interval(final, figure),
        "each_seed": [mean_figure([pools], figure) for pools in final],
        "platforms": {
            platform: {
                str(learned): mean_figure([outcome.after[learned, platform] for outcome in found], figure)
                for learned in range(1, len(order) + 1)
                if (learned, platform) in found[0].after
            }
            for platform in order
        },
    }
    if len(order) < 2 or (1, order[0]) not in found[0].after:  # nothing was learned on the way
        return made
    learned_then = [_when_learned(order[:-1], outcome) for outcome in found]
    later = [[pool for name in order[:-1] for pool in outcome.after[len(order), name]] for outcome in found]
    made["forgetting"] = mean_figure(learned_then, figure) - mean_figure(later, figure)
    made["forgetting_interval"] = ahead(learned_then, later, figure)
    if alone:
        mine = [_when_learned(order, outcome, since=1) for outcome in found]
        theirs = [_when_learned(order, outcome, since=1) for outcome in alone]
        made["forward_transfer"] = mean_figure(mine, figure) - mean_figure(theirs, figure)
        made["forward_transfer_interval"] = ahead(mine, theirs, figure)
    return made


def _final(order: Sequence[str], outcome: Outcome) -> list[Ranked]:
    return [pool for platform in order for pool in outcome.after[len(order), platform]]


def _when_learned(order: Sequence[str], outcome: Outcome, since: int = 0) -> list[Ranked]:
    """Pools of each platform, from the one numbered `since` on, as ranked right after it was learned."""
    numbered = list(enumerate(order, 1))[since:]
    return [pool for count, platform in numbered for pool in outcome.after[count, platform]]
