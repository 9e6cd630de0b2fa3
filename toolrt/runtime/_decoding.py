"""What a submitted call asks for: its tool's arguments, or what is wrong with it, in words a model can act on."""

from __future__ import annotations

from toolrt._plain import json_copy
from toolrt.errors import error_text
from toolrt.model import Arguments, Mismatch, Registry, Tool, ToolCall
from toolrt.order import CallRecord

__all__ = ["decoded", "refusal", "unknown_tool"]

#: Where no name is near, so many of a registry's are named.
_NAMED = 20


def unknown_tool(registry: Registry, call: ToolCall) -> list[Mismatch]:
    """What is wrong with a call whose name none of the registry's tools has."""
    nearest = registry.nearest(call.name)
    names = nearest or list(registry.names[:_NAMED])
    more = "" if nearest or len(registry) <= _NAMED else f" and {len(registry) - _NAMED} more"
    hint = f"{'the nearest are' if nearest else 'there are'} {', '.join(names)}{more}" if names else "there are none"
    return [Mismatch("name", f"the name of a tool ({hint})", repr(call.name))]


def decoded(call: CallRecord, tool: Tool) -> Arguments | list[Mismatch]:
    """The arguments, from a copy of the input: it is the model's, and its author may go on to change it."""
    try:
        call.input = json_copy(call.input)
    except RecursionError:
        return [Mismatch("input", "JSON values", "a value nested too deeply")]
    except Exception as error:
        return [Mismatch("input", "JSON values", f"a mapping that cannot be read ({error_text(error)})")]
    return tool.decode(call.input)


def refusal(call: ToolCall, mismatches: list[Mismatch]) -> str:
    """The error of a call with these mismatches."""
    return f"invalid call of tool {call.name!r}: {'; '.join(map(str, mismatches))}"
