"""A server in this process: no program, no pipe, nothing that a simulation could not control.

The SDK's own transport in memory runs the server as it runs over pipes, message by message, so what is explored here is
the SDK's session and dispatcher themselves.  Its tools must be ``async def``: a plain function is run in a thread.
"""

from __future__ import annotations

from typing import Any

import attrs
import trio
from mcp.client._memory import InMemoryTransport

from toolrt.plugins.mcp._port import Talk
from toolrt.plugins.mcp._sdk import hold
from toolrt.plugins.mcp._server import McpServer
from toolrt.processes import ProgramNotes


@attrs.frozen
class InsidePeer:
    """Connects to a server object of the SDK."""

    #: An ``MCPServer`` or a low-level ``Server``.
    _server: Any

    async def serve(self, server: McpServer, talk: Talk, notes: ProgramNotes) -> None:
        """See `Peer.serve`."""
        async with InMemoryTransport(self._server) as streams:
            lost = await hold(streams, talk)
        await trio.lowlevel.cancel_shielded_checkpoint()
        if lost:
            notes.ended = "it closed the connection"
