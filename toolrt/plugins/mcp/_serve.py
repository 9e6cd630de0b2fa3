"""Serves the tools of a runtime to an MCP host: JSON-RPC 2.0, a message a line over two byte streams.

`toolrt.plugins.mcp._serve_http` has the same conversation, a message a request.

Rules.
    1. Messages come one after the other, and each ``tools/call`` is submitted to a batch before the next is looked at:
       the order of the messages is the order of the tickets.  No task is started for a message: Trio starts the tasks
       of a nursery in either order.
    2. An answer is sent as soon as its result is fixed, whatever the calls before it do.
    3. All calls that come while others run share a batch.  When all are answered the batch is sealed, and the next
       one begins with its state; one of `_BATCH_MOST` calls is sealed too, and later calls wait for its end.  So what
       is kept does not grow with the number of calls.
    4. A cancelled call is not answered, as the protocol says.  One that has not started never does; one that runs is
       interrupted, unless its tool may finish what it does.
    5. Whatever the host sends gets an answer or is dropped, and the server lives on.  Reading pauses only while
       `UNSENT_MOST` bytes wait for a host that does not read; sending never depends on reading.
    6. Where a runtime needs the host's roots, requests about tools wait for them, in their order.
    7. When the host's stream ends, what runs is interrupted.  Only where calls come right before the end, as from a
       pipe that another program has written and left, they may still end, as long as one does in `linger` seconds.

Limits.  Resources, prompts, sampling and the stateless revision (2026-07-28) are not offered: a client of that revision
falls back to ``initialize``, which is answered.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Protocol, TypeGuard

import attrs
import trio

from toolrt.errors import ToolrtError
from toolrt.interop._json import NotStrictJSON, strict_json
from toolrt.interop._render import render_tools
from toolrt.model import Progress, Registry, ResultReady, State, Tool, ToolCall, ToolResult
from toolrt.order import TrackedCall
from toolrt.plugins.mcp._content import blocks_of
from toolrt.plugins.mcp._elicitation import Elicitation
from toolrt.plugins.mcp._outbox import News, Outbox
from toolrt.plugins.mcp._port import Hints
from toolrt.plugins.mcp._progress import ProgressOfCall
from toolrt.runtime import Batch, Runtime

#: Revisions of the protocol that begin with ``initialize``; the last is offered to a client that asks for another.
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

#: Bytes of one message.
MESSAGE_MOST = 16 * 1024 * 1024
#: Bytes that wait for the host to read: then no more is read from it, and before that progress is dropped.
UNSENT_MOST = 64 * 1024 * 1024
_PROGRESS_UNSENT_MOST = 1024 * 1024
#: Calls that are not answered; the host is told that a further one was not run.
_CALLS_MOST = 10_000
#: Calls of one batch.
_BATCH_MOST = 1_000
#: Seconds in which the host has to take what is left to be sent.
_FLUSH = 5.0
#: Calls that came so many seconds before the end of the host's stream came with it.
_WITH_THE_END = 0.25
#: Seconds in which calls that came with the end have to end, all of them.
_LINGER_MOST = 30.0
#: Seconds in which calls that are interrupted have to end, or they are stuck.  A command is killed after half of it.
_INTERRUPTED_MOST = 1.0

_PARSE_ERROR, INVALID_REQUEST, _METHOD_NOT_FOUND, _INVALID_PARAMS = -32700, -32600, -32601, -32602

#: Values that a message has by the specification.
Id = str | int

#: The id of the request for the host's roots.
_ROOTS = "roots"


class MessageRefused(Exception):
    """A message is answered with a JSON-RPC error."""

    def __init__(self, code: int, why: str, of: Id | None = None) -> None:
        super().__init__(why)
        self.code = code
        self.of = of

    @property
    def message(self) -> dict[str, Any]:
        """The answer."""
        return {"id": self.of, "error": {"code": self.code, "message": str(self)}}


@attrs.frozen
class Root:
    """A directory that the host's person has open, as the host says."""

    #: Such as ``file:///home/me/project``.
    uri: str
    #: What the host calls it; "": nothing.
    name: str = ""


