"""Who speaks with a language server, and what is known of that.

Rules.  A message is a JSON object.  Sending never waits; what is received is handed over at once, in the order in which
it came, to a function that does not wait either.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from toolrt.processes import ProgramNotes

if TYPE_CHECKING:
    from toolrt.plugins.lsp._server import LanguageServer

#: One message of the protocol.
Message = dict[str, Any]


class Channel(Protocol):
    """One connection."""

    def send(self, message: Message) -> None:
        """Have `message` sent, after all before it; nothing where the connection is lost.

        Checkpoint: never.
        """

    def listen(self, take: Callable[[Message], None]) -> None:
        """Hand what is received to `take` from now on."""

    def give_up(self, problem: str) -> None:
        """The connection is lost; `problem` says why."""


#: What is done with a connection; it is cancelled when that is lost.
Talk = Callable[[Channel], Awaitable[None]]


@runtime_checkable
class LanguagePeer(Protocol):
    """The other side of a connection: a program, or a record."""

    async def serve(self, server: LanguageServer, root: str, talk: Talk, notes: ProgramNotes) -> None:
        """Connect, and `talk` until it returns or the connection is lost; then nothing of it is left.

        Raises:
            NotStarted: there was no connection at all.

        Checkpoint: always.  Also when it is cancelled, nothing is left on return; that is bounded.
        """
