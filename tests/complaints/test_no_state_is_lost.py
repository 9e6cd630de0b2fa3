"""Complaints about dependency and state: rows 20 to 30 of the research on peers."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import trio

from toolrt import READ, WRITE, Claim, State, ToolCall, ToolOutput


def test_no_read_overtakes_the_write_before_it(everywhere: Any, kit: Any) -> None:
    """20. microsoft/agent-framework #7386: calls of one message could not be ordered, a write and a read raced."""

    async def program() -> Any:
        shelf: list[str] = []

        async def write(ctx: Any) -> None:
            await trio.sleep(2)
            shelf.append("written")

        async def read(ctx: Any) -> str:
            return ",".join(shelf)

        runtime = kit.runtime(
            kit.tool("write", write, claims=[Claim("shelf", WRITE)]),
            kit.tool("read", read, claims=[Claim("shelf", READ)]),
        )
        done = await runtime.run(kit.calls("read", "write", "read"))
        return tuple(result.content for result in done.results)

    assert everywhere(program) == ("", None, "written")


def test_no_stale_state_for_who_depends_on_a_sibling(everywhere: Any, kit: Any) -> None:
    """21. deepset-ai/haystack PR #11690: arguments were prepared up front, so a reader never saw a sibling's write."""

    async def program() -> Any:
        async def read(ctx: Any) -> Any:
            return ctx.state.get("found")

        key = ("state", "found")
        runtime = kit.runtime(
            kit.changing("write", lambda state: state.set("found", 7), 1, claims=[Claim(key, WRITE)]),
            kit.tool("read", read, claims=[Claim(key, READ)]),
        )
        return (await runtime.run(kit.calls("write", "read"))).results[1].content

    assert everywhere(program) == 7


def test_no_list_value_is_overwritten_by_a_sibling(everywhere: Any, kit: Any) -> None:
    """22. google/adk-python #5190: list values in parallel state deltas overwrote each other."""

    async def program() -> Any:
        def adding(item: str) -> Any:
            return lambda state: state.set("items", (*state["items"], item))

        tools = [kit.changing(name, adding(name), seconds) for name, seconds in (("a", 3), ("b", 1), ("c", 2))]
        done = await kit.runtime(*tools).run(kit.calls("a", "b", "c"), State({"items": ()}))
        return done.state["items"]

    assert everywhere(program) == ("a", "b", "c")


def test_no_sibling_loses_its_change_of_the_state(everywhere: Any, kit: Any) -> None:
    """23. google/adk-python #1153 and #1938: of parallel tools only one's state survived."""

    async def program() -> Any:
        def setting(name: str) -> Any:
            return lambda state: state.set(name, True)

        tools = [kit.changing(name, setting(name), seconds) for name, seconds in (("a", 1), ("b", 1), ("c", 0))]
        done = await kit.runtime(*tools).run(kit.calls("a", "b", "c"))
        return tuple(sorted(done.state))

    assert everywhere(program) == ("a", "b", "c")


def test_no_completion_of_six_is_lost(everywhere: Any, kit: Any) -> None:
    """24. can1357/oh-my-pi #6148: six parallel completions of a todo list, some lost, some items came back."""

    async def program() -> Any:
        async def complete(ctx: Any, item: int) -> ToolOutput:
            await trio.sleep(item % 3)
            return ToolOutput(item, modifiers=[lambda state: state.set("open", state["open"] - {item})])

        runtime = kit.runtime(kit.tool("complete", complete, safe=True))
        calls = [ToolCall(f"{item}", "complete", {"item": item}) for item in range(6)]
        return sorted((await runtime.run(calls, State({"open": frozenset(range(7))}))).state["open"])

    assert everywhere(program) == [6]


