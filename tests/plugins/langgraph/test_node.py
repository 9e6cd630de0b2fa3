"""A tool node: order and overlap, what LangGraph injects, errors, cancellation, mixed tools."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from typing import Annotated, Any

import pytest

pytest.importorskip("langgraph", reason="toolrt[langgraph]")

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

import toolrt
from tests.plugins._paused import HeldThread, PausedTools, several_turns
from tests.plugins.langgraph._graphs import answers, asks, graph_of
from toolrt import WRITE, Claim, Registry, Runtime
from toolrt.errors import DefinitionRefused, MisuseError
from toolrt.plugins.langgraph import tool_node

ON_ROW = {"row": WRITE}


@settings(max_examples=15, deadline=None)
@given(st.permutations(["1", "r", "2", "3", "4"]))
def test_independent_calls_overlap_and_edits_of_a_row_keep_the_call_order(order: list[str]) -> None:
    turns, rows = PausedTools(), {"a": "", "b": ""}

    @tool
    async def read(name: str) -> str:
        """Read."""
        await turns.reach(name)
        return f"read {name}"

    @tool
    async def append(row: str, text: str) -> str:
        """Read, wait, and write what was read with `text` behind it."""
        before = rows[row]
        await turns.reach(text)
        rows[row] = before + text
        return rows[row]

    node = tool_node([read, append], safe=["read"], claims={"append": ON_ROW})
    calls = [
        ("append", {"row": "a", "text": "1"}),
        ("read", {"name": "r"}),
        ("append", {"row": "a", "text": "2"}),
        ("append", {"row": "b", "text": "3"}),
        ("append", {"row": "a", "text": "4"}),
    ]

    async def run() -> Any:
        task = asyncio.ensure_future(graph_of(node).ainvoke(asks(*calls)))
        await turns.until("1", "r", "3")
        await turns.let_go(order, task)
        return await task

    state = asyncio.run(run())
    assert rows == {"a": "124", "b": "3"}
    expected = ["1", "read r", "12", "3", "124"]
    assert answers(state) == [(f"call_{index}", text) for index, text in enumerate(expected)]


def test_a_tool_without_promises_runs_alone_in_its_turn() -> None:
    log: list[str] = []

    @tool
    async def step(name: str, turns: int) -> str:
        """Note the begin and the end."""
        log.append(f"{name} began")
        for _ in range(turns):
            await asyncio.sleep(0)
        log.append(f"{name} ended")
        return name

    calls = [("step", {"name": name, "turns": 30 // (1 + index)}) for index, name in enumerate("xyz")]
    asyncio.run(graph_of(tool_node([step])).ainvoke(asks(*calls)))
    assert log == [f"{name} {what}" for name in "xyz" for what in ("began", "ended")]


@pytest.mark.parametrize("awaited", [True, False])
def test_what_langgraph_injects_and_commands(awaited: bool) -> None:
    @tool
    def told(
        state: Annotated[dict[str, Any], InjectedState],
        store: Annotated[BaseStore, InjectedStore()],
        call_id: Annotated[str, InjectedToolCallId],
        runtime: ToolRuntime,
    ) -> str:
        """Tell what was injected."""
        store.put(("seen",), call_id, {"user": state["user"]})
        return f"{state['user']} {call_id} {runtime.tool_call_id} {len(runtime.tools)}"

    @tool
    def rename(user: str, call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Change the state."""
        return Command(update={"user": user, "messages": [ToolMessage("renamed", tool_call_id=call_id)]})

    store = InMemoryStore()
    graph = graph_of(tool_node([told, rename]), store=store)
    start = {**asks(("told", {}), ("rename", {"user": "Bo"}), ("told", {})), "user": "Al"}
    state = asyncio.run(graph.ainvoke(start)) if awaited else graph.invoke(start)
    assert answers(state) == [
        ("call_0", "Al call_0 call_0 2"),
        ("call_1", "renamed"),
        ("call_2", "Al call_2 call_2 2"),
    ]
    assert state["user"] == "Bo"
    assert {item.key for item in store.search(("seen",))} == {"call_0", "call_2"}


@pytest.mark.parametrize("awaited", [True, False])
def test_the_error_of_the_first_call_goes_out_when_all_have_ended(awaited: bool) -> None:
    done: list[str] = []
    over = {text: threading.Event() for text in ("first", "second")}

    @tool
    def fail(after: str, text: str) -> str:
        """Raise."""
        assert not after or over[after].wait(30)
        done.append(text)
        over[text].set()
        raise ValueError(text)

    @tool
    def work() -> str:
        """Work."""
        assert over["first"].wait(30)
        done.append("work")
        return "done"

    graph = graph_of(tool_node([fail, work], safe=["fail", "work"]))
    start = asks(
        ("fail", {"after": "second", "text": "first"}), ("fail", {"after": "", "text": "second"}), ("work", {})
    )
    with pytest.raises(ValueError, match="first"):
        asyncio.run(graph.ainvoke(start)) if awaited else graph.invoke(start)
    assert done == ["second", "first", "work"]


