"""A server that is a program of its own, and is spoken to over its standard streams.

Rules.
    1. `toolrt.processes.Conversation` speaks with it; this module cuts the stream into messages.
    2. A message is that of LSP's base protocol (3.17): a header in ASCII, which ends with an empty line and has a
       ``Content-Length``, and a content.  After a header that is none, or announces more than is taken, nothing can be
       understood any more: the connection is lost.  A content that is no JSON object is skipped, and counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import attrs
import trio

from toolrt.plugins.lsp._port import Message, Talk
from toolrt.plugins.lsp._server import LanguageServer
from toolrt.processes import Conversation, ProgramNotes, Supervised, start_spoken_to
from toolrt.processes._unanswered import Gone
from toolrt.services._environment import environment_of

#: Bytes of one message.
MESSAGE_MOST = 16 * 1024 * 1024
#: Bytes of a header.
_HEADER_MOST = 4 * 1024
#: Contents in a row that are no message.
_GARBAGE_MOST = 100

_LENGTH = re.compile(rb"(?:^|\r\n)content-length:[ \t]*([0-9]{1,12})[ \t]*(?=\r\n|$)", re.IGNORECASE)


def framed(message: Message) -> bytes:
    """`message` as it is sent."""
    content = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(content), content)


class Framing:
    """Makes messages of bytes that come in pieces."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        #: How long the content is whose header was read; None: a header comes next.
        self._length: int | None = None
        self._in_a_row = 0
        #: How many contents were no messages.
        self.garbage = 0

    def feed(self, piece: bytes) -> list[Message]:
        """The messages that `piece` completes.

        Raises:
            Gone: what comes cannot be understood.
        """
        self._bytes += piece
        messages: list[Message] = []
        while True:
            if self._length is None and not self._read_header():
                return messages
            assert self._length is not None
            if len(self._bytes) < self._length:
                return messages
            content = bytes(self._bytes[: self._length])
            del self._bytes[: self._length]
            self._length = None
            message = _message_of(content)
            if message is not None:
                self._in_a_row = 0
                messages.append(message)
                continue
            self.garbage += 1
            self._in_a_row += 1
            if self._in_a_row > _GARBAGE_MOST:
                raise Gone(f"it sent more than {_GARBAGE_MOST} messages in a row that are no JSON objects")

    def _read_header(self) -> bool:
        end = self._bytes.find(b"\r\n\r\n", 0, _HEADER_MOST + 4)
        if end < 0:
            if len(self._bytes) > _HEADER_MOST:
                raise Gone("it wrote what is no message of the protocol to its standard output")
            return False
        found = _LENGTH.search(bytes(self._bytes[:end]))
        if found is None:
            raise Gone("it wrote what is no message of the protocol to its standard output")
        length = int(found[1])
        if length > MESSAGE_MOST:
            raise Gone(f"it announced a message of more than {MESSAGE_MOST:,} bytes")
        del self._bytes[: end + 4]
        self._length = length
        return True


def _message_of(content: bytes) -> Message | None:
    try:
        message = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


#: Bytes that wait to be read by the server.
_UNREAD_MOST = 32 * 1024 * 1024
#: Seconds in which a server has to end by itself once its input is closed.
_LINGER = 1.0


class StdioLanguagePeer:
    """Starts the server's program, once for each connection."""

    async def serve(self, server: LanguageServer, root: str, talk: Talk, notes: ProgramNotes) -> None:
        """See `Peer.serve`."""
        environment = environment_of(server.env)
        supervised = await start_spoken_to(server.command or (), directory=root, environment=environment)
        channel = _StdioChannel(supervised, notes)

        async def talk_while_there() -> None:
            with channel.talking:
                await talk(channel)

        await channel.conversation.hold(talk_while_there)


@attrs.define(eq=False)
class _StdioChannel:
    """One connection to the program."""

    _supervised: Supervised
    _notes: ProgramNotes
    #: Cancelled when the connection is lost.
    talking: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    conversation: Conversation = attrs.field(init=False)
    _framing: Framing = attrs.field(factory=Framing, init=False)
    _take: Callable[[Message], None] | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.conversation = Conversation(
            self._supervised, self._notes, self._hear, self.talking.cancel, _UNREAD_MOST, _LINGER
        )

    def listen(self, take: Callable[[Message], None]) -> None:
        """See `Channel.listen`."""
        self._take = take

    def send(self, message: Message) -> None:
        """See `Channel.send`."""
        self.conversation.send(framed(message))

    def give_up(self, problem: str) -> None:
        """See `Channel.give_up`."""
        self.conversation.give_up(problem)

    async def _hear(self, piece: bytes) -> None:
        before = self._framing.garbage
        try:
            for message in self._framing.feed(piece):
                if self._take is not None and not self.talking.cancel_called:
                    self._take(message)
        except Gone as gone:
            self.give_up(str(gone))
        self._notes.dropped += self._framing.garbage - before
