"""Reads the calls out of a model's response; the response's shape shows the provider.

Rules.  Every call of the response becomes exactly one `ToolCall`, in the response's order, also where two carry
one id.  What is wrong with one call's input (its JSON, its type, that there is none) stays with that call: the
input goes on as it is and the runtime answers it INVALID.  What makes a call unanswerable (no name, no id to
answer to, a kind of call that is no function's) refuses the whole response: a model must not be left with a call
without an answer.  What the provider ran itself (web search, code execution, remote MCP) is no call of ours and
is passed over.

Limits.  A response of several alternatives (``n`` above 1) is refused when more than one of them calls tools.  A
stream's events are not a response; the provider's SDK makes one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from toolrt.errors import InputRefused
from toolrt.interop._format import Format
from toolrt.interop._json import NotStrictJSON, at, strict_json
from toolrt.interop._shape import MISSING, Unreadable, find_calls, format_of, wrong_value
from toolrt.model import ToolCall


@attrs.frozen
class Response:
    """The calls of one model response."""

    #: In the response's order, at least one; two may carry the same id.
    calls: tuple[ToolCall, ...]
    #: The response's own format; `render_results` takes it to answer in kind.
    format: Format
    #: The response's own id, for the ``batch_id`` of its batch; None: it has none, as a bare list of calls.
    response_id: str | None = None


def read_response(source: object) -> Response:
    """The calls of a response given as a JSON value, in its order.

    Understood, told apart by shape: an Anthropic message or its ``content``; an OpenAI response or its ``output``;
    a chat completion, its message, or that message's ``tool_calls``; a list of calls (``name``; ``input`` or
    ``arguments``, none being an empty object; ``call_id`` or ``id``, none being ``call_`` and the place in the
    list), or an object whose ``calls`` is that list.

    Args:
        source: what a JSON parser made of the response.  The inputs in it are passed on, not copied.

    Raises:
        InputRefused: it has another shape, no tool calls, or a call that could not be answered; the text says
            where.

    Example::

        read_response([{"name": "read_file", "input": {"path": "a.py"}}]).calls[0].call_id  # "call_0"
    """
    return read_named(source, "the response")


def read_named(source: object, what: str) -> Response:
    """As `read_response`; errors call the response `what`."""
    try:
        found = find_calls(source)
        read = _READERS[found.format]
        # Among calls of the first two formats stand text, thinking and the like; in the others all are calls.
        among_others = found.format in ("anthropic", "openai-responses")
        return Response(
            tuple(
                read(item, at(found.place, index), index)
                for index, item in enumerate(found.items)
                if not among_others or format_of(item) == found.format
            ),
            found.format,
            id_of(source),
        )
    except Unreadable as error:
        raise InputRefused(what, error.why, error.remedy) from None


def id_of(response: object) -> str | None:
    """The id that a provider gave a response; None: none."""
    found = response.get("id") if isinstance(response, Mapping) else None
    return found if isinstance(found, str) and found else None


def _tool_use(item: Mapping[Any, Any], place: str, index: int) -> ToolCall:
    return ToolCall(_text(item, "id", place), _text(item, "name", place), item.get("input"))


def _function_call(item: Mapping[Any, Any], place: str, index: int) -> ToolCall:
    return ToolCall(_text(item, "call_id", place), _text(item, "name", place), read_arguments(item.get("arguments")))


def _chat_call(item: Mapping[Any, Any], place: str, index: int) -> ToolCall:
    call_id = _text(item, "id", place)
    if item.get("type") == "custom":
        # Free text for a tool that takes it: ours take objects, and a refusal has the same form as an answer.
        custom = _object(item, "custom", place)
        return ToolCall(call_id, _text(custom, "name", at(place, "custom")), custom.get("input"))
    function = _object(item, "function", place)
    return ToolCall(call_id, _text(function, "name", at(place, "function")), read_arguments(function.get("arguments")))


def _plain_call(item: Mapping[Any, Any], place: str, index: int) -> ToolCall:
    if "input" in item and "arguments" in item:
        raise Unreadable(f"{place} has both input and arguments, and only one of them can be meant", "Keep one.")
    id_key = next((key for key in ("call_id", "id") if item.get(key) is not None), None)
    return ToolCall(
        f"call_{index}" if id_key is None else _text(item, id_key, place),
        _text(item, "name", place),
        item["input"] if "input" in item else read_arguments(item.get("arguments", {})),
    )


_READERS: Mapping[Format, Callable[[Mapping[Any, Any], str, int], ToolCall]] = {
    "anthropic": _tool_use,
    "openai-responses": _function_call,
    "openai-chat": _chat_call,
    "calls": _plain_call,
}


def read_arguments(value: Any) -> Any:
    """What a text of arguments says, an empty one that there are none; the text itself when it is not JSON."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        return {}
    try:
        return strict_json(value)
    except NotStrictJSON:
        return value


def _object(item: Mapping[Any, Any], key: str, place: str) -> Mapping[Any, Any]:
    value = item.get(key, MISSING)
    if not isinstance(value, Mapping):
        raise wrong_value(at(place, key), "an object", value)
    return value


def _text(item: Mapping[Any, Any], key: str, place: str) -> str:
    value = item.get(key, MISSING)
    if not isinstance(value, str):
        raise wrong_value(at(place, key), "a string", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Unreadable(
            f"{at(place, key)}: half of a surrogate pair is in it, which no UTF-8 text can send back",
            "Give the response as the API sent it.",
        ) from None
    return value
