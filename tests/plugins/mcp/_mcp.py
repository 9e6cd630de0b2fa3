"""Servers to connect to, and what is left of them."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import trio

from toolrt import BatchOutcome, Registry, Runtime, ToolCall
from toolrt.plugins import mcp

#: Whether the SDK is of version 1; None: there is none.
FIRST = None if find_spec("mcp") is None else version("mcp").startswith("1.")

#: Marks of tests whose servers are programs.
OF_PROGRAMS = [
    pytest.mark.usefixtures("nothing_left"),
    pytest.mark.skipif(os.name != "posix", reason="servers are started on POSIX systems"),
]

SERVERS = Path(__file__).parent / "servers"


def proper(name: str = "x", **options: Any) -> mcp.McpServer:
    """The server that is made with the SDK, as a program."""
    return mcp.McpServer(name, [sys.executable, str(SERVERS / "proper.py")], env=_marked(), **options)


def rough(configuration: dict[str, Any] | None = None, name: str = "r", **options: Any) -> mcp.McpServer:
    """The server that does as it is told, however wrong; it starts at once."""
    program = [sys.executable, "-I", "-S", str(SERVERS / "rough.py"), json.dumps(configuration or {})]
    return mcp.McpServer(name, program, env=_marked(), **options)


def _marked() -> dict[str, str]:
    """What every process of these servers carries."""
    return {"TOOLRT_TEST_OWNER": str(os.getpid())}


def calls_of(*calls: tuple[str, dict[str, Any]]) -> list[ToolCall]:
    """Calls by name and input."""
    return [ToolCall(str(index), name, input) for index, (name, input) in enumerate(calls)]


async def run(tools: Sequence[Any], *calls: tuple[str, dict[str, Any]]) -> BatchOutcome:
    """One batch of these calls."""
    return await Runtime(Registry(tools)).run(calls_of(*calls))


def connected(server: mcp.McpServer, use: Callable[[mcp.McpTools], Awaitable[Any]]) -> Any:
    """What `use` gives with the server's tools."""

    async def main() -> Any:
        async with mcp.connect([server]) as tools:
            return await use(tools)

    return trio.run(main)


def outcome(server: mcp.McpServer, *calls: tuple[str, dict[str, Any]]) -> BatchOutcome:
    """One batch of these calls, on a connection of its own."""
    done: BatchOutcome = connected(server, lambda tools: run(tools, *calls))
    return done


def processes() -> set[int]:
    """The processes of these servers, whoever their parent is, and the children of this process."""
    found = set()
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        try:
            environment = Path(f"/proc/{name}/environ").read_bytes()
            parent = int(Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[1])
        except OSError:
            continue
        if f"TOOLRT_TEST_OWNER={os.getpid()}\0".encode() in environment or parent == os.getpid():
            found.add(int(name))
    return found


def command_lines() -> list[str]:
    """What the processes of these servers were started as."""
    found = []
    for pid in processes():
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def descriptors() -> dict[str, str]:
    """What is open in this process."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
    return found


def threads() -> set[threading.Thread]:
    """The threads of this process, but those that Trio keeps for the next that needs one."""
    return {thread for thread in threading.enumerate() if not thread.name.startswith("Trio thread")}


def offers(name: str = "echo", schema: object = None, **annotations: bool) -> dict[str, Any]:
    """A tool as a server lists it."""
    return {"name": name, "inputSchema": schema or {"type": "object"}, "annotations": annotations}


def says(*messages: object) -> tuple[str, dict[str, Any]]:
    """A call of the rough server that says these messages."""
    return "r__say", {"messages": list(messages)}


def item_of(message: Any) -> Any:
    """A JSON-RPC message, as the SDK hands it on."""
    from mcp.shared.message import SessionMessage
    from mcp.types import JSONRPCMessage

    return SessionMessage(JSONRPCMessage(message) if FIRST else message)


def answers(**fields: Any) -> dict[str, Any]:
    """An answer to the call, as a message."""
    return {"id": "$id", "result": fields}