#: Opens what serves these roots, for as long as the block lasts.
RuntimeOfRoots = Callable[[Sequence[Root]], contextlib.AbstractAsyncContextManager[Runtime]]


@attrs.frozen
class ServedTools:
    """What one host is served."""

    #: Its tools, or what opens a runtime for the host's roots.
    runtime: Runtime | RuntimeOfRoots
    #: What the host's model should know of the tools.
    instructions: str = ""
    #: What the host hears of a tool, by its name or by a function of it.
    hints: Mapping[str, Hints] | Callable[[Tool], Hints] = attrs.field(factory=dict)
    #: What the ids of batches begin with; None: they are numbered as the runtime's.
    batch_ids: str | None = None
    #: What asks the host's person; None: the person is asked nothing.
    elicitation: Elicitation | None = None


class HostWire(Protocol):
    """Where a connection puts its messages."""

    def put(self, message: dict[str, Any], of: Id | None, droppable_above: float = math.inf) -> None:
        """Queue a message.

        Args:
            of: the request that it belongs to; None: no one request.
            droppable_above: it is dropped where so many bytes wait.
        """

    def give_up(self, of: Id) -> None:
        """The request is cancelled and gets no answer."""


@attrs.define(eq=False)
class _ServedCall:
    """A ``tools/call`` that is not answered yet."""

    id: Id
    call: ToolCall
    #: What its progress is sent under; None: the host wants none.
    token: str | int | None
    #: Whether the host has cancelled it.
    cancelled: bool = False
    #: What cancels it; None: no batch has it yet.
    tracked: TrackedCall | None = None
    #: How far the host was told that it is.
    progress: ProgressOfCall = attrs.field(factory=ProgressOfCall)


async def serve(
    runtime: Runtime | RuntimeOfRoots,
    incoming: trio.abc.ReceiveStream,
    outgoing: trio.abc.SendStream,
    *,
    instructions: str = "",
    hints: Mapping[str, Hints] | Callable[[Tool], Hints] | None = None,
    batch_ids: str | None = None,
    linger: float = 1.0,
    stuck: Callable[[], object] | None = None,
    elicitation: Elicitation | None = None,
) -> None:
    """Serve the runtime's tools to one MCP host until its stream ends.

    Args:
        runtime: its tools are offered, and its lanes, limit, timeout and approval check hold for every call.  Or what
            opens a runtime for the roots that the host names: it is asked for them once, and calls wait until then.
            Where it names none, or changes them later, requests about tools are refused with the reason.
        incoming: what the host sends: a message a line.
        outgoing: what it is sent.
        instructions: what the host's model should know of these tools.
        hints: what the host hears of a tool, by the tool's name or by a function of the tool: whether it only
            reads, and so on.
        batch_ids: what the ids of batches begin with, which a history and a journal keep, so another one in each
            process; None: they are numbered as the runtime's.  A host does not ask again for the answers of a server
            that was killed: what the runtime's journal has then is for a program of yours to resume.
        linger: where the host's stream ends right behind calls, these may still end, as long as one does in so many
            seconds.  What runs then, and whatever came earlier, is interrupted.
        stuck: is called where calls that were interrupted go on for another second: a thread cannot be ended, so who
            cannot wait for it has to end the process.  None: all are waited for.
        elicitation: what asks the host's person, where the runtime's approval check does; of its own for each call of
            `serve`.  None: the person is asked nothing.

    Checkpoint: always.

    Ordering: calls take their tickets in the order in which their messages arrive.

    Example::

        await mcp.serve(Runtime(registry), incoming, outgoing)
    """
    wire = _StreamWire(outgoing)
    served = ServedConnection(ServedTools(runtime, instructions, hints or {}, batch_ids, elicitation), wire)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wire.send)
        nursery.start_soon(served.run)
        with wire.while_it_reads:
            await _read(incoming, wire, served)
            with trio.move_on_after(_LINGER_MOST):
                await served.wait_answered(linger)
        served.end()
        with trio.move_on_after(_INTERRUPTED_MOST):
            await served.over.wait()
        if stuck is not None and not served.over.is_set():
            stuck()
        await served.over.wait()
        with trio.move_on_after(_FLUSH):
            await wire.wait_sent()
        nursery.cancel_scope.cancel()


