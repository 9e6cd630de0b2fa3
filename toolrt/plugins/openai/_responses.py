"""A streamed response of the OpenAI Responses API, read into a batch.

Rules.
    1. A call is complete at ``response.function_call_arguments.done``, or at its item's ``response.output_item.done``.
       Where it has no text of arguments, its item tells whether the model was cut off.
    2. What the API sends as an item goes back as it came: messages, reasoning, calls of hosted tools.
    3. An item that the program has to answer and no function's result can (a custom tool's call, a computer's, a
       request to approve) stands in ``unanswered``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolrt.errors import StreamBroken
from toolrt.interop._response import id_of
from toolrt.interop._shape import OTHER_CALLS
from toolrt.model import Registry, State, Tool
from toolrt.plugins._turn import ModelTurn, SpokenCall, as_json, declared, kind_of, run_turn
from toolrt.runtime import Batch, Runtime

_ADDED = "response.output_item.added"
_DONE = "response.output_item.done"
_ARGUMENTS = "response.function_call_arguments.done"
_ENDS = ("response.completed", "response.incomplete", "response.failed")


class ResponsesTurn(ModelTurn):
    """One streamed response: its items, its calls and their results.

    The next request takes `messages`; with ``previous_response_id=turn.response_id`` it takes `answers` alone.
    """

    FORMAT = "openai-responses"
    REPLY = "the response of the OpenAI API"

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        #: The response's id; None until the reply is over.
        self.response_id: str | None = None
        #: The items that are done, by their place.
        self._items: dict[int, Mapping[str, Any]] = {}
        self._call_of: dict[int, SpokenCall] = {}

    @property
    def spoken(self) -> list[dict[str, Any]]:
        """The items that the model gave."""
        return [
            dict(item)
            for index, item in sorted(self._items.items())
            if index not in self._call_of or self._call_of[index].call is not None
        ]

    @property
    def unanswered(self) -> list[dict[str, Any]]:
        """Items that the program has to answer itself, beside `answers`."""
        spoken = self.spoken
        answered = [item.get("call_id") for item in spoken if str(item.get("type")).endswith("_output")]
        return [item for item in spoken if item.get("type") in OTHER_CALLS and item.get("call_id", "") not in answered]

    @classmethod
    def _id_in(cls, event: Any) -> str | None:
        return id_of(as_json(event).get("response")) if kind_of(event) == "response.created" else None

    def _read(self, event: Any) -> None:
        kind = kind_of(event)
        if kind == _ADDED:
            event = as_json(event)
            self._added(event["output_index"], event.get("item") or {})
        elif kind == _ARGUMENTS:
            event = as_json(event)
            call = self._call_of.get(event["output_index"])
            if call is not None and event["arguments"].strip():
                self._complete(call, event["arguments"], cut=False)
        elif kind == _DONE:
            event = as_json(event)
            self._done(event["output_index"], event["item"])
        elif kind in _ENDS:
            self._ended(as_json(event)["response"])
        elif kind == "error":
            event = as_json(event)
            raise StreamBroken(self.REPLY, f"it failed: {event.get('message') or event}")

    def _added(self, index: int, item: Mapping[str, Any]) -> None:
        if item.get("type") == "function_call" and index not in self._call_of:
            self._call_of[index] = self._begin(item.get("call_id"), item.get("name"))

    def _done(self, index: int, item: Mapping[str, Any]) -> None:
        self._items[index] = item
        self._added(index, item)  # where the stream did not say so before
        call = self._call_of.get(index)
        if call is not None:
            text = item.get("arguments")
            self._complete(call, text if isinstance(text, str) else "", cut=item.get("status") == "incomplete")

    def _complete(self, call: SpokenCall, text: str, cut: bool) -> None:
        if not call.is_complete:
            call.text = text
            call.is_cut = cut and not text.strip()
            call.is_complete = True

    def _ended(self, response: Mapping[str, Any]) -> None:
        self.stop = response.get("status")
        self.response_id = response.get("id")
        if self.stop == "failed":
            error = response.get("error") or {}
            raise StreamBroken(self.REPLY, f"it failed: {error.get('message') or 'the API gives no reason'}")
        if self.stop == "incomplete":
            self.stop = (response.get("incomplete_details") or {}).get("reason") or self.stop
        for index, item in enumerate(response.get("output") or []):
            if index not in self._items:
                self._done(index, item)
        for call in self._calls:
            self._complete(call, call.text, cut=True)
        self._is_over = True


def tools(tools: Runtime | Registry | Iterable[Tool]) -> list[dict[str, Any]]:
    """What the ``tools`` of a request to Responses takes: the tools of a runtime, of a registry, or these.

    Ordering: the registry's.
    """
    return declared(tools, "openai-responses")


async def run(
    runtime: Runtime,
    stream: Any,
    state: State | None = None,
    *,
    on_event: Callable[[Any], object] | None = None,
    batch_id: str | None = None,
) -> ResponsesTurn:
    """Run the calls of a streamed response as one batch that starts them while the model still speaks.

    Args:
        runtime: whose tools, lanes and limit are used.
        stream: ``client.responses.create(..., stream=True)`` of an ``AsyncOpenAI``, awaited or not, or
            ``client.responses.stream(...)``.
        state: the state the first lane starts from; the empty one by default.
        on_event: called with each event after it was read, to show text as it comes.
        batch_id: names the batch; with a journal, what `Runtime.resume` is given after a crash.  None: the id that the
            API gives the response.

    Returns:
        The turn; its batch is over.

    Raises:
        StreamBroken: the response failed, or its stream ended before it did; the batch was cancelled.
        InputRefused: a call has no id or no name; the batch was cancelled.
        DefinitionRefused: `stream` is no stream of an asynchronous client, or `runtime` no runtime.
        Exception: what the SDK raises goes out as it is; the batch was cancelled.

    Checkpoint: always.

    Ordering: calls are submitted in the order of the response.

    Example::

        turn = await run(runtime, client.responses.create(..., tools=tools(runtime), stream=True))
        items += turn.messages
    """
    return await run_turn(ResponsesTurn, runtime, stream, state, on_event, batch_id)
