"""A server that is a program of its own, and is spoken to over its standard streams.

Rules.
    1. `toolrt.processes.Conversation` speaks with it: no call waits for what is sent, nor for the end of the program,
       but one that wants the server anew.
    2. A message is a line.  A line that is none is dropped and counted.  A server that writes too much of that, or a
       message that is too long, has lost its connection.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import anyio
import anyio.abc
import attrs
import trio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment

from toolrt.plugins.mcp._port import Talk
from toolrt.plugins.mcp._sdk import hold
from toolrt.plugins.mcp._server import McpServer
from toolrt.plugins.mcp._versions import parsed, written
from toolrt.processes import Conversation, NotStarted, ProgramNotes, Supervised, start_spoken_to

#: Bytes of one message.
_MESSAGE_MOST = 16 * 1024 * 1024
#: Bytes that wait to be read by the server.
_UNREAD_MOST = 16 * 1024 * 1024
#: Bytes in a row that are no message.
_GARBAGE_MOST = 1024 * 1024
#: Seconds in which a server has to end by itself once its input is closed; the specification's own order.
_LINGER = 2.0


class StdioPeer:
    """Starts the server's program, once for each connection."""

    async def serve(self, server: McpServer, talk: Talk, notes: ProgramNotes) -> None:
        """See `Peer.serve`."""
        environment = {**get_default_environment(), **server.env}
        command = server.command or ()
        supervised = await start_spoken_to(command, directory=_directory(server), environment=environment)
        lines = _Lines(supervised, notes)

        async def speak() -> None:
            await hold((lines.incoming, _Outgoing(lines.conversation)), talk)

        try:
            await lines.conversation.hold(speak)
        finally:
            lines.incoming.close()


def _directory(server: McpServer) -> str:
    directory = os.path.realpath(server.cwd or ".")
    if not os.path.isdir(directory):
        raise NotStarted(f"there is no directory {os.fspath(server.cwd or '.')!r} to start it in")
    return directory


@attrs.define(eq=False)
class _Lines:
    """Makes messages of the lines that the server writes."""

    _supervised: Supervised
    _notes: ProgramNotes
    conversation: Conversation = attrs.field(init=False)
    #: What the server said, message by message.
    incoming: MemoryObjectReceiveStream[Any] = attrs.field(init=False)
    _said: MemoryObjectSendStream[Any] = attrs.field(init=False)
    #: The line that has not ended yet.
    _line: bytearray = attrs.field(factory=bytearray, init=False)
    #: Bytes in a row that were no message.
    _garbage: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._said, self.incoming = anyio.create_memory_object_stream[Any](0)
        self.conversation = Conversation(
            self._supervised, self._notes, self._hear, self._said.close, _UNREAD_MOST, _LINGER
        )

    async def _hear(self, piece: bytes) -> None:
        first, *others = piece.split(b"\n")
        self._line += first
        for other in others:
            await self._hand_on(bytes(self._line))
            self._line = bytearray(other)
        if len(self._line) > _MESSAGE_MOST:
            self.conversation.give_up(f"it sent a message of more than {_MESSAGE_MOST:,} bytes")

    async def _hand_on(self, line: bytes) -> None:
        """Hand on a message; it is dropped when the session is gone."""
        if not line.strip():
            return
        try:
            message = parsed(line)
        except ValueError:
            self._notes.dropped += 1
            self._garbage += len(line)
            if self._garbage > _GARBAGE_MOST:
                problem = f"it wrote more than {_GARBAGE_MOST:,} bytes that are no messages to its standard output"
                self.conversation.give_up(problem)
            return
        self._garbage = 0
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._said.send(message)


class _Outgoing(anyio.abc.ObjectSendStream[Any]):
    """The SDK's stream of messages to the server; sending never waits for it."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    async def send(self, item: Any, /) -> None:
        if not self._conversation.send(written(item) + b"\n"):
            raise anyio.ClosedResourceError
        await trio.lowlevel.cancel_shielded_checkpoint()

    async def aclose(self) -> None:
        await trio.lowlevel.cancel_shielded_checkpoint()
