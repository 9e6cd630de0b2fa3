"""Servers that are spoken to by streamable HTTP: the SDK's own, behind uvicorn."""

from __future__ import annotations

import importlib.util
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.plugins.mcp._mcp import calls_of, run
from toolrt import Outcome, Progress, Registry, Runtime
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.plugins import mcp

pytest.importorskip("mcp", reason="the mcp extra is not installed")

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    # The SDK's HTTP client leaves async generators to be collected, which Trio warns of.
    pytest.mark.filterwarnings("ignore:.*async_generator.*:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:.*garbage collected before:ResourceWarning"),
]


def _proper() -> Any:
    path = Path(__file__).parent / "servers" / "proper.py"
    spec = importlib.util.spec_from_file_location("proper_over_http", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.server()


@pytest.fixture
def address() -> Iterator[str]:
    """Where a server listens while the test runs."""
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(_proper().streamable_http_app(), log_level="error", lifespan="on", ws="none")
    started = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started.set()

    server = Server(config)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    assert started.wait(30)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    server.should_exit = True
    thread.join(30)
    listening.close()
    assert not thread.is_alive()


def test_tools_of_a_server_over_http_are_called_in_order_and_side_by_side(address: str) -> None:
    """Answers, progress, what failed, and a cancel that the server hears; the session goes on."""

    async def main() -> None:
        server = mcp.McpServer("x", url=address, headers={"Authorization": "Bearer secret"}, trusted=True)
        assert "secret" not in repr(server)
        async with mcp.connect([server]) as tools:
            runtime = Runtime(Registry(tools))
            async with runtime.open_batch() as batch:
                for call in calls_of(("x__add", {"a": 1, "b": 2}), ("x__put", {"key": "k", "value": "v"})):
                    batch.submit(call)
                for call in calls_of(("x__get", {"key": "k"}), ("x__fail", {})):
                    batch.submit(call)
                batch.seal()
                told = [update.message async for update in batch if isinstance(update, Progress)]
            results = batch.outcome.results
            assert [result.content for result in results[:3]] == ["3", "kept", "v"]
            assert results[3].error == "there is no such thing"
            assert [one["message"] for one in told] == ["step 0", "step 1", "step 2"]
            with trio.move_on_after(30):
                async with runtime.open_batch() as batch:
                    batch.submit(calls_of(("x__nap", {"seconds": 60}))[0])
                    async for _ in batch:
                        batch.cancel("enough")
            assert [result.outcome for result in batch.outcome.results] == [Outcome.INTERRUPTED]
            with trio.fail_after(30):
                while (await run(tools, ("x__get", {"key": "cancelled"}))).results[0].content != "yes":  # noqa: ASYNC110
                    await trio.sleep(0.05)
            assert tools.servers["x"].starts == 1

    trio.run(main)


def test_an_address_where_nothing_listens_is_refused() -> None:
    """In words, before any call."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"

    async def main() -> None:
        async with mcp.connect([mcp.McpServer("x", url=address, start_timeout=20.0)]):
            pass

    with pytest.raises(InputRefused, match="MCP server 'x'"):
        trio.run(main)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"url": "ftp://x"}, "begins with http:// or https://"),
        ({"url": "http://x", "command": ["y"]}, "either a command or a server or a url"),
        ({"url": "http://x", "headers": {"a": 1}}, "texts by name"),
    ],
)
def test_what_is_no_address_is_refused(options: dict[str, Any], said: str) -> None:
    """When the server is described."""
    with pytest.raises(DefinitionRefused, match=said):
        mcp.McpServer("x", **options)
