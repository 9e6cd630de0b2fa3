"""The official SDK's client with `toolrt serve`, on asyncio and on Trio."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
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


@pytest.mark.seldom
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


@contextlib.contextmanager
def listening(workspace: Path) -> Iterator[tuple[str, str]]:
    """A server on that directory: its address, and the header that it wants."""
    program = [sys.executable, "-m", "toolrt", "serve", "--mcp", "--workspace", str(workspace), "--http", "0"]
    environment = {**os.environ, "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stderr is not None
        line = server.stderr.readline()
        found = re.fullmatch(r"toolrt: serves (\S+) to .* Authorization: (Bearer \S+)\n", line)
        try:
            assert found, line
            yield found[1], found[2]
        finally:
            server.terminate()
            assert server.stderr.read() == "toolrt: interrupted\n"


@contextlib.asynccontextmanager
async def session_over_http(address: str, authorization: str) -> AsyncIterator[Any]:
    """A session of the SDK's client."""
    from mcp import ClientSession

    from toolrt.plugins.mcp._versions import over_http

    async with over_http(address, {"Authorization": authorization}) as streams, ClientSession(*streams) as session:
        await session.initialize()
        yield session


@pytest.mark.seldom
@pytest.mark.filterwarnings("ignore:.*async_generator.*:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:.*garbage collected before:ResourceWarning")
def test_two_servers_on_one_directory_refuse_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by HTTP, one on the roots of its host; each edits its own line of one file, at the same time.

    And a command's output is told as it was written, and not as Python writes a dictionary.
    """
    pytest.importorskip("hypercorn", reason="the http extra is not installed")
    from mcp import ClientSession
    from mcp.client.stdio import stdio_client

    from toolrt.plugins.mcp._versions import field, types

    monkeypatch.setenv("TOOLRT_STATE_DIR", str(tmp_path / "state"))
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("<0>\n" + "between\n" * 20 + "(0)\n")
    told: list[tuple[float, float | None, str | None]] = []

    async def roots(context: Any) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri=work.as_uri())])

    async def edit(session: Any, form: str) -> None:
        for n in range(15):
            arguments = {"path": "a.txt", "old": form.format(n), "new": form.format(n + 1)}
            result = await session.call_tool("edit_file", arguments)
            assert not field(result, "is_error"), result.content

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async def main(address: str, authorization: str) -> None:
        server = server_of(work)
        server.args[-2:] = ["--roots"]
        with (tmp_path / "errors").open("w") as errors:
            async with (
                session_over_http(address, authorization) as one,
                stdio_client(server, errors) as streams,
                ClientSession(*streams, list_roots_callback=roots) as other,
            ):
                await other.initialize()
                async with anyio.create_task_group() as group:
                    group.start_soon(edit, one, "<{}>")
                    group.start_soon(edit, other, "({})")
                command = {"command": 'cat a.txt; sleep 0.3; echo "it\'s two"'}
                await other.call_tool("run_command", command, progress_callback=hear)

    with listening(work) as (address, authorization):
        anyio.run(main, address, authorization)
    text = "<15>\n" + "between\n" * 20 + "(15)\n"
    assert (work / "a.txt").read_text() == text
    assert "".join(message or "" for _, _, message in told) == f"{text}it's two\n"
    assert [(progress, total) for progress, total, _ in told] == [(n, None) for n in range(1, len(told) + 1)]
