"""A call and its cancel notification end an MCP session.  `python program.py` needs no toolrt."""

from __future__ import annotations

import anyio
import trio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

ASK = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait", "arguments": {}}}
CANCEL = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


def message(body: dict[str, object]) -> SessionMessage:
    """What a transport hands to the session."""
    return SessionMessage(types.JSONRPCMessage.model_validate(body))


async def session(pause: int | float, slow_reader: float = 0) -> None:
    """Send a call, a cancel notification, and a ping, which has to be answered."""
    server: Server[None] = Server("one")

    @server.call_tool(validate_input=False)
    async def call_tool(name: str, arguments: dict[str, object]) -> list[types.TextContent]:
        await trio.lowlevel.checkpoint()
        return []

    async def list_tools(request: types.ListToolsRequest) -> types.ServerResult:
        return types.ServerResult(types.ListToolsResult(tools=[]))

    server.request_handlers[types.ListToolsRequest] = list_tools
    to_server, in_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    from_server, in_client = anyio.create_memory_object_stream[SessionMessage](0)
    answers: list[object] = []

    async with trio.open_nursery() as nursery:

        async def serve() -> None:
            await server.run(in_server, from_server, server.create_initialization_options(), stateless=True)

        async def hear() -> None:
            await trio.sleep(slow_reader)
            async for one in in_client:
                answers.append(one.message.root.id)  # type: ignore[union-attr]

        nursery.start_soon(serve)
        nursery.start_soon(hear)
        with trio.move_on_after(5):
            try:
                await to_server.send(message(ASK))
                if isinstance(pause, float):
                    await trio.sleep(pause)
                else:
                    for _ in range(pause):
                        await trio.lowlevel.checkpoint()
                await to_server.send(message(CANCEL))
                await to_server.send(message(PING))
                while 2 not in answers:  # noqa: ASYNC110
                    await trio.sleep(0.5)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass
        nursery.cancel_scope.cancel()
    assert 2 in answers, f"the ping was not answered; answers to {answers}"


async def program(pause: int = 1) -> None:
    """The notification follows the call at once."""
    await session(pause)


async def on_plain_trio() -> None:
    """The notification comes when the tool has ended and its result waits for a slow reader."""
    await session(0.05, slow_reader=0.2)


if __name__ == "__main__":
    trio.run(on_plain_trio)
