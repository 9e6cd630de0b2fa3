"""From servers to the tools they offer, for as long as they are wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast, overload

import attrs
import trio

from toolrt import probe
from toolrt._plain import counted
from toolrt.errors import DefinitionRefused, InputRefused, MissingExtra, NotSimulated
from toolrt.model import Tool
from toolrt.plugins.mcp._connection import McpConnection
from toolrt.plugins.mcp._names import chosen, named
from toolrt.plugins.mcp._port import Hints, Offered, Peer
from toolrt.plugins.mcp._recorded import RecordedMcpServer
from toolrt.plugins.mcp._server import McpServer
from toolrt.plugins.mcp._tools import believed, tool_of
from toolrt.processes._connection import ServersBlock
from toolrt.processes._given import check_servers
from toolrt.processes._unanswered import Unanswered


@attrs.frozen
class McpServerStatus:
    """What is known of a server beside its answers: for people, not for models."""

    #: The server's name.
    name: str
    #: How many times it was started, the first time included.
    starts: int
    #: How the present connection ended, or the last one: "it ended with exit status 3"; None: it stands.
    ended: str | None
    #: The end of what the present program, or the last one, wrote to its error output.
    stderr: str
    #: Bytes that it wrote there altogether.
    stderr_bytes: int
    #: Lines of its standard output that were no messages, and were dropped.
    garbage: int


class McpTools(Sequence[Tool]):
    """The tools of the connected servers, in the servers' order and in each server's own.

    They stay what they are: a server that offers others later is heard (`changed`), and asked anew by `relist`.
    """

    def __init__(self, connections: Sequence[McpConnection], owner: Any) -> None:
        self._connections = tuple(connections)
        self._owner = owner
        self._tools: tuple[Tool, ...] = ()
        self._offered: dict[str, tuple[McpConnection, Offered]] = {}

    @overload
    def __getitem__(self, place: int) -> Tool: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Tool]: ...
    def __getitem__(self, place: int | slice) -> Tool | Sequence[Tool]:
        return self._tools[place]

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools)

    def __repr__(self) -> str:
        return f"McpTools({', '.join(tool.name for tool in self)})"

    def hints(self, name: str) -> Hints:
        """What is believed of a tool: what a trusted server says of it, and the worst of any other.

        Args:
            name: as models call it.

        Raises:
            KeyError: it is no tool of these servers.
        """
        connection, offered = self._offered[name]
        return believed(connection.server.trusted, offered)

    @property
    def changed(self) -> tuple[str, ...]:
        """The names of the servers that said that their tools have changed, and were not asked since."""
        return tuple(connection.server.name for connection in self._connections if connection.changed)

    @property
    def servers(self) -> Mapping[str, McpServerStatus]:
        """How each server is, by its name."""
        return {one.server.name: _status(one) for one in self._connections}

    async def relist(self) -> McpTools:
        """The tools that the servers offer now, over the same connections; make a new `Registry` of them.

        Raises:
            InputRefused: as `connect`.

        Checkpoint: always.
        """
        tools = McpTools(self._connections, self._owner)
        for connection in self._connections:
            connection.ask_anew()
        await tools._fill()
        return tools

    async def _fill(self) -> None:
        """Ask each server what it offers, and make tools of that."""
        found: dict[str, tuple[Offered, ...] | InputRefused] = {}

        async def ask(connection: McpConnection) -> None:
            name = connection.server.name
            try:
                found[name] = await connection.offers()
            except Unanswered as error:
                found[name] = _failed(connection, str(error))

        async with trio.open_nursery() as nursery:
            for connection in self._connections:
                nursery.start_soon(ask, connection)
        offers: list[tuple[McpConnection, Offered]] = []
        for connection in self._connections:
            offered = found[connection.server.name]
            if isinstance(offered, InputRefused):
                raise offered from connection.last.error
            offers.extend((connection, tool) for tool in chosen(connection.server, offered))
        names = named((connection.server, tool) for connection, tool in offers)
        self._offered = dict(zip(names, offers, strict=True))
        self._tools = tuple(tool_of(*offer, name, self._owner) for name, offer in self._offered.items())


def _status(connection: McpConnection) -> McpServerStatus:
    name, notes = connection.server.name, connection.last.notes
    return McpServerStatus(name, connection.starts, notes.ended, notes.stderr, notes.stderr_bytes, notes.dropped)


#: Characters of a server's error output that an error shows.
_SHOWN = 2_000


def _failed(connection: McpConnection, why: str) -> InputRefused:
    notes = connection.last.notes
    also = [] if notes.ended is None or notes.ended == why else [notes.ended]
    if notes.dropped:
        also.append(f"toolrt dropped {counted(notes.dropped, 'line')} of its standard output: no protocol messages")
    if notes.stderr.strip():
        also.append(f"the end of its error output: {notes.stderr.strip()[-_SHOWN:]}")
    return InputRefused(
        f"MCP server {connection.server.name!r}",
        "; ".join((why, *also)),
        "Run its command by hand to see what it says, or do without it.",
    )


class Connecting(ServersBlock):
    """What `connect` gives: entered, it is the tools; left, nothing of the servers is left."""

    def __init__(self, servers: Sequence[McpServer], owner: Any) -> None:
        self._servers = servers
        self._owner = owner

    async def __aenter__(self) -> McpTools:
        """Start the servers, and give their tools.

        Checkpoint: always.
        """
        peers = [_peer_of(server) for server in self._servers]
        nursery = await self._open_nursery()
        connections = [
            McpConnection(server.restarts, server.start_timeout, nursery, server, peer)
            for server, peer in zip(self._servers, peers, strict=True)
        ]
        self._connections = connections
        tools = McpTools(connections, self._owner)
        try:
            await tools._fill()
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)  # noqa: ASYNC102  shielded and bounded
            raise
        return tools


def connect(servers: Sequence[McpServer], *, owner: Any = None) -> Connecting:
    """Connect to MCP servers; inside the block, the value is their tools.

    The servers are started side by side, and each is asked what it offers.  A server that dies is started anew for the
    next call.  Leaving the block ends all of them, and every process they started, in seconds; batches do not wait for
    that.

    Args:
        servers: with distinct names.
        owner: whose files the servers may look at: a `Workspace`.  Then read-only tools are ordered with the calls that
            change its files; without it they are ordered with nothing.

    Raises:
        DefinitionRefused: two servers share a name, or a value is none of what is expected.
        InputRefused: a server cannot be connected, or what it offers cannot be used; all are ended, and the text has
            the end of what it wrote to its error output.
        MissingExtra: the ``mcp`` extra is not installed.
        NotSimulated: a program would have to be started inside a simulation.

    Checkpoint: entering and leaving do always.  Leaving cannot be cancelled; it takes three seconds for a program that
    does not end when its input is closed.

    Example::

        async with mcp.connect([mcp.McpServer("files", ["my-server"], trusted=True)]) as tools:
            runtime = Runtime(Registry([*workspace.tools(), *tools]))
    """
    servers = list(servers)
    check_servers("mcp.connect(servers)", servers, McpServer)
    if owner is not None and not hasattr(owner, "claim_table"):
        raise DefinitionRefused("mcp.connect(owner)", "an object with a claim_table, such as a Workspace", owner)
    return Connecting(servers, owner)


def _peer_of(server: McpServer) -> Peer:
    if isinstance(server.server, RecordedMcpServer):
        return server.server
    if server.server is None and probe.threads_inline:
        raise NotSimulated(
            f"{'start the program of' if server.url is None else 'connect to'} MCP server {server.name!r}",
            "give it a server of this process, or a record: McpServer(name, server=...)",
        )
    try:
        if server.url is not None:
            from toolrt.plugins.mcp._http import HttpPeer

            return HttpPeer()
        if server.server is None:
            from toolrt.plugins.mcp._stdio import StdioPeer

            return StdioPeer()
        from toolrt.plugins.mcp._sdk import InsidePeer
        from toolrt.plugins.mcp._versions import servers_of_this_process
    except ImportError as error:
        raise MissingExtra(f"MCP server {server.name!r}", "mcp") from error
    if not isinstance(server.server, servers_of_this_process()):
        expected = "an MCPServer or Server of the SDK, or a RecordedMcpServer"
        raise DefinitionRefused(f"MCP server {server.name!r}: server", expected, server.server)
    return cast(Peer, InsidePeer(server.server))
