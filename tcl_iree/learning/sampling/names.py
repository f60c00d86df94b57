"""Samplers by name."""

from __future__ import annotations

from collections.abc import Callable

from tcl_iree.errors import OptionError
from tcl_iree.learning.sampling.greedy import BadgeSampler, BiasedSampler, KCenterSampler, RduSampler
from tcl_iree.learning.sampling.plain import RandomSampler, UncertaintySampler
from tcl_iree.learning.sampling.sampler import Sampler

SAMPLERS: dict[str, Callable[[], Sampler]] = {
    made.name: made
    for made in (RduSampler, RandomSampler, KCenterSampler, UncertaintySampler, BadgeSampler, BiasedSampler)
}


def make_sampler(name: str) -> Sampler:
    """The sampler of a name.

    Raises:
        OptionError: there is none.
    """
    if name not in SAMPLERS:
        raise OptionError(f"there is no sampler {name!r}; choose from {', '.join(SAMPLERS)}")
    return SAMPLERS[name]()
