"""A server that listens somewhere else, and is spoken to by streamable HTTP.

Rules.
    1. The SDK's own transport speaks; each message is a request of its own, so a connection has no end that could be
       heard.  A request that fails loses the connection, and the next call opens a new one.
    2. Leaving the connection ends the server's session, if it keeps one.

It imports the SDK, so nothing imports it until a server is connected.
"""

from __future__ import annotations

from toolrt.plugins.mcp._port import Talk
from toolrt.plugins.mcp._sdk import hold
from toolrt.plugins.mcp._server import McpServer
from toolrt.plugins.mcp._versions import over_http
from toolrt.processes import ProgramNotes


class HttpPeer:
    """Connects to the server's address, once for each connection."""

    async def serve(self, server: McpServer, talk: Talk, notes: ProgramNotes) -> None:
        """See `Peer.serve`."""
        async with over_http(server.url or "", server.headers) as streams:
            if await hold(streams, talk):
                notes.ended = "the connection was lost"
