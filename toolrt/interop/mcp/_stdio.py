"""A server that is a program of its own, and is spoken to over its standard streams.

Rules.
    1. Nothing that a server does is waited for by a call: what is sent is queued, and sent by a task of the
       connection's own, so that a cancel is told without waiting also to a server that does not read.
    2. A line that is no message is dropped and counted.  A server that writes too much of that, a message that is too
       long, or so little reading that what it is sent piles up, has lost its connection.
    3. Its error output is read at once, and the end of it is kept.
    4. At the end its input is closed; what then does not end in time is ended with all it started
       (`toolrt.processes`).  That is bounded, and no call waits for it but one that wants the server anew.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

import anyio
import attrs
import trio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from toolrt.interop.mcp._port import Notes, Session, Unanswered
from toolrt.interop.mcp._sdk import hold
from toolrt.interop.mcp._server import McpServer
from toolrt.processes import Halted, Supervised, program_at

__all__ = ["StdioPeer"]

#: Bytes of one message.
_MESSAGE_MOST = 16 * 1024 * 1024
#: Bytes that wait to be read by the server.
_UNREAD_MOST = 16 * 1024 * 1024
#: Bytes in a row that are no message.
_GARBAGE_MOST = 1024 * 1024
#: Bytes of the error output that are kept.
_STDERR_KEPT = 8 * 1024
#: Bytes read at once.
_CHUNK = 64 * 1024
#: Seconds in which a server has to end by itself once its input is closed; the specification's own order.
_LINGER = 2.0


class StdioPeer:
    """Starts the server's program, once for each connection."""

    async def serve(self, server: McpServer, publish: Callable[[Session], object], notes: Notes) -> None:
        """See `Peer.serve`."""
        supervised = await _start(server)
        pipes = _Pipes(supervised, notes)
        readers = trio.CancelScope(shield=True)
        halted: Halted | None = None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(pipes.read_both, readers)
                nursery.start_soon(pipes.write)
                nursery.start_soon(pipes.watch)
                try:
                    await hold((pipes.incoming, _Outgoing(pipes)), publish)
                finally:
                    pipes.close_input()
                    with trio.move_on_after(_LINGER, shield=True):
                        await supervised.wait()
                    halted = await supervised.end()  # noqa: ASYNC102  shielded and bounded
                    readers.cancel()
                    notes.ended = halted.story if halted.refused is not None else pipes.problem or halted.story
        finally:
            pipes.incoming.close()
            supervised.close()


async def _start(server: McpServer) -> Supervised:
    argv, directory, environment = _found(server)
    try:
        return await Supervised.start(argv, directory=directory, environment=environment, spoken_to=True)
    except (OSError, ValueError) as error:
        raise Unanswered(f"it cannot be started: {error}") from None


def _found(server: McpServer) -> tuple[list[str], str, dict[str, str]]:
    """What to start, where, and what it is told."""
    if os.name != "posix" or not sys.executable:
        raise Unanswered(f"it can be started on a POSIX system only, and this is {sys.platform}")
    command = list(server.command or ())
    environment = {**get_default_environment(), **server.env}
    directory = os.path.realpath(server.cwd or ".")
    if not os.path.isdir(directory):
        raise Unanswered(f"there is no directory {os.fspath(server.cwd or '.')!r} to start it in")
    program = program_at(command[0], directory, environment.get("PATH"))
    if program is None:
        raise Unanswered(f"there is no program {command[0]!r}")
    return [program, *command[1:]], directory, environment


