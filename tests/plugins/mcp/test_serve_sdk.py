"""The official SDK's client with `toolrt serve`, on asyncio and on Trio."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("mcp", reason="the mcp extra is not installed")
pytest.importorskip("cyclopts", reason="the cli extra is not installed")

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name != "posix", reason="commands are run on POSIX systems"),
]


def server_of(workspace: Path) -> Any:
    """What the SDK starts for that directory."""
    from mcp import StdioServerParameters

    program = ["-m", "toolrt", "serve", "--mcp", "--workspace", str(workspace)]
    # No language server is on this path: importing their protocol takes longer than all else.
    return StdioServerParameters(command=sys.executable, args=program, env={**os.environ, "PATH": "/usr/bin:/bin"})


@pytest.mark.parametrize("backend", ["asyncio", pytest.param("trio", marks=pytest.mark.slow)])
def test_the_sdk_loses_no_edit(backend: str, tmp_path: Path) -> None:
    """Ten tasks edit one file at once, and every edit is in it."""
    from mcp import ClientSession
    from mcp.client.stdio import stdio_client

    from toolrt.plugins.mcp._versions import field

    (tmp_path / "a.txt").write_text("<end>")
    failed: list[str] = []

    async def main() -> None:
        with (tmp_path / "errors").open("w") as errors:
            async with stdio_client(server_of(tmp_path), errors) as streams, ClientSession(*streams) as session:
                await session.initialize()

                async def call(name: str, **arguments: str) -> None:
                    result = await session.call_tool(name, arguments)
                    if field(result, "is_error"):
                        failed.append(f"{name} {arguments}: {result.content}")

                async with anyio.create_task_group() as group:
                    for n in range(10):
                        group.start_soon(lambda n=n: call("edit_file", path="a.txt", old="<end>", new=f"<{n}><end>"))

    anyio.run(main, backend=backend)
    assert not failed
    text = (tmp_path / "a.txt").read_text()
    assert sorted(text.removesuffix("<end>")) == sorted("".join(f"<{n}>" for n in range(10)))


def test_the_sdk_is_told_in_text_what_a_command_writes(tmp_path: Path) -> None:
    """As it was written, and not as Python writes a dictionary."""
    from mcp import ClientSession
    from mcp.client.stdio import stdio_client

    told: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async def main() -> None:
        with (tmp_path / "errors").open("w") as errors:
            async with stdio_client(server_of(tmp_path), errors) as streams, ClientSession(*streams) as session:
                await session.initialize()
                command = {"command": 'echo one; sleep 0.3; echo "it\'s two"'}
                await session.call_tool("run_command", command, progress_callback=hear)

    anyio.run(main)
    assert "".join(message or "" for _, _, message in told) == "one\nit's two\n"
    assert [(progress, total) for progress, total, _ in told] == [(n, None) for n in range(1, len(told) + 1)]
