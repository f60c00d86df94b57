"""Results of long steps in files, so that a campaign that was cut off goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def kept(path: Path, make: Callable[[], Any]) -> Any:
    """What a file holds as JSON; it is made and written first if it is missing."""
    if not path.exists():
        made = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        waiting = path.with_name(f".{path.name}.new")
        waiting.write_text(json.dumps(made) + "\n")
        waiting.replace(path)
    return json.loads(path.read_text())


def file_name(text: str) -> str:
    """A text as the name of a file."""
    return "".join(letter if letter.isalnum() or letter in "-+." else "_" for letter in text)
