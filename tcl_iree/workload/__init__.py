"""Workloads: one distinct dispatch each, as IREE formed it, with its loops, operands and a stable key."""

from tcl_iree.workload.analysis import analyse
from tcl_iree.workload.model import Binding, Loop, Operand, StructuredOp, Workload
from tcl_iree.workload.payload import isolate

__all__ = ["Binding", "Loop", "Operand", "StructuredOp", "Workload", "analyse", "isolate"]