class _StreamWire:
    """A stream that the host reads: all messages in one order."""

    def __init__(self, outgoing: trio.abc.SendStream) -> None:
        self._outgoing = outgoing
        self._news = News()
        self._outbox = Outbox(self._news)
        #: Cancelled when the host takes nothing any more.
        self.while_it_reads = trio.CancelScope()

    def put(self, message: dict[str, Any], of: Id | None, droppable_above: float = math.inf) -> None:
        """See `HostWire.put`; a message is dropped when the host is gone."""
        if self._outbox.bytes < droppable_above and not self.while_it_reads.cancel_called:
            self._outbox.put(message)

    def give_up(self, of: Id) -> None:
        """See `HostWire.give_up`."""

    async def send(self) -> None:
        """Send what is queued, until the host is gone.

        Checkpoint: always.
        """
        while True:
            while not (taken := self._outbox.take()):
                await self._news.wait()
            try:
                await self._outgoing.send_all(b"".join(line + b"\n" for line in taken))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                break
            self._outbox.sent(taken)
        self.while_it_reads.cancel()
        self._news.tell()

    async def wait_room(self) -> None:
        """Return when less than `UNSENT_MOST` bytes wait for the host.

        Checkpoint: if it waits.
        """
        while self._outbox.bytes > UNSENT_MOST:
            await self._news.wait()

    async def wait_sent(self) -> None:
        """Return when the host has taken all that it is sent.

        Checkpoint: if it has not.
        """
        while self._outbox.bytes and not self.while_it_reads.cancel_called:
            await self._news.wait()


async def _read(incoming: trio.abc.ReceiveStream, wire: _StreamWire, served: ServedConnection) -> None:
    """Take messages until the host's stream ends."""

    def take(line: bytes) -> None:
        if not line.strip():
            return
        try:
            served.do(message_of(line))
        except MessageRefused as refused:
            wire.put(refused.message, refused.of)

    line = bytearray()
    too_long = False
    while True:
        await wire.wait_room()
        try:
            piece = await incoming.receive_some(65536)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return
        if not piece:
            if line and not too_long:
                take(bytes(line))
            return
        first, *others = bytes(piece).split(b"\n")
        line += first
        for other in others:
            if not too_long:
                take(bytes(line))
            line, too_long = bytearray(other), False
        if len(line) > MESSAGE_MOST:
            if not too_long:
                refused = MessageRefused(INVALID_REQUEST, f"a message of more than {MESSAGE_MOST:,} bytes")
                wire.put(refused.message, None)
            line, too_long = bytearray(), True


