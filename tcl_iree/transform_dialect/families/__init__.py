"""Every schedule family, one file each."""

from __future__ import annotations

from tcl_iree.errors import ScheduleError
from tcl_iree.transform_dialect.families.attention import Attention
from tcl_iree.transform_dialect.families.config import Config
from tcl_iree.transform_dialect.families.contraction import Contraction
from tcl_iree.transform_dialect.families.convolution import Convolution
from tcl_iree.transform_dialect.families.cuda_mma import CudaMma
from tcl_iree.transform_dialect.families.cuda_reduction import CudaReduction
from tcl_iree.transform_dialect.families.cuda_simt import CudaSimt
from tcl_iree.transform_dialect.families.elementwise import Elementwise
from tcl_iree.transform_dialect.families.filter_panels import FilterPanels
from tcl_iree.transform_dialect.families.gpu_threads import GpuThreads
from tcl_iree.transform_dialect.families.packed import Packed
from tcl_iree.transform_dialect.families.reduction import Reduction
from tcl_iree.transform_dialect.families.strided_pooling import StridedPooling
from tcl_iree.transform_dialect.families.vulkan_config import VulkanConfig
from tcl_iree.transform_dialect.families.window import Window
from tcl_iree.transform_dialect.family import Family

FAMILIES: tuple[Family, ...] = (
    Contraction(),
    Packed(),
    Convolution(),
    FilterPanels(),
    Window(),
    StridedPooling(),
    Attention(),
    Reduction(),
    Elementwise(),
    Config(),
    GpuThreads(),
    CudaSimt(),
    CudaMma(),
    CudaReduction(),
    VulkanConfig(),
)


def family_of(name: str) -> Family:
    """The family of this name.

    Raises:
        ScheduleError: there is none.
    """
    for family in FAMILIES:
        if family.name == name:
            return family
    known = ", ".join(family.name for family in FAMILIES)
    raise ScheduleError(f"there is no schedule family {name!r}; known: {known}")
