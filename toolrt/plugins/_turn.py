"""One reply of a model, read into an open batch while it streams: what the adapters of SDKs share.

Rules.
    1. A call is submitted when its arguments are complete and every earlier call of the reply is submitted.  So calls
       start while the model still speaks, and calls, tickets and results are in the order of the reply.
    2. A call whose arguments are no JSON object, or are cut off, is submitted too: the runtime answers it INVALID.
    3. An exception of the stream leaves the batch's block, and that cancels the batch: each call that was submitted is
       answered.  A stream that ends before the reply does raises `StreamBroken`.
    4. No adapter imports its SDK: it reads the fields of events, and the same events as JSON objects.
    5. With a journal the batch is named by the reply's own id, which its first event has, unless the caller names it:
       so the journal has the calls of a reply under the id by which the API knows it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar

import attrs
import trio

from toolrt import aio
from toolrt.errors import DefinitionRefused, StreamBroken
from toolrt.interop import Format, read_response, render_results, render_tools
from toolrt.model import Registry, State, Tool, ToolCall
from toolrt.runtime import Batch, Runtime

T = TypeVar("T", bound="ModelTurn")


@attrs.define(eq=False)
class SpokenCall:
    """A call of a reply, while its arguments arrive."""

    call_id: Any
    name: Any
    #: The text of its arguments so far.
    text: str = ""
    #: Whether no more of its arguments will come.
    is_complete: bool = False
    #: Whether the reply ended before the model gave any arguments.
    is_cut: bool = False
    #: What was submitted; None until then.
    call: ToolCall | None = None

    def submitted(self) -> ToolCall:
        """Read the arguments.

        Raises:
            InputRefused: the call has no name or no id, so it cannot be answered.
        """
        arguments = None if self.is_cut else self.text
        item = {"type": "function_call", "call_id": self.call_id, "name": self.name, "arguments": arguments}
        self.call = read_response([item]).calls[0]
        return self.call


class ModelTurn(ABC):
    """What a model says in one streamed reply, and the answers to its calls.

    Args:
        batch: an open batch, of Trio or of `toolrt.aio`; the turn submits the calls of the reply to it.
    """

    #: The format of its messages: see `toolrt.interop.named_format`.
    FORMAT: ClassVar[Format]
    #: What errors call the reply.
    REPLY: ClassVar[str]

    def __init__(self, batch: Batch) -> None:
        #: The batch that runs the calls.
        self.batch = batch
        #: Why the model stopped, in the API's own word; None until it says so.
        self.stop: str | None = None
        self._calls: list[SpokenCall] = []
        self._submitted = 0
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether the whole reply has arrived."""
        return self._is_over

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that were submitted, in the order of the reply."""
        return tuple(spoken.call for spoken in self._calls if spoken.call is not None)

    @property
    def has_calls(self) -> bool:
        """Whether the model called a tool, so that it waits for `answers`."""
        return self._submitted > 0

    @property
    @abstractmethod
    def spoken(self) -> list[dict[str, Any]]:
        """What the model said, as the messages or items of the next request; of its calls, the submitted ones."""

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The results of its calls, as the messages or items of the next request, in call order.

        Raises:
            BatchClosed: the batch is not over.
        """
        results = self.batch.outcome.results
        rendered = render_results(results, self.FORMAT) if results else []
        return [rendered] if isinstance(rendered, dict) else rendered

    @property
    def messages(self) -> list[dict[str, Any]]:
        """`spoken` and `answers`: what the next request has more than this one.

        Raises:
            BatchClosed: the batch is not over.
        """
        return [*self.spoken, *self.answers]

    def feed(self, event: Any) -> None:
        """Read one event of the stream, and submit the calls that are complete by it.

        Args:
            event: an event of the SDK, or its JSON object.

        Raises:
            InputRefused: a call of the reply cannot be answered.
            StreamBroken: the event says that the reply failed.
            BatchClosed: the batch takes no more calls.

        Checkpoint: never.

        Ordering: calls are submitted in the order of the reply.
        """
        self._read(event)
        while self._submitted < len(self._calls) and self._calls[self._submitted].is_complete:
            self.batch.submit(self._calls[self._submitted].submitted())
            self._submitted += 1

    def end(self) -> None:
        """Say that the stream has ended.

        Raises:
            StreamBroken: the reply was not over.

        Checkpoint: never.
        """
        if not self._is_over:
            raise StreamBroken(self.REPLY, "its stream ended before the reply was over")

    async def hear(self, stream: Any, on_event: Callable[[Any], object] | None = None) -> None:
        """Read a whole stream with `feed`, close it, and check with `end` that the reply was over.

        Args:
            stream: what the SDK's asynchronous client gives for a streamed request, awaited or not, or its context
                manager; or any asynchronous iterator of events.
            on_event: called with each event after it was read, to show text as it comes.

        Raises:
            DefinitionRefused: `stream` is nothing of this kind.
            InputRefused: as `feed`.
            StreamBroken: as `feed` and `end`.
            Exception: what the SDK raises goes out as it is.

        Checkpoint: always.
        """
        async with _events_of(stream, self.REPLY) as events:
            await self._hear(events, on_event)

    async def _hear(self, events: AsyncIterator[Any], on_event: Callable[[Any], object] | None) -> None:
        """Read the events of an open stream, and check that the reply was over.

        Checkpoint: as `events` do.
        """
        async for event in events:
            self._take(event, on_event)
        self.end()

    def _take(self, event: Any, on_event: Callable[[Any], object] | None) -> None:
        self.feed(event)
        if on_event is not None:
            on_event(event)

    @classmethod
    @abstractmethod
    def _id_in(cls, event: Any) -> str | None:
        """The id of the reply, if the event has it."""

    @abstractmethod
    def _read(self, event: Any) -> None:
        """Take what the event says."""

    def _begin(self, call_id: Any, name: Any) -> SpokenCall:
        call = SpokenCall(call_id, name)
        self._calls.append(call)
        return call