@pytest.mark.parametrize(
    ("handled", "text"),
    [
        (True, "Error: ValueError('no')\n Please fix your mistakes."),
        ("try again", "try again"),
        ((ValueError,), "Error: ValueError('no')\n Please fix your mistakes."),
        (lambda error: f"told: {error}", "told: no"),
    ],
)
def test_handle_tool_errors(handled: Any, text: str) -> None:
    @tool
    async def fail() -> str:
        """Raise."""
        raise ValueError("no")

    graph = graph_of(tool_node([fail], handle_tool_errors=handled))
    state = asyncio.run(graph.ainvoke(asks(("fail", {}), ("gone", {}))))
    assert answers(state)[0] == ("call_0", text)
    assert "gone is not a valid tool" in answers(state)[1][1]
    assert [message.status for message in state["messages"][1:]] == ["error", "error"]


def test_wrappers_of_a_call_run_in_its_turn() -> None:
    @tool
    async def add(number: int) -> str:
        """Add."""
        return str(number + 1)

    async def twice(request: Any, execute: Any) -> Any:
        first = await execute(request)
        changed = {**request.tool_call, "args": {"number": int(first.content)}}
        return await execute(request.override(tool_call=changed))

    graph = graph_of(tool_node([add], awrap_tool_call=twice))
    assert answers(asyncio.run(graph.ainvoke(asks(("add", {"number": 1}))))) == [("call_0", "3")]


def test_a_cancel_leaves_nothing_running() -> None:
    turns, held = PausedTools(), HeldThread()

    @tool
    async def wait(name: str) -> str:
        """Wait."""
        await turns.reach(name)
        return name

    node = tool_node([wait, tool(held.block)], safe=["wait", "block"])

    async def run() -> None:
        calls = [("wait", {"name": "x"}), ("wait", {"name": "y"}), ("block", {})]
        task = asyncio.ensure_future(graph_of(node).ainvoke(asks(*calls)))
        await turns.until("x", "y")
        await held.outlasts(task)
        assert not turns.running

    asyncio.run(run())


def test_two_calls_may_carry_one_id() -> None:
    @tool
    def double(number: int) -> str:
        """Double."""
        return str(2 * number)

    start = asks(("double", {"number": 1}), ("double", {"number": 2}), ids=["same", "same"])
    assert answers(graph_of(tool_node([double])).invoke(start)) == [("same", "2"), ("same", "4")]


def _asked(request: toolrt.ApprovalRequest) -> Any:
    return toolrt.Deny("no") if request.input["text"] == "denied" else toolrt.Allow()


def test_tools_of_both_kinds_share_one_batch() -> None:
    log: list[str] = []

    @toolrt.tool(claims=[Claim("log", WRITE)])
    async def mark(ctx: toolrt.ToolContext, text: str) -> str:
        """A tool of the runtime."""
        log.append(text)
        return f"marked {text}"

    @tool
    async def note(text: str) -> str:
        """A tool of LangChain."""
        await several_turns()
        log.append(text)
        return f"noted {text}"

    runtime = Runtime(Registry([mark]), approve=_asked)
    node = tool_node([note], runtime=runtime, claims={"note": [Claim("log", WRITE)]})
    assert list(node.tools_by_name) == ["note", "mark"]
    calls = [("note", "1"), ("mark", "2"), ("note", "denied"), ("mark", "denied"), ("note", "3")]
    state = asyncio.run(graph_of(node).ainvoke(asks(*((name, {"text": text}) for name, text in calls))))
    assert log == ["1", "2", "3"]
    told = answers(state)
    assert [told[0][1], told[1][1], told[4][1]] == ["noted 1", "marked 2", "noted 3"]
    assert told[2][1].startswith("[denied]")
    assert told[3][1].startswith("[denied]")
    wrong = asyncio.run(graph_of(node).ainvoke(asks(("mark", {"txt": "1"}))))
    assert answers(wrong)[0][1].startswith("[invalid] invalid call of tool 'mark': input.txt")


