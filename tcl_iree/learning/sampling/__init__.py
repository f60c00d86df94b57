"""Choose which programs are worth measuring."""

from tcl_iree.learning.sampling.names import SAMPLERS, make_sampler
from tcl_iree.learning.sampling.pool import Pool
from tcl_iree.learning.sampling.sampler import Sampler

__all__ = ["SAMPLERS", "Pool", "Sampler", "make_sampler"]
