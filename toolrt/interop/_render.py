"""From calls and results to the messages of a conversation, and from tools to their definitions in a request.

Rules.  One answer per result, in call order.  A result that is not OK says so in its text, ``[timed_out] ...``,
because two of the three APIs have no field for it, and because "it failed" and "it may have happened" are not the
same to a model.  What is rendered can always be sent: a string that UTF-8 cannot hold has the replacement
character where it cannot, a number that JSON has no name for is given by its text.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from toolrt._plain import NESTING_MOST, deeper_than, plain
from toolrt.errors import InputRefused
from toolrt.interop._format import named_format
from toolrt.model import File, Image, Tool, ToolCall, ToolResult
from toolrt.model._content import SHOWN, Part, data_url, in_base64, parts_of, words_of

#: A JSON value: one message, or several items to append to the conversation.
Rendered = dict[str, Any] | list[dict[str, Any]]

#: The one kind of file beside pictures and text that models read.
_PDF = "application/pdf"

_TOO_DEEP = f"content nested in more than {NESTING_MOST} levels, which is not sent"


def render_results(results: Sequence[ToolResult], format: str) -> Rendered:
    """What to send back so that the model sees these results, one each, in call order.

    Content that is not a string goes as compact JSON; no content, as no text.  Parts (`toolrt.Image`, `toolrt.File`)
    go in the form that the format has for them, and in words where it has none.  An outcome other than OK stands before
    the error, and what content there is follows on the next line.

    Args:
        results: of one batch.
        format: "anthropic": one user message; "openai-responses" or "openai": function call outputs;
            "openai-chat" or "chat": tool messages; "calls" or "json": each result's `ToolResult.to_json`.

    Raises:
        InputRefused: there is no such format, or two results answer one call.

    Ordering: by call_index, whatever order they are given in.
    """
    known = named_format(format)
    ordered = sorted(results, key=lambda result: result.call_index)
    for one, next_ in itertools.pairwise(ordered):
        if one.call_index == next_.call_index:
            raise InputRefused(
                "the results", f"two of them answer call {one.call_index}", "Give the results of one batch."
            )
    if known == "anthropic":
        return {"role": "user", "content": [_tool_result(result) for result in ordered]}
    if known == "openai-responses":
        return [
            {"type": "function_call_output", "call_id": result.call_id, "output": shown(result, _of_responses)}
            for result in ordered
        ]
    if known == "openai-chat":
        return [{"role": "tool", "tool_call_id": result.call_id, "content": _text_of(result)} for result in ordered]
    return [
        {**_sendable(attrs.evolve(result, content=None).to_json()), "content": _content(result)} for result in ordered
    ]


def render_calls(calls: Sequence[ToolCall], format: str) -> Rendered:
    """The calls as the model said them: what stands before their results in a conversation.

    It is for a reply that broke off: a `Journal` has its calls.  The text and the thinking around them are not there.

    Args:
        calls: of one response, in call order.
        format: as `render_results`; "calls" gives call_id, name and input.

    Raises:
        InputRefused: there is no such format.

    Ordering: as `calls`.

    Example::

        asked = await journal.calls(batch_id)
        done = await runtime.resume(batch_id)
        messages += [render_calls(asked, "anthropic"), render_results(done.results, "anthropic")]
    """
    known = named_format(format)
    if known == "anthropic":
        content = [
            {"type": "tool_use", "id": call.call_id, "name": call.name, "input": _as_object(call.input)}
            for call in calls
        ]
        return {"role": "assistant", "content": content}
    if known == "calls":
        return [{"call_id": call.call_id, "name": call.name, "input": _sendable(plain(call.input))} for call in calls]
    functions = [{"name": call.name, "arguments": _arguments(call.input)} for call in calls]
    told = list(zip(calls, functions, strict=True))
    if known == "openai-responses":
        return [{"type": "function_call", "call_id": call.call_id, **function} for call, function in told]
    made = [{"id": call.call_id, "type": "function", "function": function} for call, function in told]
    return {"role": "assistant", "content": None, "tool_calls": made}


def _as_object(input: Any) -> dict[str, Any]:
    """An input as the API of Anthropic takes one: what is no object goes under ``INVALID_JSON``."""
    return _sendable(plain(input)) if isinstance(input, Mapping) else {"INVALID_JSON": _arguments(input)}


def _arguments(input: Any) -> str:
    return _utf8(input) if isinstance(input, str) else json.dumps(_sendable(plain(input)), ensure_ascii=False)


def render_tools(tools: Iterable[Tool], format: str) -> list[dict[str, Any]]:
    """The definitions of these tools, as a request's ``tools`` takes them.

    OpenAI's ``strict`` is off: it admits no optional fields, and inputs are checked strictly here anyway.

    Args:
        tools: a registry, or some of its tools.
        format: as `render_results`; "calls" gives name, description and input_schema.

    Raises:
        InputRefused: there is no such format.

    Ordering: the registry's.
    """
    known = named_format(format)
    rendered: list[dict[str, Any]] = []
    for tool in tools:
        told: dict[str, Any] = {"name": tool.name, "description": tool.description}
        schema = _sendable(plain(tool.schema, str))
        if known == "openai-responses":
            rendered.append({"type": "function", **told, "parameters": schema, "strict": False})
        elif known == "openai-chat":
            rendered.append({"type": "function", "function": {**told, "parameters": schema}})
        else:
            rendered.append({**told, "input_schema": schema})
    return rendered


def _tool_result(result: ToolResult) -> dict[str, Any]:
    content = shown(result, _of_anthropic)
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call_id, "content": content}
    if not result.ok:
        block["is_error"] = True
    return block


def shown(result: ToolResult, form: Callable[[Part], dict[str, Any]]) -> str | list[dict[str, Any]]:
    """The content as a format has it: its text, or its parts where it has such.

    A failure is told in words: the API of Anthropic takes no pictures with one.
    """
    parts = parts_of(result.content) if result.ok else None
    return _text_of(result) if parts is None else [_sendable(form(part)) for part in parts]


def _of_anthropic(part: Part) -> dict[str, Any]:
    if isinstance(part, Image | File):
        source = {"type": "base64", "media_type": part.media_type, "data": in_base64(part.data)}
        if isinstance(part, Image) and part.media_type in SHOWN:
            return {"type": "image", "source": source}
        if part.media_type == _PDF:
            return {"type": "document", "source": source}
    return {"type": "text", "text": part.in_words()}


def _of_responses(part: Part) -> dict[str, Any]:
    if isinstance(part, Image) and part.media_type in SHOWN:
        return {"type": "input_image", "image_url": data_url(part), "detail": "auto"}
    if isinstance(part, File) and part.media_type == _PDF:
        return {"type": "input_file", "filename": part.name, "file_data": data_url(part)}
    return {"type": "input_text", "text": part.in_words()}


def _text_of(result: ToolResult) -> str:
    parts = parts_of(result.content)
    content = _content(result) if parts is None else _utf8(words_of(parts))
    if content is None:
        text = ""
    elif isinstance(content, str):
        text = content
    else:
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    if result.ok:
        return text
    failure = _utf8(f"[{result.outcome.value}] {result.error or ''}".rstrip())
    return f"{failure}\n{text}" if text else failure


def _content(result: ToolResult) -> Any:
    """The content as JSON can send it."""
    if type(result.content) is str:
        return _utf8(result.content)
    # A value that holds itself, is nested without end or cannot be read must not cost the other calls their answers.
    try:
        is_too_deep = deeper_than(result.content, NESTING_MOST)
    except Exception:
        is_too_deep = False
    if is_too_deep:
        return f"({_TOO_DEEP}: a {type(result.content).__name__})"
    return _sendable(plain(result.content, str))


def _sendable(value: Any) -> Any:
    if isinstance(value, str):
        return _utf8(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {_utf8(key): _sendable(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_sendable(part) for part in value]
    return value


def _utf8(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        # Halves that meet become the character they were halves of.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