class ServedConnection:
    """One host: what it has asked, and what it is to be answered.

    Args:
        served: what it may use.
        wire: what it reads.
    """

    def __init__(self, served: ServedTools, wire: HostWire) -> None:
        self._served = served
        self._wire = wire
        #: Whose tools it may call; None: its roots are not known yet.
        self._runtime: Runtime | None = None
        self._tools: list[dict[str, Any]] = []
        if isinstance(served.runtime, Runtime):
            self._know(served.runtime)
        #: What the host's roots are; None: it has not said.
        self._roots: tuple[Root, ...] | None = None
        #: Requests about tools that wait for the roots, by id, in their order.
        self._held: dict[Id, tuple[str, dict[str, Any]]] = {}
        #: Why no tool can be used; None: they can, or will be.
        self._unserved: str | None = None
        self._initialized = False
        #: The calls that are not answered, by the kind and the value of their id: 1 and "1" are two.
        self._calls: dict[Id, _ServedCall] = {}
        #: Those that no batch has yet, in the order in which they came.
        self._waiting: deque[_ServedCall] = deque()
        #: The batch that takes calls now; None between two.
        self._batch: Batch | None = None
        #: How many calls of it have no result.
        self._running = 0
        self._numbers = itertools.count(1)
        self._news = News()
        #: When the last call came.
        self._last_call = -math.inf
        self._opening, self._batches = trio.CancelScope(), trio.CancelScope()
        #: Set when no batch runs any more.
        self.over = trio.Event()

    # Reading

    def do(self, message: dict[str, Any]) -> None:
        """Do what one message asks for, as far as that needs no waiting.

        Raises:
            MessageRefused: it is answered with an error, and did nothing.

        Checkpoint: never.
        """
        method, params = message.get("method"), message.get("params", {})
        if method is None and ("result" in message or "error" in message):
            self._take_response(message)
            return
        id = request_id(message)
        if not isinstance(method, str):
            raise MessageRefused(INVALID_REQUEST, "expected a method", id)
        if id is None:
            if isinstance(params, dict):
                self._notice(method, params)
            return
        if not isinstance(params, dict):
            raise MessageRefused(_INVALID_PARAMS, "expected params that are an object", id)
        if id in self._calls or id in self._held:
            raise id_in_use(id)
        self._request(id, method, params)

    def _take_response(self, message: dict[str, Any]) -> None:
        if message.get("id") != _ROOTS:
            if self._served.elicitation is not None:
                self._served.elicitation.take(message)
            return
        found = _roots(message)
        if self._roots is None:
            self._roots = found
            self._news.tell()
        elif self._roots != found:
            self._refuse_tools("the host's roots have changed since the server began: start it again")

    def _notice(self, method: str, params: dict[str, Any]) -> None:
        """Take a message that wants no answer; what is not known is dropped."""
        if method == "notifications/cancelled":
            self._cancel(params.get("requestId"))
        elif (
            method in ("notifications/initialized", "notifications/roots/list_changed")
            and not isinstance(self._served.runtime, Runtime)
            and self._unserved is None
        ):
            self._send({"id": _ROOTS, "method": "roots/list"})

    def _request(self, id: Id, method: str, params: dict[str, Any]) -> None:
        if method == "ping":
            self._answer(id, {})
        elif method == "initialize":
            self._answer(id, self._initialize(id, params))
        elif method not in ("tools/list", "tools/call"):
            raise MessageRefused(_METHOD_NOT_FOUND, f"there is no method {method!r:.100}", id)
        elif not self._initialized:
            raise MessageRefused(INVALID_REQUEST, f"{method} came before initialize", id)
        elif self._unserved is not None:
            raise MessageRefused(INVALID_REQUEST, self._unserved, id)
        elif self._runtime is None:
            if len(self._held) >= _CALLS_MOST:
                raise MessageRefused(INVALID_REQUEST, f"{_CALLS_MOST:,} requests wait for the host's roots", id)
            self._held[id] = (method, params)
        elif method == "tools/call":
            self._call(self._runtime, id, params)
        elif params.get("cursor") is not None:
            raise MessageRefused(_INVALID_PARAMS, "there is one page of tools: expected no cursor", id)
        else:
            self._answer(id, {"tools": self._tools})

    def _initialize(self, id: Id, params: dict[str, Any]) -> dict[str, Any]:
        asked, capabilities = params.get("protocolVersion"), params.get("capabilities")
        if not isinstance(asked, str):
            raise MessageRefused(_INVALID_PARAMS, "expected a protocolVersion that is a string", id)
        if self._initialized:
            raise MessageRefused(INVALID_REQUEST, "initialize came a second time", id)
        self._initialized = True
        if self._served.elicitation is not None:
            self._served.elicitation.connect(self._send, capabilities)
        if self._runtime is None and not (isinstance(capabilities, dict) and "roots" in capabilities):
            self._refuse_tools("the host names no roots: give the server a directory")
        about: dict[str, Any] = {
            "protocolVersion": asked if asked in REVISIONS else REVISIONS[-1],
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": "toolrt", "version": version("toolrt")},
        }
        if self._served.instructions:
            about["instructions"] = self._served.instructions
        return about

    def _know(self, runtime: Runtime) -> None:
        """ServedTools the tools of this runtime from now on."""
        self._runtime = runtime
        self._tools = [_listed(tool, told, self._served.hints) for tool, told in _described(runtime.registry)]

    def _do_held(self) -> None:
        """Do what waited for the roots."""
        held, self._held = self._held, {}
        for id, (method, params) in held.items():
            try:
                self._request(id, method, params)
            except MessageRefused as refused:
                self._wire.put(refused.message, refused.of)

    def _refuse_tools(self, why: str) -> None:
        """From now on requests about tools are answered with this."""
        self._unserved = why
        self._do_held()

    # Calls

    def _call(self, runtime: Runtime, id: Id, params: dict[str, Any]) -> None:
        """Submit a call, or let it wait for the next batch behind those that wait."""
        name, input = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise MessageRefused(_INVALID_PARAMS, "expected a name that is a string", id)
        if runtime.registry.get(name) is None:
            raise MessageRefused(_INVALID_PARAMS, f"there is no tool {name!r:.100}", id)
        if input is None:
            input = {}
        if not isinstance(input, dict):
            raise MessageRefused(_INVALID_PARAMS, "expected arguments that are an object", id)
        if len(self._calls) >= _CALLS_MOST:
            self._answer(id, _result(f"[not_started] {_CALLS_MOST:,} calls are not answered yet: try again", True))
            return
        about = params.get("_meta")
        token = about.get("progressToken") if isinstance(about, dict) else None
        if not isinstance(token, str | int) or isinstance(token, bool):
            token = None
        self._last_call = trio.current_time()
        asked = _ServedCall(id, ToolCall(f"mcp-{next(self._numbers)}", name, input), token)
        self._calls[id] = asked
        if self._batch is None or self._waiting or len(self._batch.calls) >= _BATCH_MOST:
            self._waiting.append(asked)
            self._news.tell()
        else:
            self._submit(self._batch, asked)

    def _submit(self, batch: Batch, asked: _ServedCall) -> None:
        """Let the call take its place in the batch; its result may be fixed when this returns."""
        self._running += 1
        asked.tracked = batch.submit(asked.call, functools.partial(self._hear, asked))

    def _hear(self, asked: _ServedCall, update: Progress | ResultReady) -> None:
        if isinstance(update, ResultReady):
            if self._calls.get(asked.id) is not asked:
                return  # it is replaced: a later failure skips it, and it was answered
            self._running -= 1
            self._close(asked, update.result)
        elif asked.token is not None and not asked.cancelled:
            told = {"progressToken": asked.token, **asked.progress.told(update.message)}
            message = {"method": "notifications/progress", "params": told}
            self._wire.put(message, asked.id, _PROGRESS_UNSENT_MOST)

    def _close(self, asked: _ServedCall, result: ToolResult) -> None:
        """The call has ended: answer it, unless the host has cancelled it."""
        del self._calls[asked.id]
        if not asked.cancelled:
            self._answer(asked.id, {"content": blocks_of(result), "isError": not result.ok})
        self._news.tell()

    def _cancel(self, id: object) -> None:
        if not _is_id(id):
            return
        if self._held.pop(id, None) is not None:
            self._wire.give_up(id)
        asked = self._calls.get(id)
        if asked is None or asked.cancelled:
            return  # it is answered, or was never asked: the protocol says to ignore that
        asked.cancelled = True
        self._wire.give_up(id)
        if asked in self._waiting:
            self._waiting.remove(asked)
            del self._calls[asked.id]
            self._news.tell()
        elif asked.tracked is not None:
            asked.tracked.cancel("the host cancelled it")

    async def run(self) -> None:
        """Run the calls, batch after batch, until `end`.

        Checkpoint: always.
        """
        try:
            with self._opening:
                async with contextlib.AsyncExitStack() as stack:
                    if (runtime := await self._opened(stack)) is not None:
                        with self._batches:
                            await self._run_batches(runtime)
        finally:
            self._batch = None
            self._refuse_tools("the server has ended")
            for asked in self._waiting:
                self._answer(asked.id, _result("[not_started] the server has ended", True))
            self.over.set()

    async def _opened(self, stack: contextlib.AsyncExitStack) -> Runtime | None:
        """The runtime, once the host's roots are known if they have to be; None: there is none for them."""
        if isinstance(self._served.runtime, Runtime):
            return self._served.runtime
        while self._roots is None:
            await self._news.wait()
        try:
            runtime: Runtime = await stack.enter_async_context(self._served.runtime(self._roots))
        except ToolrtError as error:
            self._refuse_tools(str(error))
            return None
        self._know(runtime)
        self._do_held()
        return runtime

    async def _run_batches(self, runtime: Runtime) -> None:
        state = State()
        for number in itertools.count(1):
            while not self._waiting:
                await self._news.wait()
            batch_id = None if self._served.batch_ids is None else f"{self._served.batch_ids}-{number}"
            async with runtime.open_batch(state, batch_id, owner=self) as batch:
                self._batch = batch
                while self._waiting and len(batch.calls) < _BATCH_MOST:
                    self._submit(batch, self._waiting.popleft())
                while self._running and len(batch.calls) < _BATCH_MOST:
                    await self._news.wait()
                self._batch = None
            state = batch.outcome.state

    # The end

    async def wait_answered(self, linger: float) -> None:
        """Return when every call has ended, or none did for `linger` seconds; at once if the last came before the end.

        Checkpoint: if it waits.
        """
        if trio.current_time() - self._last_call > _WITH_THE_END:
            return
        left = len(self._calls) + 1
        while 0 < len(self._calls) < left:
            left = len(self._calls)
            with trio.move_on_after(linger):
                while len(self._calls) == left:
                    await self._news.wait()

    @property
    def is_busy(self) -> bool:
        """Whether a request is not answered yet."""
        return bool(self._calls or self._held)

    def end(self) -> None:
        """Interrupt what still runs.

        Checkpoint: never.
        """
        self._batches.cancel()
        if self._runtime is None:
            self._opening.cancel()

    # Sending

    def _answer(self, id: Id, result: dict[str, Any]) -> None:
        self._wire.put({"id": id, "result": result}, id)

    def _send(self, message: dict[str, Any]) -> None:
        self._wire.put(message, None)


