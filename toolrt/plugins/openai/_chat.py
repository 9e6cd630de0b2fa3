"""A streamed chat completion of the OpenAI API, read into a batch; many other servers speak it, too.

Rules.
    1. The API does not say when the arguments of a call are complete.  They are complete where the text is one whole
       JSON object, brace by brace; text after it is passed over.  Text that is no whole object is complete when the
       model stops.  So the way the text was cut into chunks decides nothing.
    2. Of several choices (``n`` above 1), one may call tools: a second one that does is refused.
    3. What the API sends goes back as it came, also fields that OpenAI does not have (reasoning, thought signatures).

Limits.  The old ``function_call`` is refused: its answer has another form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from toolrt.errors import InputRefused
from toolrt.interop._response import id_of
from toolrt.model import Registry, State, Tool
from toolrt.plugins._turn import ModelTurn, SpokenCall, as_json, declared, kind_of, run_turn
from toolrt.runtime import Batch, Runtime


@attrs.define(eq=False)
class _ChatCall:
    """A call, as the message that goes back has it."""

    call: SpokenCall
    item: dict[str, Any]
    #: The text of arguments, with what stands after the first whole object.
    text: str = ""
    #: How many braces and brackets are open.
    depth: int = 0
    is_in_string: bool = False
    is_escaped: bool = False

    def grow(self, text: str) -> None:
        """Take more of the arguments."""
        self.text += text
        for place, character in enumerate(text):
            if self.call.is_complete:
                return
            if self.is_in_string:
                if self.is_escaped:
                    self.is_escaped = False
                elif character == "\\":
                    self.is_escaped = True
                elif character == '"':
                    self.is_in_string = False
            elif character == '"':
                self.is_in_string = True
            elif character in "{[":
                self.depth += 1
            elif character in "}]":
                self.depth -= 1
                if self.depth == 0:
                    self.call.text = self.text[: len(self.text) - len(text) + place + 1]
                    self.call.is_complete = True

    def end(self, cut: bool) -> None:
        """Take the arguments as they are: no more will come."""
        if not self.call.is_complete:
            self.call.text = self.text
            self.call.is_cut = cut and not self.text.strip()
            self.call.is_complete = True


class ChatTurn(ModelTurn):
    """One streamed chat completion: its message, its calls and their results."""

    FORMAT = "openai-chat"
    REPLY = "the chat completion"

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        #: The message of each choice, without its calls.
        self._messages: dict[int, dict[str, Any]] = {}
        #: The choice that calls tools; None until one does.
        self._calling: int | None = None
        self._chat_calls: list[_ChatCall] = []
        #: The call that a delta of this index goes on with.
        self._at: dict[Any, _ChatCall] = {}

    @property
    def spoken(self) -> list[dict[str, Any]]:
        """The assistant's message, in a list; an empty list if it said nothing."""
        message = dict(self._messages.get(self._calling or 0, {}))
        calls = [
            {**one.item, "function": {"name": one.call.name, "arguments": one.text}}
            for one in self._chat_calls
            if one.call.call is not None
        ]
        if calls:
            message["tool_calls"] = calls
        return [{"role": "assistant", "content": None, **message}] if message else []

    @classmethod
    def _id_in(cls, event: Any) -> str | None:
        return id_of(as_json(event.chunk if kind_of(event) == "chunk" else event))

    def _read(self, event: Any) -> None:
        if kind_of(event) == "chunk":  # of the helper `client.chat.completions.stream`
            event = event.chunk
        for choice in as_json(event).get("choices") or []:
            index, delta = choice.get("index") or 0, choice.get("delta") or {}
            if delta.get("function_call"):
                raise InputRefused(self.REPLY, "it has the old function_call", 'Declare "tools" in the request.')
            message = self._messages.setdefault(index, {})
            for field, value in delta.items():
                if isinstance(value, str) and field != "role":
                    message[field] = message.get(field, "") + value
            for part in delta.get("tool_calls") or []:
                self._grow(index, part)
            if choice.get("finish_reason") is not None:
                self._finish(index, choice["finish_reason"])

    def _grow(self, choice: int, delta: Mapping[str, Any]) -> None:
        if self._calling is None:
            self._calling, self._is_over = choice, False
        elif self._calling != choice:
            raise InputRefused(
                self.REPLY, f"choices {self._calling} and {choice} both call tools", "Ask for one choice."
            )
        index, call_id = delta.get("index"), delta.get("id")
        function = delta.get("function") or {}
        chat = self._at.get(index)
        # Some servers give every call the same index, or none: a new id is a new call.
        if chat is None or (call_id and chat.call.call_id not in (None, call_id)):
            chat = _ChatCall(self._begin(None, None), {"type": "function"})
            self._chat_calls.append(chat)
        self._at[index] = chat
        if call_id:
            chat.call.call_id = call_id
        if function.get("name") and function["name"] != chat.call.name:
            chat.call.name = (chat.call.name or "") + function["name"]
        chat.item.update(
            {key: value for key, value in delta.items() if key not in ("index", "function") and value is not None}
        )
        arguments = function.get("arguments")
        if arguments:
            chat.grow(arguments if isinstance(arguments, str) else json.dumps(arguments))

    def _finish(self, choice: int, reason: str) -> None:
        if self._calling in (None, choice):
            self.stop = reason
            for chat in self._chat_calls:
                chat.end(cut=reason in ("length", "content_filter"))
            self._is_over = True


def chat_tools(tools: Runtime | Registry | Iterable[Tool]) -> list[dict[str, Any]]:
    """What the ``tools`` of a request to Chat Completions takes: the tools of a runtime, of a registry, or these.

    Ordering: the registry's.
    """
    return declared(tools, "openai-chat")


async def run_chat(
    runtime: Runtime,
    stream: Any,
    state: State | None = None,
    *,
    on_event: Callable[[Any], object] | None = None,
    batch_id: str | None = None,
) -> ChatTurn:
    """Run the calls of a streamed chat completion as one batch that starts them while the model still speaks.

    Args:
        runtime: whose tools, lanes and limit are used.
        stream: ``client.chat.completions.create(..., stream=True)`` of an ``AsyncOpenAI``, awaited or not, or
            ``client.chat.completions.stream(...)``.
        state: the state the first lane starts from; the empty one by default.
        on_event: called with each event after it was read, to show text as it comes.
        batch_id: names the batch; with a journal, what `Runtime.resume` is given after a crash.  None: the id that the
            API gives the completion.

    Returns:
        The turn; its batch is over.

    Raises:
        StreamBroken: the stream ended before the completion did; the batch was cancelled.
        InputRefused: a call has no id or no name, or two choices call tools; the batch was cancelled.
        DefinitionRefused: `stream` is no stream of an asynchronous client, or `runtime` no runtime.
        Exception: what the SDK raises goes out as it is; the batch was cancelled.

    Checkpoint: always.

    Ordering: calls are submitted in the order of the completion.

    Example::

        turn = await run_chat(runtime, client.chat.completions.create(..., tools=chat_tools(runtime), stream=True))
        messages += turn.messages
    """
    return await run_turn(ChatTurn, runtime, stream, state, on_event, batch_id)
