"""A proper MCP server, made with the SDK: ``python proper.py``."""

from __future__ import annotations

import os
import sys

import anyio
from mcp.types import CallToolResult, TextContent, ToolAnnotations

try:
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver import Image as Picture
except ImportError:  # version 1 of the SDK
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as MCPServer
    from mcp.server.fastmcp import Image as Picture

# The protocol's names of fields, which both versions take.
READS = ToolAnnotations(readOnlyHint=True)
SETS = ToolAnnotations(idempotentHint=True, destructiveHint=False)


def server() -> MCPServer:
    """The server, for a program or for this process."""
    made = MCPServer("proper")
    kept: dict[str, str] = {}

    @made.tool(annotations=READS)
    async def add(a: int, b: int, ctx: Context) -> int:
        """The sum of two numbers."""
        for step in range(3):
            await ctx.report_progress(step, 3, f"step {step}")
        return a + b

    @made.tool(annotations=READS)
    async def get(key: str) -> str:
        """What was put there."""
        return kept.get(key, "(nothing)")

    @made.tool(annotations=SETS)
    async def put(key: str, value: str) -> str:
        """Keep a value."""
        kept[key] = value
        return "kept"

    @made.tool()
    async def nap(seconds: float, ctx: Context) -> str:
        """Wait; a cancel is kept under its name."""
        await ctx.report_progress(0, None, "sleeping")
        try:
            await anyio.sleep(seconds)
        except BaseException:
            kept["cancelled"] = "yes"
            raise
        return "slept"

    @made.tool()
    async def fail() -> CallToolResult:
        """Say that it failed."""
        text = TextContent(type="text", text="there is no such thing")
        return CallToolResult(content=[text], isError=True)

    @made.tool()
    async def picture():  # without a type: version 1 would make a schema of it
        """A text and a picture of five bytes."""
        return ["look:", Picture(data=b"\x89PNG.", format="png")]

    @made.tool()
    async def die(status: int) -> str:
        """End the server."""
        os._exit(status)

    return made


if __name__ == "__main__":
    print("proper server: ready", file=sys.stderr)
    server().run("stdio")