def message_of(line: bytes) -> dict[str, Any]:
    """The JSON-RPC message of a line, or of a request's body.

    Raises:
        MessageRefused: it is none.
    """
    try:
        message = strict_json(line.decode())
    except (NotStrictJSON, UnicodeDecodeError) as error:
        raise MessageRefused(_PARSE_ERROR, f"the message is not JSON: {error}"[:500]) from None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise MessageRefused(INVALID_REQUEST, 'expected one object with "jsonrpc": "2.0"')
    return message


def request_id(message: dict[str, Any]) -> Id | None:
    """The id of a request; None: it wants no answer.

    Raises:
        MessageRefused: it has an id that none may have.
    """
    if "id" not in message:
        return None
    id = message["id"]
    if not _is_id(id):
        raise MessageRefused(INVALID_REQUEST, "expected an id that is a string or a whole number")
    return id


def id_in_use(id: Id) -> MessageRefused:
    """A request has the id of another that is not answered yet."""
    return MessageRefused(INVALID_REQUEST, f"the id {id!r:.100} is that of a request that is not answered yet", id)


def _is_id(value: object) -> TypeGuard[Id]:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _roots(message: dict[str, Any]) -> tuple[Root, ...]:
    """What a host answers to ``roots/list``; none where it makes no sense."""
    result = message.get("result")
    listed = result.get("roots") if isinstance(result, dict) else None
    found = []
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict) and isinstance(one.get("uri"), str):
            name = one.get("name")
            found.append(Root(one["uri"], name if isinstance(name, str) else ""))
    return tuple(found)


def _result(text: str, is_error: bool) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def _described(registry: Registry) -> list[tuple[Tool, dict[str, Any]]]:
    tools = list(registry)
    return list(zip(tools, render_tools(tools, "calls"), strict=True))


def _listed(tool: Tool, told: dict[str, Any], hints: Mapping[str, Hints] | Callable[[Tool], Hints]) -> dict[str, Any]:
    """A tool as ``tools/list`` gives it."""
    listed = {"name": tool.name, "description": told["description"], "inputSchema": told["input_schema"]}
    found = hints.get(tool.name) if isinstance(hints, Mapping) else hints(tool)
    if found is not None:
        annotations = {"readOnlyHint": found.read_only, "openWorldHint": found.open_world}
        if not found.read_only:
            annotations.update(destructiveHint=found.destructive, idempotentHint=found.idempotent)
        listed["annotations"] = annotations
    return listed
