"""The `tcl-iree` command."""

from tcl_iree.cli.main import main

__all__ = ["main"]