def test_no_update_is_lost_through_a_shared_context(everywhere: Any, kit: Any) -> None:
    """25. google-antigravity/antigravity-sdk-python #109: get and set on a shared context lost updates."""

    async def program() -> Any:
        async def count(ctx: Any) -> ToolOutput:
            seen = ctx.state["count"]
            await trio.lowlevel.checkpoint()
            assert ctx.state["count"] == seen
            return ToolOutput(seen, modifiers=[lambda state: state.set("count", state["count"] + 1)])

        runtime = kit.runtime(kit.tool("count", count, safe=True))
        done = await runtime.run(kit.calls(*["count"] * 5), State({"count": 0}))
        return done.state["count"], {result.content for result in done.results}

    assert everywhere(program) == (5, {0})


def test_no_second_writer_is_rejected(everywhere: Any, kit: Any) -> None:
    """26. langchain-ai/langchain PR #34403: parallel writers of one key were rejected as an invalid update."""

    async def program() -> Any:
        tools = [
            kit.changing("slow", lambda state: state.set("todos", "first"), 2),
            kit.changing("quick", lambda state: state.set("todos", "second")),
        ]
        done = await kit.runtime(*tools).run(kit.calls("slow", "quick"))
        return done.state["todos"], tuple(kit.outcomes(done.results))

    assert everywhere(program) == ("second", ("ok", "ok"))


def test_no_error_when_one_stateful_tool_is_called_twice(everywhere: Any, kit: Any) -> None:
    """27. langchain-ai/langchain-sandbox #42: a stateful tool called twice in one turn ended in an error."""

    async def program() -> Any:
        tool = kit.changing("run", lambda state: state.set("session", state.get("session", 0) + 1))
        done = await kit.runtime(tool).run(kit.calls("run", "run"))
        return done.state["session"], tuple(kit.outcomes(done.results))

    assert everywhere(program) == (2, ("ok", "ok"))


def test_no_command_of_several_is_dropped(everywhere: Any, kit: Any) -> None:
    """28. langchain-ai/langgraph #7129: of several commands of one batch only one was kept."""

    async def program() -> Any:
        async def command(ctx: Any) -> ToolOutput:
            def note(part: str) -> Any:
                return lambda state: state.set("log", (*state["log"], f"{ctx.call_index}{part}"))

            await trio.sleep(3 - ctx.call_index)
            return ToolOutput(modifiers=[note("a"), note("b")])

        runtime = kit.runtime(kit.tool("command", command, safe=True))
        return (await runtime.run(kit.calls(*["command"] * 3), State({"log": ()}))).state["log"]

    assert everywhere(program) == ("0a", "0b", "1a", "1b", "2a", "2b")


def test_no_working_directory_leaks_between_siblings(everywhere: Any, kit: Any) -> None:
    """29. anthropics/claude-code #82311, #75865, #43497: the working directory of one call leaked into its siblings."""

    async def program() -> Any:
        async def where(ctx: Any) -> str:
            await trio.lowlevel.checkpoint()
            return str(ctx.state.working_dir)

        change = kit.changing("cd", lambda state: state.replace(working_dir="b"), safe=False)
        sly = kit.changing("sly", lambda state: state.replace(working_dir="c"))
        runtime = kit.runtime(kit.tool("pwd", where, safe=True), change, sly)
        done = await runtime.run(kit.calls("sly", "pwd", "cd", "pwd"), State(working_dir="a"))
        return [result.content for result in done.results][1::2], done.state.working_dir

    assert everywhere(program) == (["a", "b"], PurePosixPath("b"))


def test_no_count_of_calls_is_too_low(everywhere: Any, kit: Any) -> None:
    """30. pydantic/pydantic-ai PR #3133: a race undercounted how many tools were called."""

    async def program() -> Any:
        async def use(ctx: Any) -> ToolOutput:
            await trio.sleep(ctx.call_index % 2)
            return ToolOutput(modifiers=[lambda state: state.set("uses", state["uses"] + 1)])

        runtime = kit.runtime(kit.tool("use", use, safe=True), limit=3)
        return (await runtime.run(kit.calls(*["use"] * 12), State({"uses": 0}))).state["uses"]

    assert everywhere(program, 15) == 12
