"""Interrupts in a tool node: what finished is not run twice, and each answer goes to the call that asked."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from typing import Annotated, Any

import pytest

pytest.importorskip("langgraph", reason="toolrt[langgraph]")

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, RetryPolicy, interrupt

from tests.plugins.langgraph._graphs import State, answers, asks, graph_of
from toolrt import WRITE, Claim
from toolrt.plugins.langgraph import tool_node

CONFIG: Any = {"configurable": {"thread_id": "1"}}


class Effects:
    """Tools that count what they do."""

    def __init__(self, *safe: str, claims: Any = None) -> None:
        self.counts: Counter[str] = Counter()
        counts = self.counts

        @tool
        def pay(to: str) -> str:
            """Pay."""
            counts[f"pay {to}"] += 1
            return f"paid {to}"

        @tool
        def rename(user: str, call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
            """Change the state."""
            counts[f"rename {user}"] += 1
            return Command(update={"user": user, "messages": [ToolMessage("renamed", tool_call_id=call_id)]})

        @tool
        def ask(question: str, again: bool = False) -> str:
            """Ask a person, once or twice."""
            counts[f"asked {question}"] += 1
            answer = interrupt(question)
            if again:
                answer += interrupt(f"{question} again")
            counts[f"answered {question}"] += 1
            return str(answer)

        self.node = tool_node([pay, rename, ask], safe=safe, claims=claims)


def runs(graph: Any, given: Any, awaited: bool) -> Any:
    """Run a graph once, in a loop of its own."""
    return asyncio.run(graph.ainvoke(given, CONFIG)) if awaited else graph.invoke(given, CONFIG)


@pytest.mark.parametrize("awaited", [True, False])
def test_siblings_that_finished_are_not_run_twice(awaited: bool) -> None:
    effects = Effects("pay", "rename", "ask")
    graph = graph_of(effects.node, checkpointer=InMemorySaver())
    calls = [("pay", {"to": "x"}), ("ask", {"question": "ok?"}), ("rename", {"user": "Bo"}), ("pay", {"to": "y"})]
    stopped = runs(graph, asks(*calls), awaited)
    assert [one.value for one in stopped["__interrupt__"]] == ["ok?"]
    assert effects.counts == {"pay x": 1, "asked ok?": 1, "rename Bo": 1, "pay y": 1}
    state = runs(graph, Command(resume="yes"), awaited)
    assert [text for _, text in answers(state)] == ["paid x", "yes", "renamed", "paid y"]
    assert state["user"] == "Bo"
    assert effects.counts == {"pay x": 1, "asked ok?": 2, "answered ok?": 1, "rename Bo": 1, "pay y": 1}


def test_what_finished_is_kept_in_a_database(tmp_path: Any) -> None:
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite", reason="langgraph-checkpoint-sqlite")
    calls = [("pay", {"to": "x"}), ("ask", {"question": "ok?"})]
    path = str(tmp_path / "threads.db")
    counts: Counter[str] = Counter()
    for given in (asks(*calls), Command(resume="yes")):  # each time as a new process would
        effects = Effects("pay", "ask")
        connection = sqlite3.connect(path, check_same_thread=False)
        state = runs(graph_of(effects.node, checkpointer=sqlite.SqliteSaver(connection)), given, False)
        connection.close()
        counts += effects.counts
    assert [text for _, text in answers(state)] == ["paid x", "yes"]
    assert counts["pay x"] == 1


@pytest.mark.parametrize("awaited", [True, False])
def test_two_siblings_ask_and_each_has_its_answers(awaited: bool) -> None:
    effects = Effects("pay", "ask")
    graph = graph_of(effects.node, checkpointer=InMemorySaver())
    calls = [("ask", {"question": "A", "again": True}), ("pay", {"to": "x"}), ("ask", {"question": "B"})]
    stopped = runs(graph, asks(*calls), awaited)
    ids = {one.value: one.id for one in stopped["__interrupt__"]}
    assert list(ids) == ["A", "B"]
    with pytest.raises(RuntimeError, match="multiple pending interrupts"):
        runs(graph, Command(resume="whose?"), awaited)
    stopped = runs(graph, Command(resume={ids["B"]: "b"}), awaited)
    assert [one.value for one in stopped["__interrupt__"]] == ["A"]
    stopped = runs(graph, Command(resume={ids["A"]: "a"}), awaited)
    assert [one.value for one in stopped["__interrupt__"]] == ["A again"]
    stopped = runs(graph, None, awaited)
    assert [one.value for one in stopped["__interrupt__"]] == ["A again"]
    state = runs(graph, Command(resume="2"), awaited)
    assert [text for _, text in answers(state)] == ["a2", "paid x", "b"]
    assert effects.counts["pay x"] == effects.counts["answered A"] == effects.counts["answered B"] == 1


def test_a_later_call_that_may_touch_the_same_waits_for_the_answer() -> None:
    row = [Claim(("row", "r"), WRITE)]
    effects = Effects("pay", claims={"ask": row, "rename": row})
    graph = graph_of(effects.node, checkpointer=InMemorySaver())
    calls = [("ask", {"question": "ok?"}), ("rename", {"user": "Bo"}), ("pay", {"to": "x"})]
    runs(graph, asks(*calls), True)
    assert effects.counts == {"asked ok?": 1, "pay x": 1}
    state = runs(graph, Command(resume="yes"), True)
    assert [text for _, text in answers(state)] == ["yes", "renamed", "paid x"]
    assert effects.counts == {"asked ok?": 2, "answered ok?": 1, "rename Bo": 1, "pay x": 1}


def test_a_new_message_of_the_same_thread_runs_all_its_calls() -> None:
    effects = Effects("pay", "ask")
    graph = graph_of(effects.node, checkpointer=InMemorySaver())
    for answer in ("1", "2"):
        runs(graph, asks(("pay", {"to": "x"}), ("ask", {"question": "ok?"})), True)
        state = runs(graph, Command(resume=answer), True)
        assert state["messages"][-1].content == answer
    assert effects.counts["pay x"] == 2


@pytest.mark.parametrize("retried", [True, False])
def test_after_a_failure_only_what_failed_runs_again(retried: bool) -> None:
    counts: Counter[str] = Counter()

    @tool
    async def pay() -> str:
        """Pay."""
        counts["pay"] += 1
        return "paid"

    @tool
    async def flaky() -> str:
        """Fail once."""
        counts["flaky"] += 1
        if counts["flaky"] == 1:
            raise ConnectionError("once")
        return "done"

    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(State)
    policy = RetryPolicy(initial_interval=0.001, jitter=False) if retried else None
    graph.add_node("tools", tool_node([pay, flaky]), retry_policy=policy)
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    compiled = graph.compile(checkpointer=InMemorySaver())
    start = asks(("flaky", {}), ("pay", {}))
    if retried:
        state = runs(compiled, start, True)
    else:
        with pytest.raises(ConnectionError):
            runs(compiled, start, True)
        state = runs(compiled, None, True)
    assert [text for _, text in answers(state)] == ["done", "paid"]
    assert counts == {"flaky": 2, "pay": 1}


def test_an_answer_that_does_not_fit_can_be_given_anew() -> None:
    from pydantic import BaseModel, ValidationError

    class Answer(BaseModel):
        number: int

    counts: Counter[str] = Counter()

    @tool
    async def pay() -> str:
        """Pay."""
        counts["pay"] += 1
        return "paid"

    @tool
    async def ask() -> str:
        """Ask for a number."""
        return str(interrupt("how many?", response_schema=Answer).number)

    graph = graph_of(tool_node([pay, ask], handle_tool_errors=True), checkpointer=InMemorySaver())
    stopped = runs(graph, asks(("pay", {}), ("ask", {})), True)
    (one,) = stopped["__interrupt__"]
    with pytest.raises(ValidationError):
        runs(graph, Command(resume={one.id: {"number": "many"}}), True)
    state = runs(graph, Command(resume={one.id: {"number": 3}}), True)
    assert [text for _, text in answers(state)] == ["paid", "3"]
    assert counts == {"pay": 1}


def test_a_graph_inside_a_tool_asks_too() -> None:
    effects = Effects("pay", "ask")
    inner = graph_of(effects.node)

    @tool
    async def agent(question: str) -> str:
        """Run a graph that asks."""
        state = await inner.ainvoke(asks(("pay", {"to": question}), ("ask", {"question": question})))
        return answers(state)[1][1]

    @tool
    async def quick() -> str:
        """Run a graph that does not ask."""
        return answers(await inner.ainvoke(asks(("pay", {"to": "z"}))))[0][1]

    graph = graph_of(tool_node([agent, quick], safe=["agent", "quick"]), checkpointer=InMemorySaver())
    stopped = runs(graph, asks(("quick", {}), ("agent", {"question": "A"}), ("agent", {"question": "B"})), True)
    ids = {one.value: one.id for one in stopped["__interrupt__"]}
    assert list(ids) == ["A", "B"]
    state = runs(graph, Command(resume={ids["A"]: "a", ids["B"]: "b"}), True)
    assert [text for _, text in answers(state)] == ["paid z", "a", "b"]
    assert {name: effects.counts[name] for name in ("pay z", "pay A", "pay B")} == {"pay z": 1, "pay A": 1, "pay B": 1}


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_node_inside_a_subgraph_keeps_what_finished_and_a_replay_runs_all(durability: Any) -> None:
    effects = Effects("pay", "ask")
    graph = graph_of(graph_of(effects.node), checkpointer=InMemorySaver())

    async def run(given: Any, config: Any = CONFIG) -> Any:
        return await graph.ainvoke(given, config, durability=durability)

    async def story() -> None:
        calls = [("pay", {"to": "x"}), ("ask", {"question": "A"}), ("ask", {"question": "B"})]
        stopped = await run(asks(*calls))
        ids = {one.value: one.id for one in stopped["__interrupt__"]}
        await run(Command(resume={ids["B"]: "b"}))
        state = await run(Command(resume="a"))
        assert [text for _, text in answers(state)] == ["paid x", "a", "b"]
        assert effects.counts["pay x"] == 1
        (before,) = [found async for found in graph.aget_state_history(CONFIG) if found.next == ("tools",)]
        replayed = await run(None, before.config)
        assert [one.value for one in replayed["__interrupt__"]] == ["A", "B"]
        assert effects.counts["pay x"] == 2

    asyncio.run(story())
