"""Names of a checkpoint's files."""

from __future__ import annotations

from pathlib import Path

WEIGHTS, ABOUT, TRANSFER = ".safetensors", ".json", ".transfer.safetensors"


def checkpoint_file(path: Path, ending: str = "") -> Path:
    """A file of the checkpoint that users name with or without an ending; without `ending`, what they begin with."""
    stem = path.with_suffix("") if path.suffix in (WEIGHTS, ABOUT) else path
    return stem.with_name(stem.name + ending)