def test_an_approval_check_may_rewrite_a_call() -> None:
    @tool
    def double(number: int) -> str:
        """Double."""
        return str(2 * number)

    runtime = Runtime(Registry(), approve=lambda request: toolrt.Rewrite({"number": request.input["number"] + 1}))
    graph = graph_of(tool_node([double], runtime=runtime))
    assert answers(graph.invoke(asks(("double", {"number": 4})))) == [("call_0", "10")]


@pytest.mark.parametrize("awaited", [True, False])
def test_a_graph_inside_a_tool_runs_inside_the_call(awaited: bool) -> None:
    shared = Runtime(Registry())

    @tool
    def leaf(text: str) -> str:
        """The inner tool."""
        return text.upper()

    inner = graph_of(tool_node([leaf], runtime=shared))

    @tool
    async def aouter(text: str) -> str:
        """Run a graph."""
        return answers(await inner.ainvoke(asks(("leaf", {"text": text}))))[0][1]

    @tool
    def outer(text: str) -> str:
        """Run a graph."""
        return answers(inner.invoke(asks(("leaf", {"text": text}))))[0][1]

    if awaited:
        graph = graph_of(tool_node([aouter], runtime=shared))
        state = asyncio.run(graph.ainvoke(asks(("aouter", {"text": "a"}), ("aouter", {"text": "b"}))))
    else:
        graph = graph_of(tool_node([outer], runtime=shared))
        state = graph.invoke(asks(("outer", {"text": "a"}), ("outer", {"text": "b"})))
    assert [text for _, text in answers(state)] == ["A", "B"]


def test_invoke_where_a_loop_runs() -> None:
    @tool
    def double(number: int) -> str:
        """Double."""
        return str(2 * number)

    async def notebook() -> Any:
        return graph_of(tool_node([double])).invoke(asks(("double", {"number": 4})))

    assert answers(asyncio.run(notebook())) == [("call_0", "8")]


def test_one_node_serves_several_threads_and_loops_at_once() -> None:
    @tool
    def double(number: int) -> str:
        """Double."""
        os.sched_yield()
        return str(2 * number)

    graph = graph_of(tool_node([double]))
    start = asks(("double", {"number": 1}), ("double", {"number": 2}))
    told: list[Any] = []

    def run(awaited: bool) -> None:
        told.append(answers(asyncio.run(graph.ainvoke(start)) if awaited else graph.invoke(start)))

    threads = [threading.Thread(target=run, args=[awaited]) for awaited in (True, False) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [[("call_0", "2"), ("call_1", "4")]] * 6


def test_a_name_that_is_no_tool_holds_up_nothing() -> None:
    turns = PausedTools()

    @tool
    async def read(name: str) -> str:
        """Read."""
        await turns.reach(name)
        return name

    async def run() -> Any:
        graph = graph_of(tool_node([read], safe=["read"]))
        calls = [("read", {"name": "x"}), ("gone", {}), ("", {}), ("read", {"name": "y"})]
        task = asyncio.ensure_future(graph.ainvoke(asks(*calls)))
        await turns.until("x", "y")
        await turns.let_go(["y", "x"], task)
        return await task

    told = [text for _, text in answers(asyncio.run(run()))]
    assert [told[0], told[3]] == ["x", "y"]
    assert all("is not a valid tool" in text for text in told[1:3])


def test_promises_that_cannot_work_are_refused() -> None:
    @toolrt.tool(safe=True)
    def own(ctx: toolrt.ToolContext) -> None:
        """A tool of the runtime."""

    for wrong, text in [
        ({"safe": "x"}, "a collection of tools' names"),
        ({"safe": ["own"], "runtime": Runtime(Registry([own]))}, "a tool of the runtime"),
        ({"safe": ["x"], "claims": {"x": ON_ROW}}, "which claims= names too"),
        ({"claims": {"x": 3}}, "claims"),
        ({"runtime": 3}, "a toolrt.Runtime or None"),
    ]:
        with pytest.raises(DefinitionRefused, match=re.escape(text)):
            tool_node([], **wrong)
    with pytest.raises(DefinitionRefused, match="names that no tool of the runtime has"):
        tool_node([_named_own()], runtime=Runtime(Registry([own])))


def test_a_version_of_langgraph_that_runs_calls_itself_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from langgraph.prebuilt import ToolNode

    node = tool_node([_named_own()])
    monkeypatch.setattr(type(node), "_run_one", ToolNode._run_one)
    with pytest.raises(MisuseError, match="this version of LangGraph"):
        graph_of(node).invoke(asks(("own", {})))
    assert graph_of(node).invoke(asks())["messages"][-1].content == ""


def _named_own() -> Any:
    @tool
    def own() -> str:
        """A tool of LangChain's."""
        return ""

    return own
