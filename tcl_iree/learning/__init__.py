"""Cost models: what they learn from, how they are trained, kept and judged."""
