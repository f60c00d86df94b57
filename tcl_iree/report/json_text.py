"""Reports as JSON."""

from __future__ import annotations

import json
import math
from typing import Any


def json_text(value: Any) -> str:
    """One JSON document; it has no infinity and no NaN: they become null."""
    return json.dumps(_finite(value), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {name: _finite(entry) for name, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, list | tuple) else value
