"""What a model reads of a call that names no tool, or whose input does not fit."""

from __future__ import annotations

from collections.abc import Sequence

from toolrt.model._call import ToolCall
from toolrt.model._mismatch import Mismatch, Mismatches, clipped_repr

#: Where no name is near, so many of a registry's are named.
_NAMED = 20


def unknown_tool(name: object, known: Sequence[str], nearest: Sequence[str]) -> Mismatch:
    """What is wrong with a call of a tool that is not among those `known`, and what to call in its place."""
    names = nearest or known[:_NAMED]
    more = "" if nearest or len(known) <= _NAMED else f" and {len(known) - _NAMED} more"
    hint = f"{'the nearest are' if nearest else 'there are'} {', '.join(names)}{more}" if names else "there are none"
    return Mismatch("name", f"the name of a tool ({hint})", clipped_repr(name))


def invalid_call_text(call: ToolCall, mismatches: Mismatches) -> str:
    """The error of a `call` with these `mismatches`."""
    return f"invalid call of tool {clipped_repr(call.name)}: {mismatches}"
