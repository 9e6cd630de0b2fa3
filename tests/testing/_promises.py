"""Tools that promise what they are told to, and what was broken."""

from __future__ import annotations

from typing import Any

import trio

from toolrt import tool
from toolrt.model import Tool
from toolrt.workspace import Workspace

FILES = {"a.txt": "one", "b.txt": "two"}


def file_tool(name: str, **promises: Any) -> Any:
    """A maker of a tool that appends to, or reads, the file it is told."""

    def make(workspace: Workspace) -> Tool:
        claims = promises.get("claims")

        @tool(
            name=name,
            safe=promises.get("safe", False),
            claims=(lambda input, state: claims(workspace, input, state)) if claims else None,
            schema=None,
        )
        async def touch(ctx: Any, path: str, read: bool = False) -> str:
            entry = tuple(path.split("/"))
            content = (await workspace.disk.read(entry, 1000)).content
            if not read:
                await workspace.disk.revise(entry, 1000, lambda _: content + b"!")
            return content.decode()

        return touch

    return make


def promises_of(broken: Any) -> list[str]:
    """The names of the promises that were broken."""
    return [found.promise for found in broken]


def counter_tool(**promises: Any) -> Any:
    """A maker of a tool that counts in a dict, with a checkpoint between looking and writing."""

    def make() -> Tool:
        counts: dict[str, int] = {}

        @tool(schema=None, **promises)
        async def count(ctx: Any, name: str) -> int:
            seen = counts.get(name, 0)
            await trio.lowlevel.checkpoint()
            counts[name] = seen + 1
            return counts[name]

        return count

    return make
