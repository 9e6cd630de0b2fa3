"""An MCP host that speaks raw JSON-RPC with `mcp.serve`, over streams in memory."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import trio
import trio.testing

from toolrt import Registry, Runtime, Workspace
from toolrt.plugins import mcp
from toolrt.workspace import MemoryDisk


def request(id: Any, method: str, **params: Any) -> dict[str, Any]:
    """A request as the protocol writes it."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def call(id: Any, tool: str, /, _meta: Any = None, **arguments: Any) -> dict[str, Any]:
    """A call of a tool."""
    meta = {} if _meta is None else {"_meta": _meta}
    return request(id, "tools/call", name=tool, arguments=arguments, **meta)


def notification(method: str, **params: Any) -> dict[str, Any]:
    """A message that wants no answer."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def cancelled(id: Any) -> dict[str, Any]:
    """The host gives a request up."""
    return notification("notifications/cancelled", requestId=id)


def lines(messages: Iterable[Any]) -> bytes:
    """Messages as they are sent; bytes go as they are."""
    return b"".join(
        (one if isinstance(one, bytes) else json.dumps(one, ensure_ascii=False).encode()) + b"\n" for one in messages
    )


HELLO = request("hello", "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={})


def edits(path: str, count: int) -> list[dict[str, Any]]:
    """Calls 1 to `count`, and each finds only what the one before has left: ``<0>`` becomes ``<1>``, and so on."""
    return [call(n, "edit_file", path=path, old=f"<{n - 1}>", new=f"<{n}>") for n in range(1, count + 1)]


def files(**texts: str) -> Workspace:
    """A workspace in memory."""
    return Workspace(MemoryDisk({f"{name}.txt": text for name, text in texts.items()}))


class Host:
    """One connection to a server of this process."""

    def __init__(self, stream: trio.StapledStream[Any, Any]) -> None:
        self.stream = stream
        self._read = b""

    async def send(self, *messages: Any) -> None:
        """Send messages in one piece."""
        await self.stream.send_all(lines(messages))

    async def next(self) -> dict[str, Any]:
        """The next message of the server."""
        while b"\n" not in self._read:
            piece = await self.stream.receive_some()
            assert piece, "the server has closed its output"
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        assert found["jsonrpc"] == "2.0"
        return found

    async def take(self, count: int) -> list[dict[str, Any]]:
        """The next messages of the server."""
        return [await self.next() for _ in range(count)]

    async def texts(self, count: int) -> dict[Any, str]:
        """The answers to `count` calls, by id."""
        return {one["id"]: text(one) for one in await self.take(count)}


def text(answer: dict[str, Any]) -> str:
    """The text of an answer to a call."""
    return "".join(block["text"] for block in answer["result"]["content"])


@contextlib.asynccontextmanager
async def served(runtime: Runtime | list[Any], initialized: bool = True, **options: Any) -> AsyncIterator[Host]:
    """A host of a server that offers these tools; leaving it ends the host's stream, and the server has to end."""
    if not isinstance(runtime, Runtime):
        runtime = Runtime(Registry(runtime))
    ours, theirs = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: mcp.serve(runtime, theirs, theirs, **options))
        host = Host(ours)
        if initialized:
            await host.send(HELLO, notification("notifications/initialized"))
            assert "result" in await host.next()
        yield host
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await ours.send_eof()
