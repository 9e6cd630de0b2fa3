"""A model that was recorded: the real clients of both SDKs, answered from memory, so that the examples need no key.

The model looks at two files, edits one of them twice, and says that it is done.  Its bytes come in small pieces.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anyio
import httpx2

#: A call: its id, its tool and its input.
Call = tuple[str, str, dict[str, Any]]

#: What the model says in each turn: a text and calls.
TURNS: list[tuple[str, list[Call]]] = [
    (
        "I look at the files.",
        [
            ("call_0", "read_file", {"path": "shop/cart.py"}),
            ("call_1", "read_file", {"path": "shop/prices.py"}),
        ],
    ),
    (
        "Two edits of one file.",
        [
            ("call_2", "edit_file", {"path": "shop/cart.py", "old": "SHIPPING = 4.90", "new": "SHIPPING = 5.90"}),
            ("call_3", "edit_file", {"path": "shop/basket.py", "old": "= 5.90", "new": "= 6.90"}),
        ],
    ),
    ("Shipping costs 6.90 now.", []),
]


def anthropic_client() -> Any:
    """An `anthropic.AsyncAnthropic` that the recorded model answers."""
    import anthropic

    return _client(anthropic.AsyncAnthropic, _anthropic)


def openai_client() -> Any:
    """An `openai.AsyncOpenAI` that the recorded model answers, on Responses and on Chat Completions."""
    import openai

    return _client(openai.AsyncOpenAI, _openai)


def _client(kind: Callable[..., Any], speak: Callable[[str, list[Call], bool], Iterator[dict[str, Any]]]) -> Any:
    turns = iter(TURNS)

    def answer(request: httpx2.Request) -> httpx2.Response:
        text, calls = next(turns)
        events = speak(text, calls, request.url.path.endswith("/chat/completions"))
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=_Body(events))

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    return kind(api_key="none", http_client=http, base_url="http://model.invalid")


class _Body(httpx2.AsyncByteStream):
    """Events as they come over the wire, in pieces of 40 bytes."""

    def __init__(self, events: Iterator[dict[str, Any]]) -> None:
        self._events = events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for event in self._events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            data = f"{name}data: {json.dumps(event)}\n\n".encode()
            for start in range(0, len(data), 40):
                await anyio.sleep(0.001)
                yield data[start : start + 40]


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + 12] for start in range(0, len(text), 12))


def _anthropic(text: str, calls: list[Call], chat: bool) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg", "type": "message", "role": "assistant", "model": "recorded", "content": []}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    blocks: list[tuple[dict[str, Any], str, str, str]] = [({"type": "text", "text": ""}, "text_delta", "text", text)]
    for call_id, name, given in calls:
        block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        blocks.append((block, "input_json_delta", "partial_json", json.dumps(given)))
    for index, (block, kind, field, whole) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for piece in _pieces(whole):
            yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: piece}}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": usage}
    yield {"type": "message_stop"}


def _openai(text: str, calls: list[Call], chat: bool) -> Iterator[dict[str, Any]]:
    return _chat(text, calls) if chat else _responses(text, calls)


def _responses(text: str, calls: list[Call]) -> Iterator[dict[str, Any]]:
    response = {"id": "resp", "object": "response", "created_at": 0, "model": "recorded", "output": [], "tools": []}
    response |= {"parallel_tool_calls": True, "tool_choice": "auto"}
    yield {"type": "response.created", "sequence_number": 0, "response": {**response, "status": "in_progress"}}
    message = {"type": "message", "id": "msg", "role": "assistant", "status": "in_progress", "content": []}
    yield {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": message}
    part = {"type": "output_text", "text": text, "annotations": []}
    done = {**message, "status": "completed", "content": [part]}
    yield {"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": done}
    for index, (call_id, name, given) in enumerate(calls, 1):
        item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": ""}
        place = {"sequence_number": index, "output_index": index}
        yield {"type": "response.output_item.added", **place, "item": {**item, "status": "in_progress"}}
        for piece in _pieces(json.dumps(given)):
            kind = "response.function_call_arguments.delta"
            yield {"type": kind, **place, "item_id": item["id"], "delta": piece}
        whole = {**item, "arguments": json.dumps(given), "status": "completed"}
        yield {"type": "response.output_item.done", **place, "item": whole}
    yield {"type": "response.completed", "sequence_number": 99, "response": {**response, "status": "completed"}}


def _chat(text: str, calls: list[Call]) -> Iterator[dict[str, Any]]:
    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "recorded", "choices": [choice]}

    yield chunk({"role": "assistant", "content": text})
    for index, (call_id, name, given) in enumerate(calls):
        first = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        yield chunk({"tool_calls": [first]})
        for piece in _pieces(json.dumps(given)):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls" if calls else "stop")
