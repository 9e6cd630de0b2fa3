"""Where a response keeps its calls, and whose format they are in.

Rules.  A list belongs to the key it stands under (``output``, ``tool_calls``, ``content``, ``calls``); a bare list
to the format of its first call.  Calls in two places, or of two formats in one list, are refused: one of them would
go unanswered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from toolrt.interop._format import Format
from toolrt.interop._json import at

#: What to give, for one who gave something else.
SHAPES = (
    "Give an Anthropic message, an OpenAI response or chat completion, "
    'or a list of calls such as [{"name": "read_file", "input": {"path": "a.py"}}].'
)

#: Stands for what is not there.
MISSING = object()

#: Items of the OpenAI Responses API that their caller must answer, but not with a function's output.
OTHER_CALLS = (
    "apply_patch_call",
    "computer_call",
    "custom_tool_call",
    "local_shell_call",
    "mcp_approval_request",
    "shell_call",
)


class Unreadable(Exception):
    """Why a response cannot be read, and what to do about it; the caller adds the response's name."""

    def __init__(self, why: str, remedy: str = SHAPES) -> None:
        self.why = why
        self.remedy = remedy
        super().__init__(why)


def wrong_value(place: str, expected: str, got: object) -> Unreadable:
    """The refusal of a value that is not what must stand at `place`."""
    return Unreadable(
        f"{place}: expected {expected}, got {_kind(got)}",
        "Give one whole response as the API sent it, or a list of calls.",
    )


@attrs.frozen
class CallList:
    """A list of a response, every element of it an object."""

    #: Where it is; the empty string when it is the whole response.
    place: str
    items: Sequence[Mapping[Any, Any]]
    format: Format


def find_calls(source: object) -> CallList:
    """The one list of `source` that holds its calls; it holds at least one.

    Raises:
        Unreadable: there is no such list, or not exactly one.
    """
    lists = _lists_of(source)
    holding = [found for place, items, format in lists if (found := _found(place, items, format)) is not None]
    if not holding:
        raise _no_calls(lists)
    if len(holding) > 1:
        places = " and ".join(found.place for found in holding)
        raise Unreadable(f"there are tool calls in {places}, and only one of them can be meant", "Keep one.")
    return holding[0]


def format_of(item: Mapping[Any, Any]) -> Format | None:
    """The format in which this is a call; None when it is none, or none of ours."""
    kind = item.get("type", MISSING)
    if kind == "tool_use":
        return "anthropic"
    if kind == "function_call":
        return "openai-responses"
    if kind in ("function", "custom") or isinstance(item.get("function"), Mapping):
        return "openai-chat"
    if kind is MISSING and "name" in item and "role" not in item:
        return "calls"
    return None


#: The place of a list, what stands there, and the format its place tells.
_Place = tuple[str, Any, Format | None]


def _lists_of(source: object) -> list[_Place]:
    if _is_list(source):
        return [("", source, None)]
    if not isinstance(source, Mapping):
        remedy = "Give what its .model_dump() returns." if hasattr(source, "model_dump") else SHAPES
        raise Unreadable(f"expected an object or an array, got {_kind(source)}", remedy)
    lists: list[_Place] = []
    if _is_list(source.get("output")):
        lists.append(("output", source["output"], "openai-responses"))
    if _is_list(source.get("choices")):
        lists.append(("choices", [], "openai-chat"))
        lists.extend(_of_choice(choice, at("choices", index)) for index, choice in enumerate(source["choices"]))
    if "tool_calls" in source:
        lists.append(_of_message(source, ""))
    if "content" in source:
        lists.append(("content", source["content"] if _is_list(source["content"]) else [], "anthropic"))
    if _is_list(source.get("calls")):
        lists.append(("calls", source["calls"], "calls"))
    if not lists:
        keys = _few(str(key) for key in source)
        raise Unreadable(f"this is no response in a known format: an object with the keys {keys or '(none)'}")
    return lists


def _of_choice(choice: object, place: str) -> _Place:
    if not isinstance(choice, Mapping):
        raise wrong_value(place, "an object", choice)
    message = choice.get("message", MISSING)
    if not isinstance(message, Mapping):
        raise wrong_value(at(place, "message"), "an object", message)
    return _of_message(message, at(place, "message"))


def _of_message(message: Mapping[Any, Any], place: str) -> _Place:
    place = at(place, "tool_calls")
    items = message.get("tool_calls")
    if items is None:
        return place, [], "openai-chat"
    if not _is_list(items):
        raise wrong_value(place, "an array", items)
    return place, items, "openai-chat"


def _found(place: str, items: Sequence[Any], format: Format | None) -> CallList | None:
    """The list, if there is a call in it."""
    for index, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise wrong_value(at(place, index), "an object", item)
    if format in (None, "openai-responses"):
        _refuse_other_calls(place, items)
    if format == "calls":
        # The key says that each element is a call, whatever else it has in it.
        return CallList(place, items, format) if items else None
    formats: list[Format | None] = [format_of(item) for item in items]
    told: Format | None = format or next((one for one in formats if one is not None), None)
    if told is None:
        return None
    for index, one in enumerate(formats):
        if one not in (None, told):
            raise Unreadable(
                f"{at(place, index)} is a call in the format {one} in a list of the format {told}", "Give one response."
            )
    if told == "openai-chat":
        return CallList(place, items, told) if items else None
    return CallList(place, items, told) if told in formats else None


def _refuse_other_calls(place: str, items: Sequence[Mapping[Any, Any]]) -> None:
    answered = [item.get("call_id") for item in items if str(item.get("type")).endswith("_output")]
    for index, item in enumerate(items):
        kind = item.get("type")
        # A hosted shell's call comes with its output; it asks nothing of us.
        if kind in OTHER_CALLS and item.get("call_id", MISSING) not in answered:
            raise Unreadable(
                f"{at(place, index)} is a {kind}, which no function's result can answer",
                "Answer it elsewhere, and give the response without it.",
            )


def _no_calls(lists: Sequence[_Place]) -> Unreadable:
    place, _, format = next((one for one in lists if one[1]), lists[0])
    held = [item for _, items, _ in lists for item in items]
    if format is None and held and not any("type" in item for item in held):
        if "role" in held[0]:
            return Unreadable(
                "this is a conversation, not a response", "Give its last message, the assistant's, alone."
            )
        return Unreadable(f"{at(place, 0)} has neither a type nor a name, so it is no call")
    kinds = _few(item["type"] if isinstance(item.get("type"), str) else "no type" for item in held)
    there = f"only {kinds}" if held else "nothing"
    return Unreadable(
        f"there are no tool calls in it ({place or 'the list'} has {there})", "Give a response that calls tools."
    )


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)


def _few(words: Iterable[str]) -> str:
    """The first words, each once, shortened."""
    once = list(dict.fromkeys(word if len(word) <= 40 else word[:37] + "..." for word in words))
    return ", ".join(once[:6]) + (", ..." if len(once) > 6 else "")


def _kind(value: object) -> str:
    """What a value is, in JSON's words."""
    if value is MISSING:
        return "nothing"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, Mapping):
        return "an object"
    return "an array" if _is_list(value) else f"a Python {type(value).__name__}"
