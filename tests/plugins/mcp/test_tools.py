"""Which tools an MCP server has: names, hints, and tools that change."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

pytest.importorskip("mcp", reason="the mcp extra is not installed")

from tests.plugins.mcp._mcp import OF_PROGRAMS, answers, calls_of, connected, offers, rough, run, says
from toolrt import Outcome, Registry, partition
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.plugins import mcp

pytestmark = OF_PROGRAMS


@pytest.mark.process
def test_tools_that_changed_and_are_not_told_are_not_called() -> None:
    """Whether they are still what they were is not known."""
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}

    async def use(tools: mcp.McpTools) -> tuple[Any, Any]:
        await run(tools, says(changed, answers(content=[])))
        done = await run(tools, ("r__echo", {}))
        return done.results[0].error, tools.changed

    error, heard = connected(rough({"once": True}), use)
    expected = "its tools have changed, and it does not say how: it answered tools/list with an error: no tools"
    assert error == f"MCP server 'r': {expected} (code -32601)"
    assert heard == ("r",)


@pytest.mark.process
def test_changed_tools_are_heard_and_asked_for_anew() -> None:
    """The tools stay what they were until somebody asks; one that is another now is not called as the old one."""
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    first = [offers("say"), offers("echo", readOnlyHint=True), offers("old")]
    second = [offers("say"), offers("echo"), offers("new")]

    async def use(tools: mcp.McpTools) -> Any:
        before = [tool.name for tool in tools]
        await run(tools, says(changed, answers(content=[])))
        heard = tools.changed
        done = await run(tools, ("r__echo", {}), ("r__old", {}))
        new = await tools.relist()
        names = [tool.name for tool in new]
        return before, heard, done.results, names, await run(new, ("r__echo", {"text": "a"})), tools.changed

    before, heard, results, names, done, after = connected(rough({"lists": [first, second]}, trusted=True), use)
    assert before == ["r__say", "r__echo", "r__old"]
    assert heard == ("r",)
    assert [result.error for result in results] == [
        "MCP server 'r': it offers another tool by the name 'echo' than when it was connected",
        "MCP server 'r': it does not offer 'old' any more",
    ]
    assert names == ["r__say", "r__echo", "r__new"]
    assert done.results[0].content == "a"
    assert after == ()


@pytest.mark.process
def test_restarted_server_that_is_another_is_not_believed(tmp_path: Path) -> None:
    """A tool that was read-only and is not after a restart is not called."""
    ask = rough({"lists": [[offers("crash"), offers("echo", readOnlyHint=True)], [offers("echo")]]}, trusted=True)

    async def use(tools: mcp.McpTools) -> Any:
        return (await run(tools, ("r__crash", {}), ("r__echo", {"text": "a"}))).results

    # Each process counts for itself: the new one lists the first again, and is the same.
    assert [result.outcome for result in connected(ask, use)] == [Outcome.ERROR, Outcome.OK]


@pytest.mark.process
def test_hints_count_of_trusted_servers_only() -> None:
    """A read-only tool shares a lane where its server is trusted, and runs alone where it is not."""
    tools = [
        offers("reads", readOnlyHint=True),
        offers("sets", idempotentHint=True, destructiveHint=False),
        offers("no"),
    ]

    async def lanes(found: mcp.McpTools) -> Any:
        calls = calls_of(*[("r__reads", {})] * 2, ("r__sets", {}), ("r__no", {}))
        plan = [[call.name for call in lane.calls] for lane in partition(calls, Registry(found))]
        return plan, [found.hints(tool.name) for tool in found]

    plan, hints = connected(rough({"tools": tools}, trusted=True), lanes)
    assert plan == [["r__reads", "r__reads"], ["r__sets"], ["r__no"]]
    assert hints == [mcp.Hints(read_only=True), mcp.Hints(idempotent=True, destructive=False), mcp.Hints()]
    plan, hints = connected(rough({"tools": tools}), lanes)
    assert plan == [["r__reads"], ["r__reads"], ["r__sets"], ["r__no"]]
    assert hints == [mcp.Hints()] * 3


@pytest.mark.seldom
@pytest.mark.process
def test_names_are_prefixed_and_clashes_refused() -> None:
    """Two servers with one tool are told apart; what would share a name is refused, and can be renamed."""
    tools = {"tools": [offers("a.b"), offers("c")]}

    async def names(*servers: mcp.McpServer) -> list[str]:
        async with mcp.connect(servers) as found:
            return [tool.name for tool in found]

    assert trio.run(names, rough(tools, "p"), rough(tools, "q")) == ["p__a_b", "p__c", "q__a_b", "q__c"]
    assert trio.run(names, rough(tools, "p", prefix=""), rough(tools, "q", only=["c"])) == ["a_b", "c", "q__c"]
    renamed = rough(tools, "p", prefix="", rename={"c": "d"})
    assert trio.run(names, renamed, rough(tools, "q", prefix="", only=["c"])) == ["a_b", "d", "c"]
    with pytest.raises(InputRefused, match=re.escape("its name 'a_b' is that of tool 'a.b' of MCP server 'p'")):
        trio.run(names, rough(tools, "p", prefix=""), rough(tools, "q", prefix=""))
    with pytest.raises(InputRefused, match=re.escape("its name 'p__a_b' is that of tool 'a.b'")):
        trio.run(names, rough({"tools": [offers("a.b"), offers("a b")]}, "p"))
    with pytest.raises(InputRefused, match=re.escape("only has 'd', and it offers 'a.b', 'c'")):
        trio.run(names, rough(tools, "p", only=["d"]))
    with pytest.raises(DefinitionRefused, match="two servers named 'p'"):
        mcp.connect([rough(tools, "p"), rough(tools, "p")])
