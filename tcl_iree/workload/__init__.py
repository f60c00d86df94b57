"""Workloads: one distinct dispatch each, as IREE formed it, with its loops, operands and a stable key.

`model` holds the values and imports nothing heavy, so that run workers can use it; the other files read IR.
"""
