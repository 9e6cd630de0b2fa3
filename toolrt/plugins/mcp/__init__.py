"""Tools of MCP servers: programs that speak the Model Context Protocol, as tools of the runtime.

A server's tool has the server's own schema, its progress, and an outcome of law 1 whatever the server does.  Servers
that are programs, or objects of the SDK, need the ``mcp`` extra; a `RecordedMcpServer` needs nothing.
"""

from toolrt.plugins.mcp._connect import Connecting, McpServerStatus, McpTools, connect
from toolrt.plugins.mcp._port import Hints, Offered
from toolrt.plugins.mcp._recorded import RecordedAnswer, RecordedMcpServer
from toolrt.plugins.mcp._server import McpServer

__all__ = [
    "Connecting",
    "Hints",
    "McpServer",
    "McpServerStatus",
    "McpTools",
    "Offered",
    "RecordedAnswer",
    "RecordedMcpServer",
    "RecordedServer",
    "ServerStatus",
    "connect",
]

#: The former names of `RecordedMcpServer` and `McpServerStatus`.
RecordedServer = RecordedMcpServer
ServerStatus = McpServerStatus
