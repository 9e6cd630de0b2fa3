"""The Anthropic SDK: a streamed reply of the Messages API runs as a batch while the model still speaks.

``await run(runtime, client.messages.create(..., tools=tools(runtime), stream=True))`` gives the turn whose ``messages``
the next request adds.  It is awaited from asyncio and from Trio alike.  See docs/how-to/anthropic.md.

Rules.
    1. A call is complete at its ``content_block_stop``.  Where it has no text of arguments, the next event tells
       whether the tool is called without any or the model was cut off.
    2. What the API sends in a block goes back as it came: thinking with its signature, blocks of server tools,
       citations.  Blocks of text without any text are left out, because the API refuses them.
    3. Arguments that are no JSON object go back as ``{"INVALID_JSON": text}``, because the API takes objects only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolrt.errors import StreamBroken
from toolrt.interop._response import id_of, read_arguments
from toolrt.model import Registry, State, Tool
from toolrt.plugins._turn import ModelTurn, SpokenCall, as_json, declared, kind_of, run_turn
from toolrt.runtime import Batch, Runtime

__all__ = ["AnthropicTurn", "run", "tools"]

#: Why a reply stops in the middle of a block.
_CUT = ("max_tokens", "model_context_window_exceeded", "refusal")

#: Fields of a delta that go on with what the block has; the others are its value.
_GROWING = ("text", "thinking")

_READ = ("content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop")


class AnthropicTurn(ModelTurn):
    """One streamed message: its content, its calls and their results."""

    FORMAT = "anthropic"
    REPLY = "the message of the Anthropic API"

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        #: The blocks so far, by index.
        self._blocks: dict[int, dict[str, Any]] = {}
        #: Those that have stopped, by index.
        self._stopped: dict[int, dict[str, Any]] = {}
        #: The text of JSON in a block that is no call of ours, by index.
        self._texts: dict[int, str] = {}
        self._call_of: dict[int, SpokenCall] = {}
        #: A call that stopped without any text of arguments.
        self._bare: SpokenCall | None = None

    @property
    def waits(self) -> bool:
        """Whether the model goes on when it is sent `messages`: it called tools, or paused its turn."""
        return self.has_calls or self.stop == "pause_turn"

    @property
    def spoken(self) -> list[dict[str, Any]]:
        """The assistant's message, in a list; an empty list if it said nothing."""
        content = [block for index, block in sorted(self._stopped.items()) if self._is_sendable(index, block)]
        return [{"role": "assistant", "content": content}] if content else []

    def _is_sendable(self, index: int, block: Mapping[str, Any]) -> bool:
        call = self._call_of.get(index)
        if call is not None:
            return call.call is not None
        return block.get("type") != "text" or bool(block.get("text"))

    @classmethod
    def _id_in(cls, event: Any) -> str | None:
        return id_of(as_json(event).get("message")) if kind_of(event) == "message_start" else None

    def _read(self, event: Any) -> None:
        kind = kind_of(event)
        if kind not in _READ:
            return
        if kind != "content_block_stop":
            event = as_json(event)
        if kind == "content_block_start":
            self._settle(cut=False)
            self._start(event["index"], dict(event["content_block"]))
        elif kind == "content_block_delta":
            self._grow(self._known(event["index"]), event["delta"])
        elif kind == "content_block_stop":
            self._end_block(self._known(event["index"] if isinstance(event, Mapping) else event.index))
        elif kind == "message_delta":
            self.stop = event["delta"].get("stop_reason") or self.stop
            if self.stop is not None:
                self._settle(cut=self.stop in _CUT)
        else:
            self._settle(cut=self.stop in _CUT)
            for index in [index for index in self._blocks if index not in self._stopped]:
                self._end_block(index)
            self._settle(cut=True)
            self._is_over = True

    def _start(self, index: int, block: dict[str, Any]) -> None:
        self._blocks[index] = block
        if block.get("type") == "tool_use":
            self._call_of[index] = self._begin(block.get("id"), block.get("name"))

    def _known(self, index: int) -> int:
        if index not in self._blocks:
            raise StreamBroken(self.REPLY, f"the start of block {index} is missing")
        return index

    def _grow(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self._blocks[index]
        for field, value in delta.items():
            if field == "partial_json":
                self._texts[index] = self._texts.get(index, "") + value
            elif field == "citation":
                block["citations"] = [*(block.get("citations") or []), value]
            elif field in _GROWING:
                block[field] = (block.get(field) or "") + value
            elif field != "type":
                block[field] = value

    def _end_block(self, index: int) -> None:
        block, text = self._blocks[index], self._texts.get(index, "")
        self._stopped[index] = block
        call = self._call_of.get(index)
        if call is None:
            if text.strip():
                block["input"] = _object_of(text)
            return
        if not text.strip() and block.get("input"):
            text = json.dumps(block["input"])  # some servers send it at once, with the start of the block
        call.text = text
        if text.strip():
            call.is_complete = True
            block["input"] = _object_of(text)
        else:
            self._bare = call

    def _settle(self, cut: bool) -> None:
        """Take the call without arguments as it is, now that the reply has gone on or stopped."""
        if self._bare is not None:
            self._bare.is_cut = cut
            self._bare.is_complete = True
            self._bare = None


def _object_of(text: str) -> Any:
    value = read_arguments(text)
    return value if isinstance(value, dict) else {"INVALID_JSON": text}


def tools(tools: Runtime | Registry | Iterable[Tool]) -> list[dict[str, Any]]:
    """What a request's ``tools`` takes: the tools of a runtime, of a registry, or these.

    Ordering: the registry's.
    """
    return declared(tools, "anthropic")


async def run(
    runtime: Runtime,
    stream: Any,
    state: State | None = None,
    *,
    on_event: Callable[[Any], object] | None = None,
    batch_id: str | None = None,
) -> AnthropicTurn:
    """Run the calls of a streamed message as one batch that starts them while the model still speaks.

    Args:
        runtime: whose tools, lanes and limit are used.
        stream: ``client.messages.create(..., stream=True)`` of an ``AsyncAnthropic``, awaited or not, or
            ``client.messages.stream(...)``.
        state: the state the first lane starts from; the empty one by default.
        on_event: called with each event after it was read, to show text as it comes.
        batch_id: names the batch; with a journal, what `Runtime.resume` is given after a crash.  None: the id that the
            API gives the message.

    Returns:
        The turn; its batch is over.

    Raises:
        StreamBroken: the stream ended before the message did; the batch was cancelled.
        InputRefused: a call has no id or no name; the batch was cancelled.
        DefinitionRefused: `stream` is no stream of an asynchronous client, or `runtime` no runtime.
        Exception: what the SDK raises goes out as it is; the batch was cancelled.

    Checkpoint: always.

    Ordering: calls are submitted in the order of the message.

    Example::

        turn = await run(runtime, client.messages.create(..., tools=tools(runtime), stream=True))
        messages += turn.messages
    """
    return await run_turn(AnthropicTurn, runtime, stream, state, on_event, batch_id)
