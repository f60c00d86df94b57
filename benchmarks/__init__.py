"""Every figure the documentation quotes, one command each: `python -m benchmarks.NAME`."""
