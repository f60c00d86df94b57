"""From scripts, workloads and targets to numbers."""
