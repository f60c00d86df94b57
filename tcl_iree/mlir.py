"""MLIR contexts to build and read small modules in.

A context takes longer to make than a script to build in it, so each thread keeps one. What modules name (types,
numbers, strings) stays in their context when they are gone, so it is replaced by a new one from time to time.
"""

from __future__ import annotations

import threading

from iree.compiler import ir

_USES = 2000


class _Kept(threading.local):
    def __init__(self) -> None:
        self.contexts: dict[bool, tuple[ir.Context, int]] = {}


_kept = _Kept()


def shared_context(any_dialect: bool = False) -> ir.Context:
    """A context of this thread, which others use too.

    Args:
        any_dialect: ops that no dialect has may be parsed in it.
    """
    context, uses = _kept.contexts.get(any_dialect, (None, 0))
    if context is None or uses >= _USES:
        context, uses = ir.Context(), 0
        context.enable_multithreading(False)
        context.allow_unregistered_dialects = any_dialect
    _kept.contexts[any_dialect] = (context, uses + 1)
    return context