@contextlib.asynccontextmanager
async def _events_of(stream: Any, reply: str) -> AsyncIterator[AsyncIterator[Any]]:
    """The events of what `ModelTurn.hear` takes for a stream; it is closed when the block is left.

    Checkpoint: as the stream does.
    """
    async with contextlib.AsyncExitStack() as stack:
        if inspect.isawaitable(stream):
            stream = await stream
        if hasattr(stream, "__aenter__"):
            stream = await stack.enter_async_context(stream)
        # The helpers `stream()` of both SDKs parse arguments themselves, and raise where those are malformed.
        events = getattr(stream, "_raw_stream", stream)
        if not hasattr(events, "__aiter__"):
            raise DefinitionRefused(f"the stream of {reply}", "a stream of an asynchronous client", stream)
        yield aiter(events)


async def run_turn(
    kind: type[T],
    runtime: Runtime,
    stream: Any,
    state: State | None,
    on_event: Callable[[Any], object] | None,
    batch_id: str | None = None,
) -> T:
    """Open a batch, in Trio or in asyncio, read the stream into it, and wait for its calls.

    Checkpoint: always.
    """
    if not isinstance(runtime, Runtime):
        raise DefinitionRefused("the runtime of a turn", "a toolrt.Runtime", runtime)
    open_batch = runtime.open_batch if trio.lowlevel.in_trio_task() else functools.partial(aio.open_batch, runtime)
    async with _events_of(stream, kind.REPLY) as events:
        first = await anext(events, None)
        if batch_id is None and runtime.journal is not None and first is not None:
            batch_id = kind._id_in(first)
        async with open_batch(state, batch_id, owner=object()) as batch:  # a conversation has one turn at a time
            turn = kind(batch)
            if first is not None:
                turn._take(first, on_event)
            await turn._hear(events, on_event)
    return turn


def declared(tools: Runtime | Registry | Iterable[Tool], format: Format) -> list[dict[str, Any]]:
    """The tools of a runtime, or these, as a request declares them."""
    return render_tools(tools.registry if isinstance(tools, Runtime) else tools, format)


def kind_of(event: Any) -> str:
    """The type that an event says it has."""
    kind = event.get("type") if isinstance(event, Mapping) else getattr(event, "type", None)
    return kind if isinstance(kind, str) else ""


def as_json(event: Any) -> Mapping[str, Any]:
    """An event of an SDK, with the fields that the API sent and no others, as a JSON object."""
    if isinstance(event, Mapping):
        return event
    if not hasattr(event, "to_dict"):
        raise DefinitionRefused("an event of a stream", "an event of the SDK, or its JSON object", event)
    found: Mapping[str, Any] = event.to_dict(warnings=False)  # servers send more than the SDK knows
    return found
