"""`Tool.from_mcp`: tools over a session of the SDK that the caller holds, on Trio and on asyncio."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from tests.plugins.mcp._mcp import calls_of
from tests.plugins.mcp.test_simulated import _server_of_this_process
from toolrt import BatchOutcome, Registry, Runtime, Tool, aio
from toolrt.errors import DefinitionRefused, InputRefused

pytest.importorskip("mcp", reason="the mcp extra is not installed")

CALLS = calls_of(
    ("add", {"a": 1, "b": 2}), ("put", {"key": "k", "value": "v"}), ("get", {"key": "k"}), ("fail", {}),
    ("add", {"a": "x"}), ("picture", {}),
)  # fmt: skip


@contextlib.asynccontextmanager
async def opened() -> AsyncIterator[tuple[Any, list[Any]]]:
    """A session as any program opens one, and what its server lists."""
    from toolrt.plugins.mcp._versions import ClientSession, in_memory

    async with (
        in_memory(_server_of_this_process()) as (incoming, outgoing),
        ClientSession(incoming, outgoing) as session,
    ):
        await session.initialize()
        yield session, (await session.list_tools()).tools


def held(done: BatchOutcome) -> None:
    """What the calls came to, in call order."""
    contents = [result.content or result.error for result in done.results]
    assert contents[:4] == ["3", "kept", "v", "there is no such thing"]
    assert contents[4].startswith("invalid call of tool 'add'")
    assert contents[5] == "look:\n[image/png, 5 bytes]"


def test_tools_of_a_session_on_trio() -> None:
    """Reads of a trusted server overlap, everything else runs alone."""

    async def main() -> None:
        async with opened() as (session, listed):
            tools = [Tool.from_mcp(session, one, trusted=True) for one in listed]
            assert {tool.name: tool.safe for tool in tools}["add"] is True
            assert {tool.name: tool.safe for tool in tools}["put"] is False
            held(await Runtime(Registry(tools)).run(CALLS))
            assert Tool.from_mcp(session, listed[0], name="plus").name == "plus"
            assert Tool.from_mcp(session, listed[0]).safe is False
            with pytest.raises(DefinitionRefused, match="a ClientSession"):
                Tool.from_mcp(None, listed[0])
            with pytest.raises(DefinitionRefused, match=r"as session\.list_tools\(\) gives it"):
                Tool.from_mcp(session, "add")
            # A field of the SDK's own model, by whichever of its names.
            listed[0].__dict__.update(inputSchema={"type": "array"}, input_schema={"type": "array"})
            with pytest.raises(InputRefused, match="tool 'add'"):
                Tool.from_mcp(session, listed[0])

    trio.run(main)


def test_tools_of_a_session_on_asyncio() -> None:
    """The session stays on its event loop, and the batch is awaited there."""

    async def main() -> None:
        async with opened() as (session, listed):
            tools = [Tool.from_mcp(session, one, trusted=True) for one in listed]
            held(await aio.run(Runtime(Registry(tools)), CALLS))

    asyncio.run(main())
