"""A server that is a program of its own, and is spoken to over its standard streams.

Rules.  `toolrt.processes.Conversation` speaks with it; this module cuts the stream into messages.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from toolrt.plugins.lsp._framing import Framing, framed
from toolrt.plugins.lsp._port import Message, Talk
from toolrt.plugins.lsp._server import LanguageServer
from toolrt.processes import Conversation, ProgramNotes, Supervised, start_spoken_to
from toolrt.processes._unanswered import Gone
from toolrt.services._environment import environment_of

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
