"""Reports read back from the JSON that was written of them."""

from __future__ import annotations

import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any


def restored(kind: Any, plain: Any) -> Any:
    """A value of a type from what `asdict` and JSON made of it: dataclasses, tuples, lists, dicts, unions with None.

    Raises:
        ValueError: the data is not of that type.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if plain is None and type(None) in arguments:
            return None
        (kind,) = (entry for entry in arguments if entry is not type(None))
        return restored(kind, plain)
    if origin is tuple:
        return tuple(restored(arguments[0], entry) for entry in _checked(plain, list))
    if origin is dict:
        return dict(_checked(plain, dict))
    if is_dataclass(kind):
        given, known = _checked(plain, dict), typing.get_type_hints(kind)
        if set(given) != {entry.name for entry in fields(kind)}:
            raise ValueError(f"{getattr(kind, '__name__', kind)} has other fields than {sorted(given)}")
        return typing.cast(Any, kind)(**{name: restored(known[name], value) for name, value in given.items()})
    return _checked(plain, (float, int) if kind is float else kind)


def _checked(plain: Any, kind: Any) -> Any:
    if not isinstance(plain, kind):
        raise ValueError(f"{plain!r} is no {kind}")
    return plain
