"""Where trials are kept unless the user names a file."""

from __future__ import annotations

import os
from pathlib import Path


def default_database() -> Path:
    """`$TCL_IREE_DB`, or a file in the user's data directory."""
    if override := os.environ.get("TCL_IREE_DB"):
        return Path(override)
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "tcl-iree" / "trials.db"
