"""MCP servers that cannot be used are refused with the reason."""

from __future__ import annotations

import sys

import pytest
import trio
import trio.testing

pytest.importorskip("mcp", reason="the mcp extra is not installed")

from tests.plugins.mcp._mcp import FIRST, OF_PROGRAMS, offers, outcome, rough
from toolrt.errors import InputRefused
from toolrt.plugins import mcp

pytestmark = OF_PROGRAMS

REFUSED = {
    "no program": (mcp.McpServer("r", ["no-such-program"]), "there is no program 'no-such-program'"),
    "no directory": (mcp.McpServer("r", [sys.executable], cwd="/no/such"), "no directory '/no/such'"),
    "ends at once": (rough({"exit": 7}), "it ended with exit status 7; the end of its error output: nothing to serve"),
    "never answers": (rough({"initialize": "mute"}, start_timeout=0.5), "it was not ready within 0.5 s"),
    "answers with an error": (
        rough({"initialize": {"error": {"code": -5, "message": "not today"}}}),
        "it answered initialize with an error: not today (code -5)",
    ),
    "answers nonsense": (rough({"initialize": {"result": {"hello": 1}}}), "its answer to initialize is not what"),
    "a protocol nobody knows": (
        rough(
            {
                "initialize": {
                    "result": {
                        "protocolVersion": "1999-01-01",
                        "capabilities": {},
                        "serverInfo": {"name": "r", "version": "1"},
                    }
                }
            }
        ),
        "its answer to initialize is not what",
    ),
    "garbage without end": (rough({"garbage": [["x", 60_000]] * 20}), "that are no messages to its standard output"),
    "a message without end": (
        rough({"initialize": ["x", 17_000_000]}),
        "it sent a message of more than 16,777,216 bytes",
    ),
    "pages without end": (rough({"pages": True, "tools": []}), "it lists its tools on more than 100 pages"),
    "tools without end": (rough({"many": 1001}), "it lists more than 1,000 tools"),
    "two of a name": (rough({"tools": [offers("a"), offers("a")]}), "it offers two tools named 'a'"),
    "no schema": (rough({"tools": [{"name": "a"}]}), "its answer to tools/list is not what"),
    "a schema that fetches": (
        rough({"tools": [offers("a", {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/"}}})]}),
        "tool 'a' of MCP server 'r': its input schema is not used: expected references to itself (#...)",
    ),
    "a name too long": (rough({"tools": [offers("a" * 64)]}), "expected a name of 1 to 64 letters, digits, _ and -"),
    "a server that is given up while it starts": (
        rough({"garbage": ["x"], "exit": 0}),
        "it ended with exit status 0; toolrt dropped 1 line of its standard output: no protocol messages",
    ),
}


@pytest.mark.process
@pytest.mark.parametrize(("server", "said"), REFUSED.values(), ids=REFUSED)
def test_server_that_cannot_be_used_is_refused_with_the_reason(server: mcp.McpServer, said: str) -> None:
    """Nothing is called, everything is ended, and the text says what is wrong and what to do."""
    with pytest.raises(InputRefused) as refused:
        outcome(server)
    assert said in str(refused.value)
    assert "MCP server 'r'" in str(refused.value)


@pytest.mark.process
def test_all_servers_are_ended_when_one_cannot_be_used() -> None:
    """The good one too; the fixture counts."""

    async def main() -> None:
        async with mcp.connect([rough(name="a"), rough({"exit": 1}, name="b"), rough({"exit": 2}, name="c")]):
            raise AssertionError

    with pytest.raises(InputRefused, match="MCP server 'b': it ended with exit status 1"):
        trio.run(main)


_ONLY_LATER = {"error": {"code": -32022, "message": "too old", "data": {"supported": ["2026-07-28"]}}}


@pytest.mark.process
@pytest.mark.skipif(bool(FIRST), reason="version 1 of the SDK knows no later revision")
def test_server_that_knows_only_later_revisions_is_asked_as_they_ask() -> None:
    """Today's handshake first, and the later one where the server says so."""
    later = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    discovered = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, **later}
    server = rough({"initialize": _ONLY_LATER, "discover": {"result": discovered}, "later": later})
    assert outcome(server, ("r__echo", {"text": "a"})).results[0].content == "a"
    with pytest.raises(InputRefused, match="its answer to server/discover is not what the protocol says"):
        outcome(rough({"initialize": _ONLY_LATER, "discover": {"result": {}}}))


@pytest.mark.process
def test_program_that_cannot_be_started_is_refused() -> None:
    """By the system itself; the fixture counts what was opened for it."""
    with pytest.raises(InputRefused, match=r"it cannot be started: .*Argument list too long"):
        outcome(mcp.McpServer("r", [sys.executable, "x" * 5_000_000]))
