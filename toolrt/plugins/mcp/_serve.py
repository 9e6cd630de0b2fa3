"""Serves the tools of a runtime to an MCP host: newline-delimited JSON-RPC 2.0 over two byte streams.

Rules.
    1. One task reads.  It submits each ``tools/call`` to a batch before it looks at the next message, so the order of
       the messages is the order of the tickets.  No task is started for a message: Trio starts the tasks of a nursery
       in either order.
    2. An answer is sent as soon as its result is fixed, whatever the calls before it do.
    3. All calls that come while others run share a batch.  When all are answered the batch is sealed, and the next
       one begins with its state; one of `_BATCH_MOST` calls is sealed too, and later calls wait for its end.  So what
       is kept does not grow with the number of calls.
    4. A cancelled call is not answered, as the protocol says.  One that has not started never does; one that runs is
       interrupted, unless its tool may finish what it does.
    5. Whatever the host sends gets an answer or is dropped, and the server lives on.  Reading pauses only while
       `_UNSENT_MOST` bytes wait for a host that does not read; sending never depends on reading.
    6. When the host's stream ends, what runs is interrupted.  Only where calls come right before the end, as from a
       pipe that another program has written and left, they may still end, as long as one does in `linger` seconds.

Limits.  Resources, prompts, sampling and the stateless revision (2026-07-28) are not offered: a client of that revision
falls back to ``initialize``, which is answered.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections import deque
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import attrs
import trio

from toolrt.interop._json import NotStrictJSON, strict_json
from toolrt.interop._render import render_tools
from toolrt.model import Progress, Registry, ResultReady, State, Tool, ToolCall, ToolResult
from toolrt.order import TrackedCall
from toolrt.plugins.mcp._content import blocks_of
from toolrt.plugins.mcp._elicitation import Elicitation
from toolrt.plugins.mcp._port import Hints
from toolrt.plugins.mcp._progress import ProgressOfCall
from toolrt.runtime import Batch, Runtime

#: Revisions of the protocol that begin with ``initialize``; the last is offered to a client that asks for another.
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

#: Bytes of one message.
_MESSAGE_MOST = 16 * 1024 * 1024
#: Bytes that wait for the host to read: then no more is read from it, and before that progress is dropped.
_UNSENT_MOST = 64 * 1024 * 1024
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

_PARSE_ERROR, _INVALID_REQUEST, _METHOD_NOT_FOUND, _INVALID_PARAMS = -32700, -32600, -32601, -32602

#: Values that a message has by the specification.
_Id = str | int


class _Refused(Exception):
    """A message is answered with a JSON-RPC error."""

    def __init__(self, code: int, why: str, of: _Id | None = None) -> None:
        super().__init__(why)
        self.code = code
        self.of = of


@attrs.define(eq=False)
class _ServedCall:
    """A ``tools/call`` that is not answered yet."""

    id: _Id
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
    runtime: Runtime,
    incoming: trio.abc.ReceiveStream,
    outgoing: trio.abc.SendStream,
    *,
    instructions: str = "",
    hints: Mapping[str, Hints] | None = None,
    batch_ids: str | None = None,
    linger: float = 1.0,
    stuck: Callable[[], object] | None = None,
    elicitation: Elicitation | None = None,
) -> None:
    """Serve the runtime's tools to one MCP host until its stream ends.

    Args:
        runtime: its tools are offered, and its lanes, limit, timeout and approval check hold for every call.
        incoming: what the host sends: a message a line.
        outgoing: what it is sent.
        instructions: what the host's model should know of these tools.
        hints: what the host is told of a tool, by the tool's name: whether it only reads, and so on.
        batch_ids: what the ids of batches begin with, which a history keeps; None: they are numbered as the runtime's.
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
    served = ServedConnection(runtime, outgoing, instructions, hints or {}, batch_ids, elicitation)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(served.send)
        nursery.start_soon(served.run_batches)
        with served.while_it_reads:
            await served.read(incoming)
            with trio.move_on_after(_LINGER_MOST):
                await served.wait_answered(linger)
        served.end()
        with trio.move_on_after(_INTERRUPTED_MOST):
            await served.batches_over.wait()
        if stuck is not None and not served.batches_over.is_set():
            stuck()
        await served.batches_over.wait()
        with trio.move_on_after(_FLUSH):
            await served.wait_sent()
        nursery.cancel_scope.cancel()


