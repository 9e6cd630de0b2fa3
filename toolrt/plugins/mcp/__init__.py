"""Tools of MCP servers: programs that speak the Model Context Protocol, as tools of the runtime.

A server's tool has the server's own schema, its progress, and an outcome of law 1 whatever the server does.  Servers
that are programs, or objects of the SDK, need the ``mcp`` extra; a `RecordedMcpServer` needs nothing.

And `serve` is the other side: it offers the tools of a runtime to an MCP host, and needs no extra; `HttpApp` does the
same for hosts that come by HTTP.
"""

from typing import Any

from toolrt.errors import MissingExtra
from toolrt.model import Tool
from toolrt.plugins.mcp._connect import Connecting, McpServerStatus, McpTools, connect
from toolrt.plugins.mcp._elicitation import Elicitation
from toolrt.plugins.mcp._port import Hints, Offered
from toolrt.plugins.mcp._recorded import RecordedAnswer, RecordedMcpServer
from toolrt.plugins.mcp._serve import Root, RuntimeOfRoots, ServedTools, serve
from toolrt.plugins.mcp._serve_http import HttpApp
from toolrt.plugins.mcp._server import McpServer

__all__ = [
    "Connecting",
    "Elicitation",
    "Hints",
    "HttpApp",
    "McpServer",
    "McpServerStatus",
    "McpTools",
    "Offered",
    "RecordedAnswer",
    "RecordedMcpServer",
    "Root",
    "RuntimeOfRoots",
    "ServedTools",
    "connect",
    "serve",
]


def _tool_from_mcp(session: Any, tool: Any, **options: Any) -> Tool:
    """See `Tool.from_mcp`."""
    try:
        from toolrt.plugins.mcp._given_session import tool_from_session
    except ImportError as error:
        raise MissingExtra("Tool.from_mcp", "mcp") from error
    return tool_from_session(session, tool, **options)
