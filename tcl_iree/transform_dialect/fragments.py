"""Take named sequences out of printed modules and put them into others, comments and handle names kept.

Parsing and printing again would lose both, so this works on text, of the one form that MLIR's printer has.
"""

from __future__ import annotations

import re

from tcl_iree.errors import LibraryError

_ALIAS = re.compile(r"^([#!][A-Za-z_][\w$]*) = (.*)$")
_SEQUENCE = re.compile(r"^  transform\.named_sequence (?:private )?@([\w$.]+)\(")


def sequences(text: str) -> dict[str, str]:
    """The named sequences of a printed module by name, each self-contained: aliases are spelled out.

    #map = affine_map<(d0) -> (d0)>
    module { transform.named_sequence @a(...) { ... #map ... } }
      -> {"a": "transform.named_sequence @a(...) { ... affine_map<(d0) -> (d0)> ... }"}
    """
    aliases: dict[str, str] = {}
    found: dict[str, str] = {}
    name, lines = "", list[str]()
    for line in text.splitlines():
        if not name and (alias := _ALIAS.match(line)):
            aliases[alias[1]] = _spelled_out(alias[2], aliases)
            continue
        if not name and (start := _SEQUENCE.match(line)):
            name, lines = start[1], []
        if name:
            lines.append(line)
            if line == "  }":
                found[name] = _spelled_out("\n".join(lines), aliases)
                name = ""
    if name:
        raise LibraryError(f"the sequence @{name} has no end")
    return found


def renamed(sequence: str, old: str, new: str) -> str:
    """A sequence under another name."""
    return sequence.replace(f"@{old}(", f"@{new}(", 1)


def _spelled_out(text: str, aliases: dict[str, str]) -> str:
    if not aliases:
        return text
    # `#map` but neither `#map1` nor `#map.attribute<...>`.
    names = "|".join(re.escape(name) for name in aliases)
    return re.sub(rf"({names})(?![\w$.<])", lambda found: aliases[found[1]], text)
