"""What differs between versions 1 and 2 of the SDK, in one place.

Version 1 wraps each message in a model of its own and names fields as the protocol does; it tells a server nothing when
the task that awaits a call is cancelled.  Everything here is `Any`: a type checker sees one of the two.

It imports the SDK, so nothing imports it until a server is connected.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import AsyncIterator, Mapping
from importlib.metadata import version
from typing import Any

import anyio

#: Whether the installed SDK is of version 1.
FIRST = version("mcp").startswith("1.")

#: The protocol's types.
types: Any = importlib.import_module("mcp.types")
_exceptions: Any = importlib.import_module("mcp.shared.exceptions")
#: What a session raises for a JSON-RPC error; it is in the field ``error``.
SdkError: type[Any] = _exceptions.McpError if FIRST else _exceptions.MCPError
SessionMessage: Any = importlib.import_module("mcp.shared.message").SessionMessage
ClientSession: Any = importlib.import_module("mcp.client.session").ClientSession

#: A server that speaks only revisions without ``initialize``.  Version 1 knows none of these.
UNSUPPORTED_REVISION: int | None = None if FIRST else types.UNSUPPORTED_PROTOCOL_VERSION


def servers_of_this_process() -> tuple[type[Any], ...]:
    """The classes of the SDK's servers."""
    server = importlib.import_module("mcp.server").Server
    name, module = ("FastMCP", "mcp.server.fastmcp") if FIRST else ("MCPServer", "mcp.server.mcpserver")
    return getattr(importlib.import_module(module), name), server


def message_of(item: Any) -> Any:
    """The JSON-RPC message of a `SessionMessage`."""
    return item.message.root if FIRST else item.message


def parsed(line: bytes) -> Any:
    """A `SessionMessage` of what a server wrote.

    Raises:
        ValueError: it is no message.
    """
    if FIRST:
        return SessionMessage(types.JSONRPCMessage.model_validate_json(line))
    return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))


def written(item: Any) -> bytes:
    """What a server is sent for a `SessionMessage`."""
    without = {"exclude_none": True} if FIRST else {"exclude_unset": True}
    text: str = item.message.model_dump_json(by_alias=True, **without)
    return text.encode()


def field(value: Any, name: str) -> Any:
    """A field by its name in version 2."""
    if FIRST:
        head, *rest = name.split("_")
        name = head + "".join(word.title() for word in rest)
    return getattr(value, name)


def call_request(name: str, arguments: Mapping[str, Any], token: str) -> Any:
    """The request of a call whose progress is told under `token`."""
    meta = {"progressToken": token} if FIRST else {"progress_token": token}
    params = types.CallToolRequestParams(name=name, arguments=dict(arguments), _meta=meta)
    request = types.CallToolRequest(params=params)
    return types.ClientRequest(request) if FIRST else request


def cancel_notification(id: Any) -> Any:
    """Tell a server that the request of this id is cancelled; for version 1 only."""
    params = types.CancelledNotificationParams(requestId=id, reason="cancelled")
    return types.ClientNotification(types.CancelledNotification(params=params))


@contextlib.asynccontextmanager
async def in_memory(server: Any) -> AsyncIterator[tuple[Any, Any]]:
    """Streams to a server of this process, which runs while the block lasts."""
    if not FIRST:
        async with importlib.import_module("mcp.client._memory").InMemoryTransport(server) as streams:
            yield streams
        return
    server = getattr(server, "_mcp_server", server)
    opened = importlib.import_module("mcp.shared.memory").create_client_server_memory_streams()
    async with opened as (ours, (incoming, outgoing)), anyio.create_task_group() as group:
        group.start_soon(server.run, incoming, outgoing, server.create_initialization_options())
        try:
            yield ours
        finally:
            group.cancel_scope.cancel()


@contextlib.asynccontextmanager
async def over_http(url: str, headers: Mapping[str, str]) -> AsyncIterator[tuple[Any, Any]]:
    """Streams to a server that listens at `url`, by streamable HTTP."""
    transport = importlib.import_module("mcp.client.streamable_http")
    client = importlib.import_module("mcp.shared._httpx_utils").create_mcp_http_client(headers=dict(headers))
    async with client, transport.streamable_http_client(url, http_client=client) as (incoming, outgoing, *_):
        yield incoming, outgoing
