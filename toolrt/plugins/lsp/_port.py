"""A connection to a language server.

Rules.  A message is a JSON object.  Sending never waits; what is received is handed over at once, in the order in which
it came, to a function that does not wait either.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

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
