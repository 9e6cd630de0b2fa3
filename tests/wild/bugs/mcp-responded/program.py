"""A cancel notification that meets the end of a tool crashes an MCP server.  No toolrt is needed."""

from __future__ import annotations

import anyio
import trio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

ASK = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "work", "arguments": {}}}
CANCEL = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}


def message(body: dict[str, object]) -> SessionMessage:
    """What a transport hands to the session."""
    return SessionMessage(types.JSONRPCMessage.model_validate(body))


async def session(pause: int, shielded: float = 0) -> None:
    """Send a call and its cancel notification; the server has to live on."""
    server: Server[None] = Server("one")
    ready = trio.Event()

    @server.call_tool(validate_input=False)
    async def call_tool(name: str, arguments: dict[str, object]) -> list[types.TextContent]:
        if shielded:
            with trio.CancelScope(shield=True):
                await trio.sleep(shielded)
        else:
            await ready.wait()
        return []

    async def list_tools(request: types.ListToolsRequest) -> types.ServerResult:
        return types.ServerResult(types.ListToolsResult(tools=[]))

    server.request_handlers[types.ListToolsRequest] = list_tools
    to_server, in_server = anyio.create_memory_object_stream[SessionMessage | Exception](4)
    from_server, in_client = anyio.create_memory_object_stream[SessionMessage](4)

    async with trio.open_nursery() as nursery:

        async def serve() -> None:
            await server.run(in_server, from_server, server.create_initialization_options(), stateless=True)

        nursery.start_soon(serve)
        await to_server.send(message(ASK))
        for _ in range(pause):
            await trio.lowlevel.checkpoint()
        await trio.sleep(shielded / 2)
        ready.set()
        await to_server.send(message(CANCEL))
        await trio.sleep(1 if shielded == 0 else 3 * shielded)
        to_server.close()
    in_client.close()


async def program(pause: int = 1) -> None:
    """The notification follows the call at once, and the tool has just what it waits for."""
    await session(pause)


async def on_plain_trio() -> None:
    """The tool is in a part that must not be interrupted when the notification comes."""
    await session(0, shielded=0.1)


if __name__ == "__main__":
    trio.run(on_plain_trio)