class ServedConnection:
    """One host: what it has asked, and what it is still to be sent.

    Args:
        runtime: whose tools it may call.
        outgoing: what the host reads.
        instructions: as of `serve`.
        hints: as of `serve`.
        batch_ids: as of `serve`.
        elicitation: as of `serve`.
    """

    def __init__(
        self,
        runtime: Runtime,
        outgoing: trio.abc.SendStream,
        instructions: str,
        hints: Mapping[str, Hints],
        batch_ids: str | None,
        elicitation: Elicitation | None,
    ) -> None:
        self._runtime = runtime
        self._outgoing = outgoing
        self._instructions = instructions
        self._tools = [_listed(tool, told, hints) for tool, told in _described(runtime.registry)]
        self._elicitation = elicitation
        self._initialized = False
        #: The calls that are not answered, by the kind and the value of their id: 1 and "1" are two.
        self._calls: dict[_Id, _ServedCall] = {}
        #: Those that no batch has yet, in the order in which they came.
        self._waiting: deque[_ServedCall] = deque()
        #: The batch that takes calls now; None between two.
        self._batch: Batch | None = None
        #: How many calls of it have no result.
        self._running = 0
        self._batch_ids = batch_ids
        self._numbers = itertools.count(1)
        #: Lines to be sent, and the bytes of them and of what is being sent.
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._news = _News()
        #: When the last call came.
        self._last_call = -math.inf
        #: Cancelled when the host takes nothing any more.
        self.while_it_reads = trio.CancelScope()
        self._batches = trio.CancelScope()
        #: Set when no batch runs any more.
        self.batches_over = trio.Event()

    # Reading

    async def read(self, incoming: trio.abc.ReceiveStream) -> None:
        """Take messages until the host's stream ends.

        Checkpoint: always.
        """
        line = bytearray()
        too_long = False
        while True:
            while self._unsent_bytes > _UNSENT_MOST:
                await self._news.wait()
            try:
                piece = await incoming.receive_some(65536)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return
            if not piece:
                if line and not too_long:
                    self._take(bytes(line))
                return
            first, *others = bytes(piece).split(b"\n")
            line += first
            for other in others:
                if not too_long:
                    self._take(bytes(line))
                line, too_long = bytearray(other), False
            if len(line) > _MESSAGE_MOST:
                if not too_long:
                    self._send_error(_Refused(_INVALID_REQUEST, f"a message of more than {_MESSAGE_MOST:,} bytes"))
                line, too_long = bytearray(), True

    def _take(self, line: bytes) -> None:
        """Do what one message asks for, as far as that needs no waiting."""
        if not line.strip():
            return
        try:
            self._do(_message(line))
        except _Refused as refused:
            self._send_error(refused)

    def _do(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method is None and ("result" in message or "error" in message):
            if self._elicitation is not None:
                self._elicitation.take(message)
            return
        id, params = message.get("id"), message.get("params", {})
        if "id" in message and (not isinstance(id, str | int) or isinstance(id, bool)):
            raise _Refused(_INVALID_REQUEST, "expected an id that is a string or a whole number")
        if not isinstance(method, str):
            raise _Refused(_INVALID_REQUEST, "expected a method", id)
        if "id" not in message:
            if method == "notifications/cancelled" and isinstance(params, dict):
                self._cancel(params.get("requestId"))
            return
        assert id is not None
        if not isinstance(params, dict):
            raise _Refused(_INVALID_PARAMS, "expected params that are an object", id)
        if id in self._calls:
            raise _Refused(_INVALID_REQUEST, f"the id {id!r:.100} is that of a request that is not answered yet", id)
        self._request(id, method, params)

    def _request(self, id: _Id, method: str, params: dict[str, Any]) -> None:
        if method == "ping":
            self._answer(id, {})
        elif method == "initialize":
            self._answer(id, self._initialize(id, params))
        elif method not in ("tools/list", "tools/call"):
            raise _Refused(_METHOD_NOT_FOUND, f"there is no method {method!r:.100}", id)
        elif not self._initialized:
            raise _Refused(_INVALID_REQUEST, f"{method} came before initialize", id)
        elif method == "tools/call":
            self._call(id, params)
        elif params.get("cursor") is not None:
            raise _Refused(_INVALID_PARAMS, "there is one page of tools: expected no cursor", id)
        else:
            self._answer(id, {"tools": self._tools})

    def _initialize(self, id: _Id, params: dict[str, Any]) -> dict[str, Any]:
        asked = params.get("protocolVersion")
        if not isinstance(asked, str):
            raise _Refused(_INVALID_PARAMS, "expected a protocolVersion that is a string", id)
        if self._initialized:
            raise _Refused(_INVALID_REQUEST, "initialize came a second time", id)
        self._initialized = True
        if self._elicitation is not None:
            self._elicitation.connect(self._send, params.get("capabilities"))
        about: dict[str, Any] = {
            "protocolVersion": asked if asked in REVISIONS else REVISIONS[-1],
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": "toolrt", "version": version("toolrt")},
        }
        if self._instructions:
            about["instructions"] = self._instructions
        return about

    # Calls

    def _call(self, id: _Id, params: dict[str, Any]) -> None:
        """Submit a call, or let it wait for the next batch behind those that wait."""
        name, input = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise _Refused(_INVALID_PARAMS, "expected a name that is a string", id)
        if self._runtime.registry.get(name) is None:
            raise _Refused(_INVALID_PARAMS, f"there is no tool {name!r:.100}", id)
        if input is None:
            input = {}
        if not isinstance(input, dict):
            raise _Refused(_INVALID_PARAMS, "expected arguments that are an object", id)
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
        elif asked.token is not None and not asked.cancelled and self._unsent_bytes < _PROGRESS_UNSENT_MOST:
            told = {"progressToken": asked.token, **asked.progress.told(update.message)}
            self._send({"method": "notifications/progress", "params": told})

    def _close(self, asked: _ServedCall, result: ToolResult) -> None:
        """The call has ended: answer it, unless the host has cancelled it."""
        del self._calls[asked.id]
        if not asked.cancelled:
            self._answer(asked.id, {"content": blocks_of(result), "isError": not result.ok})
        self._news.tell()

    def _cancel(self, id: object) -> None:
        asked = self._calls.get(id) if isinstance(id, str | int) and not isinstance(id, bool) else None
        if asked is None or asked.cancelled:
            return  # it is answered, or was never asked: the protocol says to ignore that
        asked.cancelled = True
        if asked in self._waiting:
            self._waiting.remove(asked)
            del self._calls[asked.id]
            self._news.tell()
        elif asked.tracked is not None:
            asked.tracked.cancel("the host cancelled it")

    async def run_batches(self) -> None:
        """Run the calls, batch after batch, until `end`.

        Checkpoint: always.
        """
        state = State()
        try:
            with self._batches:
                for number in itertools.count(1):
                    while not self._waiting:
                        await self._news.wait()
                    batch_id = None if self._batch_ids is None else f"{self._batch_ids}-{number}"
                    async with self._runtime.open_batch(state, batch_id, owner=self) as batch:
                        self._batch = batch
                        while self._waiting and len(batch.calls) < _BATCH_MOST:
                            self._submit(batch, self._waiting.popleft())
                        while self._running and len(batch.calls) < _BATCH_MOST:
                            await self._news.wait()
                        self._batch = None
                    state = batch.outcome.state
        finally:
            self._batch = None
            for asked in self._waiting:
                self._answer(asked.id, _result("[not_started] the server has ended", True))
            self.batches_over.set()

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

    async def wait_sent(self) -> None:
        """Return when the host has taken all that it is sent.

        Checkpoint: if it has not.
        """
        while self._unsent_bytes and not self.while_it_reads.cancel_called:
            await self._news.wait()

    def end(self) -> None:
        """Interrupt what still runs."""
        self._batches.cancel()

    # Sending

    def _answer(self, id: _Id, result: dict[str, Any]) -> None:
        self._send({"id": id, "result": result})

    def _send_error(self, refused: _Refused) -> None:
        self._send({"id": refused.of, "error": {"code": refused.code, "message": str(refused)}})

    def _send(self, message: dict[str, Any]) -> None:
        """Queue a message; it is dropped when the host is gone."""
        if self.while_it_reads.cancel_called:
            return
        data = _line({"jsonrpc": "2.0", **message})
        self._unsent.append(data)
        self._unsent_bytes += len(data)
        self._news.tell()

    async def send(self) -> None:
        """Send what is queued, until the host is gone.

        Checkpoint: always.
        """
        while True:
            while not self._unsent:
                await self._news.wait()
            data = b"".join(self._unsent)
            self._unsent.clear()
            try:
                await self._outgoing.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                break
            self._unsent_bytes -= len(data)
            self._news.tell()
        self.while_it_reads.cancel()
        self._unsent.clear()
        self._news.tell()


class _News:
    """Wakes every task that waits for a change of one connection."""

    def __init__(self) -> None:
        self._event = trio.Event()

    def tell(self) -> None:
        """Wake those that wait now."""
        self._event.set()
        self._event = trio.Event()

    async def wait(self) -> None:
        """Return after the next `tell`.

        Checkpoint: always.
        """
        await self._event.wait()


def _message(line: bytes) -> dict[str, Any]:
    try:
        message = strict_json(line.decode())
    except (NotStrictJSON, UnicodeDecodeError) as error:
        raise _Refused(_PARSE_ERROR, f"the message is not JSON: {error}"[:500]) from None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise _Refused(_INVALID_REQUEST, 'expected one object with "jsonrpc": "2.0"')
    return message


def _line(message: dict[str, Any]) -> bytes:
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:
        # Half of a surrogate pair, such as in an id: it goes back as it came.
        return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _result(text: str, is_error: bool) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def _described(registry: Registry) -> list[tuple[Tool, dict[str, Any]]]:
    tools = list(registry)
    return list(zip(tools, render_tools(tools, "calls"), strict=True))


def _listed(tool: Tool, told: dict[str, Any], hints: Mapping[str, Hints]) -> dict[str, Any]:
    """A tool as ``tools/list`` gives it."""
    listed = {"name": tool.name, "description": told["description"], "inputSchema": told["input_schema"]}
    found = hints.get(tool.name)
    if found is not None:
        annotations = {"readOnlyHint": found.read_only, "openWorldHint": found.open_world}
        if not found.read_only:
            annotations.update(destructiveHint=found.destructive, idempotentHint=found.idempotent)
        listed["annotations"] = annotations
    return listed
