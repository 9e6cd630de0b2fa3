"""What an MCP server offers and answers, as values of our own, and who speaks with one.

Rules.  What a server says of itself is kept as it said it; what it leaves out means what the specification says
(revision 2025-11-25, ``ToolAnnotations``): not read-only, destructive, not idempotent, an open world.  Only the worst
of these is believed of a server that is not trusted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from toolrt.processes import ProgramNotes

if TYPE_CHECKING:
    from toolrt.plugins.mcp._server import McpServer

#: Takes what a call says while it runs; never waits.
Progress = Callable[[dict[str, Any]], object]


@attrs.frozen
class Hints:
    """What a server says a tool does; the defaults are the specification's."""

    #: Whether it changes nothing.
    read_only: bool = False
    #: Whether it may take away or overwrite something; False: it only adds.  Says nothing where `read_only`.
    destructive: bool = True
    #: Whether the same call a second time changes nothing more.  Says nothing where `read_only`.
    idempotent: bool = False
    #: Whether it deals with what is outside the server's own domain, such as the web.
    open_world: bool = True

    @property
    def repeatable(self) -> bool:
        """Whether a call whose end is not known may be sent again."""
        return self.read_only or self.idempotent


@attrs.frozen
class Offered:
    """A tool, as its server describes it."""

    #: What the server calls it.
    name: str
    #: The JSON schema of its input.
    input_schema: Mapping[str, Any] = attrs.field(factory=lambda: {"type": "object"})
    #: The description that models read.
    description: str = ""
    #: What the server says of it.
    hints: Hints = Hints()
    #: The JSON schema of its structured content; None: it states none.
    output_schema: Mapping[str, Any] | None = None


@attrs.frozen
class CallAnswer:
    """What a server answered to a call."""

    #: The content blocks, as the protocol writes them: ``{"type": "text", "text": "..."}``.
    content: tuple[Mapping[str, Any], ...] = ()
    #: The structured content; None: there is none.
    structured: Any = None
    #: Whether the tool says that it failed.
    is_error: bool = False


class Session(Protocol):
    """One connection to a server, from its first answer to its loss."""

    #: Whether the connection is lost.
    lost: bool
    #: Whether the server said that its tools have changed since they were last listed.
    changed: bool

    async def tools(self) -> tuple[Offered, ...]:
        """The tools that the server offers now.

        Raises:
            Unanswered: it does not say.
        """
        ...

    async def call(self, name: str, arguments: Mapping[str, Any], progress: Progress) -> CallAnswer:
        """Call a tool; a cancel is sent to the server, and the session stays usable.

        Raises:
            Gone: the connection was lost; whether the call had its effects is not known.
            Refused: the server did not answer as the protocol says.

        Ordering: `progress` gets messages in the order in which the server sent them, and none after this returned.
        """
        ...


#: What is done with a session that can be used.  The server cancels it when the connection is lost.
Talk = Callable[[Session], Awaitable[None]]


class Peer(Protocol):
    """The other side of a connection: a program, a server in this process, or a record."""

    async def serve(self, server: McpServer, talk: Talk, notes: ProgramNotes) -> None:
        """Connect, and `talk` until it returns or the connection is lost.

        Nothing of the connection is left on return, and neither when it was cancelled.

        Raises:
            Unanswered: there is no connection; the text says why.
        """
        ...
