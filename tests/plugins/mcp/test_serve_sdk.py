"""The official SDK's client with `toolrt serve`, on asyncio and on Trio."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest

pytest.importorskip("mcp", reason="the mcp extra is not installed")
pytest.importorskip("cyclopts", reason="the cli extra is not installed")

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name != "posix", reason="commands are run on POSIX systems"),
]


@pytest.mark.parametrize("backend", ["asyncio", pytest.param("trio", marks=pytest.mark.slow)])
def test_the_sdk_loses_no_edit(backend: str, tmp_path: Path) -> None:
    """Ten tasks edit one file at once, and every edit is in it."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    from toolrt.plugins.mcp._versions import field

    (tmp_path / "a.txt").write_text("<end>")
    program = ["-m", "toolrt", "serve", "--mcp", "--workspace", str(tmp_path)]
    # No language server is on this path: importing their protocol takes longer than all else.
    parameters = StdioServerParameters(
        command=sys.executable, args=program, env={**os.environ, "PATH": "/usr/bin:/bin"}
    )
    failed: list[str] = []

    async def main() -> None:
        with (tmp_path / "errors").open("w") as errors:
            async with stdio_client(parameters, errors) as streams, ClientSession(*streams) as session:
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