@attrs.define(eq=False)
class _Pipes:
    """The server's three streams."""

    _supervised: Supervised
    _notes: Notes
    #: Why the connection is given up, where that was decided here.
    problem: str | None = None
    #: What the server said, message by message.
    incoming: MemoryObjectReceiveStream[Any] = attrs.field(init=False)
    _said: MemoryObjectSendStream[Any] = attrs.field(init=False)
    #: What it is still to be sent, and how many bytes that are.
    _unsent: deque[bytes] = attrs.field(factory=deque, init=False)
    _unsent_bytes: int = attrs.field(default=0, init=False)
    _more: trio.Event = attrs.field(factory=trio.Event, init=False)
    _closed: bool = attrs.field(default=False, init=False)
    _garbage: int = attrs.field(default=0, init=False)
    #: Cancelled when nobody needs to know any more whether the server has ended.
    _watching: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    #: Whether the server has ended, and what is cancelled then.
    _exited: bool = attrs.field(default=False, init=False)
    _waiting: trio.CancelScope | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._said, self.incoming = anyio.create_memory_object_stream[Any](0)

    def send(self, line: bytes) -> None:
        """Queue what the server is to be sent.

        Raises:
            anyio.ClosedResourceError: it is to be sent nothing any more.
        """
        if self._closed:
            raise anyio.ClosedResourceError
        self._unsent.append(line)
        self._unsent_bytes += len(line)
        self._more.set()
        if self._unsent_bytes > _UNREAD_MOST:
            self._give_up("it does not read what it is sent")

    def close_input(self) -> None:
        """The server has nothing more to read."""
        self._closed = True
        self._more.set()
        self._watching.cancel()
        if self._supervised.stdin is not None:
            self._supervised.stdin.close()

    def _give_up(self, problem: str) -> None:
        if self.problem is None and not self._closed:
            self.problem = problem
        self._said.close()

    async def write(self) -> None:
        """Send what is queued, until the input is closed."""
        stream = self._supervised.stdin
        assert stream is not None
        try:
            while not self._closed:
                await self._more.wait()
                self._more = trio.Event()
                while self._unsent:
                    line = self._unsent.popleft()
                    await stream.send_all(line)
                    self._unsent_bytes -= len(line)
        except trio.ClosedResourceError:
            pass
        except trio.BrokenResourceError:
            # It reads no more; its end tells the rest.
            self._closed = True
            self._said.close()

    async def read_both(self, scope: trio.CancelScope) -> None:
        """Read what the server writes until it writes no more, or `scope` is cancelled."""
        with scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read)
                nursery.start_soon(self._listen)

    async def watch(self) -> None:
        """When the server has ended, what it wrote is all there is, whoever else still holds its output."""
        with self._watching:
            await self._supervised.wait_exited()
            self._exited = True
            if self._waiting is not None:
                self._waiting.cancel()

    async def _more_output(self) -> bytes:
        """The next of what the server writes; nothing where there is no more."""
        stream = self._supervised.stdout
        if not self._exited:
            with trio.CancelScope() as self._waiting:
                return bytes(await stream.receive_some(_CHUNK))
        with contextlib.suppress(OSError):
            return os.read(stream.fileno(), _CHUNK)
        return b""

    async def _read(self) -> None:
        """Hand on the server's messages; what nobody takes is dropped."""
        line = bytearray()
        async with self._said:
            while chunk := await self._more_output():
                first, *others = chunk.split(b"\n")
                line += first
                for other in others:
                    await self._hand_on(bytes(line))
                    line = bytearray(other)
                if len(line) > _MESSAGE_MOST:
                    self._give_up(f"it sent a message of more than {_MESSAGE_MOST:,} bytes")
                    line.clear()

    async def _hand_on(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._notes.garbage += 1
            self._garbage += len(line)
            if self._garbage > _GARBAGE_MOST:
                self._give_up(f"it wrote more than {_GARBAGE_MOST:,} bytes that are no messages to its standard output")
            return
        self._garbage = 0
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._said.send(SessionMessage(message))

    async def _listen(self) -> None:
        """Keep the end of what the server writes to its error output."""
        stream = self._supervised.stderr
        assert stream is not None
        kept = b""
        while chunk := await stream.receive_some(_CHUNK):
            kept = (kept + bytes(chunk))[-_STDERR_KEPT:]
            self._notes.stderr = kept.decode("utf-8", "replace")
            self._notes.stderr_bytes += len(chunk)


class _Outgoing:
    """The SDK's stream of messages to the server; sending never waits for it."""

    def __init__(self, pipes: _Pipes) -> None:
        self._pipes = pipes

    async def send(self, item: SessionMessage, /) -> None:
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._pipes.send(text.encode() + b"\n")
        await trio.lowlevel.cancel_shielded_checkpoint()

    async def aclose(self) -> None:
        await trio.lowlevel.cancel_shielded_checkpoint()

    async def __aenter__(self) -> _Outgoing:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
