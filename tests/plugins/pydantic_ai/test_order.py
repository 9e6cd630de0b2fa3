"""Tools of an agent in the order of their calls, with all that pydantic-ai does around a tool."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="toolrt[pydantic_ai]")

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent, ApprovalRequired, CallDeferred, ModelRetry, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import SkipToolExecution, UnexpectedModelBehavior
from pydantic_ai.messages import ToolReturn
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, Tool, ToolDenied
from pydantic_ai.toolsets import FunctionToolset

import toolrt
from tests.plugins._paused import HeldThread, PausedTools, several_turns
from tests.plugins.pydantic_ai._agents import model_of, returns
from toolrt import WRITE, Claim
from toolrt.errors import DefinitionRefused, MisuseError
from toolrt.plugins.pydantic_ai import ordered_tools, ordered_toolset

ON_ROW = {"row": WRITE}


class Rows:
    """Tools that lose a text where they overlap on one row."""

    def __init__(self) -> None:
        self.turns = PausedTools()
        self.rows = {"a": "", "b": ""}

    async def read(self, name: str) -> str:
        await self.turns.reach(name)
        return f"read {name}"

    async def append(self, row: str, text: str) -> str:
        before = self.rows[row]
        await self.turns.reach(text)
        self.rows[row] = before + text
        return self.rows[row]


CALLS: Any = [
    ("append", {"row": "a", "text": "1"}),
    ("read", {"name": "r"}),
    ("append", {"row": "a", "text": "2"}),
    ("append", {"row": "b", "text": "3"}),
    ("append", {"row": "a", "text": "4"}),
]


@settings(max_examples=15, deadline=None)
@given(st.permutations(["1", "r", "2", "3", "4"]), st.booleans())
def test_independent_calls_overlap_and_edits_of_a_row_keep_the_call_order(order: list[str], is_toolset: bool) -> None:
    tools = Rows()
    options: Any = {"safe": ["read"], "claims": {"append": ON_ROW}}
    if is_toolset:
        toolset = FunctionToolset([tools.read, tools.append])
        agent = Agent(model_of(CALLS), toolsets=[ordered_toolset(toolset, **options)])
    else:
        agent = Agent(model_of(CALLS), tools=[tools.read, tools.append], capabilities=[ordered_tools(**options)])

    async def run() -> Any:
        task = asyncio.ensure_future(agent.run("go"))
        await tools.turns.until("1", "r", "3")
        await tools.turns.let_go(order, task)
        return await task

    done = asyncio.run(run())
    assert tools.rows == {"a": "124", "b": "3"}
    expected = ["1", "read r", "12", "3", "124"]
    assert returns(done.all_messages()) == [(f"0.{index}", text) for index, text in enumerate(expected)]


def test_without_it_an_edit_is_lost() -> None:
    tools = Rows()
    agent = Agent(model_of(CALLS), tools=[tools.read, tools.append])

    async def run() -> Any:
        task = asyncio.ensure_future(agent.run("go"))
        await tools.turns.until("1", "r", "2", "3", "4")
        await tools.turns.let_go(["4", "3", "2", "1", "r"], task)

    asyncio.run(run())
    assert tools.rows["a"] == "1"


class Slow(AbstractCapability[Any]):
    """Hooks that wait before some calls, so that calls reach their tools in another order."""

    def __init__(self, **seconds: float) -> None:
        self.seconds = seconds
        self.reached: list[str] = []

    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        await asyncio.sleep(self.seconds.get(args.get("text", ""), 0))
        self.reached.append(args.get("text", ""))
        return args


def test_hooks_that_wait_change_no_order() -> None:
    texts: list[str] = []

    async def append(text: str) -> None:
        texts.append(text)

    slow = Slow(**{"1": 0.02, "2": 0.01})
    calls: Any = [("append", {"text": text}) for text in "123"]
    agent = Agent(model_of(calls), tools=[append], capabilities=[slow, ordered_tools()])
    asyncio.run(agent.run("go"))
    assert slow.reached == ["3", "2", "1"]
    assert texts == ["1", "2", "3"]


def test_a_call_that_never_comes_holds_up_nothing() -> None:
    texts: list[str] = []

    async def append(text: str) -> str:
        texts.append(text)
        return text

    class Hooks(AbstractCapability[Any]):
        async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
            await several_turns()
            if args["text"] == "skipped":
                raise SkipToolExecution("skipped")
            if args["text"] == "retried":
                raise ModelRetry("again")
            if args["text"] == "deferred":
                raise ApprovalRequired
            return args

    calls: Any = [("append", {"text": text}) for text in ("skipped", "1", "retried", "2", "deferred", "3")]
    calls.insert(2, ("append", {"text": ["no text"]}))
    agent = Agent(
        model_of(calls),
        tools=[append],
        output_type=[str, DeferredToolRequests],
        capabilities=[Hooks(), ordered_tools()],
    )
    done = asyncio.run(agent.run("go"))
    assert texts == ["1", "2", "3"]
    assert [call.args for call in done.output.approvals] == [{"text": "deferred"}]


def test_a_hook_may_change_arguments_within_what_the_call_holds() -> None:
    rows: list[str] = []

    async def append(row: str, text: str) -> None:
        rows.append(row + text)

    class Rewrites(AbstractCapability[Any]):
        def __init__(self, **changes: str) -> None:
            self.changes = changes

        async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
            return {**args, **self.changes}

    def agent(**changes: str) -> Agent[Any, Any]:
        order = ordered_tools(claims={"append": ON_ROW})
        calls: Any = [("append", {"row": "a", "text": "1"}), ("append", {"row": "a", "text": "2"})]
        return Agent(model_of(calls), tools=[append], capabilities=[Rewrites(**changes), order])

    asyncio.run(agent(text="!").run("go"))
    assert rows == ["a!", "a!"]
    with pytest.raises(MisuseError, match="it claims write row/b"):
        asyncio.run(agent(row="b").run("go"))
    assert rows == ["a!", "a!"]


def test_deps_retries_and_the_limit_of_retries() -> None:
    seen: list[tuple[str, int]] = []

    async def flaky(ctx: RunContext[str], number: int) -> str:
        seen.append((ctx.deps, ctx.retry))
        if ctx.retry < number:
            raise ModelRetry(f"again, {ctx.deps}")
        return f"{ctx.deps} {ctx.tool_call_id}"

    async def other() -> str:
        return "other"

    def agent(*responses: Any) -> Agent[str, str]:
        tools: Any = [Tool(flaky, max_retries=2), other]
        return Agent(model_of(*responses), deps_type=str, tools=tools, capabilities=[ordered_tools(safe=["other"])])

    twice: Any = [[("flaky", {"number": 2}), ("other", {})]] * 3
    done = asyncio.run(agent(*twice).run("go", deps="Al"))
    assert seen == [("Al", 0), ("Al", 1), ("Al", 2)]
    assert returns(done.all_messages())[-2:] == [("2.0", "Al 2.0"), ("2.1", "other")]
    assert done.usage.tool_calls == 4
    with pytest.raises(UnexpectedModelBehavior, match="exceeded max retries"):
        asyncio.run(agent(*([[("flaky", {"number": 9}), ("other", {})]] * 5)).run("go", deps="Bo"))


def test_deferred_calls_and_approvals() -> None:
    log: list[str] = []

    async def pay(ctx: RunContext[None], to: str) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"to": to})
        log.append(f"pay {to}")
        return f"paid {to}"

    async def later() -> str:
        raise CallDeferred(metadata={"job": 1})

    async def note(text: str) -> str:
        log.append(text)
        return text

    agent = Agent(
        model_of([("note", {"text": "1"}), ("pay", {"to": "x"}), ("later", {}), ("pay", {"to": "y"})]),
        tools=[pay, later, note],
        output_type=[str, DeferredToolRequests],
        capabilities=[ordered_tools()],
    )
    stopped = asyncio.run(agent.run("go"))
    asked = stopped.output
    assert [call.tool_call_id for call in asked.approvals] == ["0.1", "0.3"]
    assert [call.tool_call_id for call in asked.calls] == ["0.2"]
    assert asked.metadata == {"0.1": {"to": "x"}, "0.2": {"job": 1}, "0.3": {"to": "y"}}
    results = DeferredToolResults(approvals={"0.1": True, "0.3": ToolDenied("no")}, calls={"0.2": "late"})
    done = asyncio.run(agent.run(message_history=stopped.all_messages(), deferred_tool_results=results))
    assert log == ["1", "pay x"]
    assert returns(done.all_messages()) == [("0.0", "1"), ("0.1", "paid x"), ("0.2", "late"), ("0.3", "no")]


def test_an_exception_comes_out_as_it_is_and_nothing_runs_on() -> None:
    turns = PausedTools()

    async def fail() -> None:
        await turns.until("x", "y")
        raise LookupError("no")

    async def wait(name: str) -> None:
        await turns.reach(name)

    calls: Any = [("wait", {"name": "x"}), ("fail", {}), ("wait", {"name": "y"})]
    order = ordered_tools(safe=["wait", "fail"])
    agent = Agent(model_of(calls), tools=[fail, wait], capabilities=[order])

    async def run() -> None:
        with pytest.raises(LookupError, match="no") as caught:
            await agent.run("go")
        assert type(caught.value) is LookupError
        assert not turns.running

    asyncio.run(run())


def test_a_cancel_leaves_nothing_running_and_the_next_run_works() -> None:
    turns, held = PausedTools(), HeldThread()

    async def wait(name: str) -> str:
        await turns.reach(name)
        return name

    calls: Any = [("wait", {"name": "x"}), ("wait", {"name": "y"}), ("block", {}), ("alone", {})]

    async def alone() -> str:
        return "alone"

    order = ordered_tools(safe=["wait", "block"])
    agent = Agent(model_of(calls), tools=[wait, held.block, alone], capabilities=[order])

    async def run() -> Any:
        task = asyncio.ensure_future(agent.run("go"))
        await turns.until("x", "y")
        await held.outlasts(task)
        assert not turns.running
        task = asyncio.ensure_future(agent.run("go"))
        await turns.until("x", "y")
        await turns.let_go(["x", "y"], task)
        return await task

    done = asyncio.run(run())
    assert [content for _, content in returns(done.all_messages())] == ["x", "y", "done", "alone"]


def test_a_timeout_of_a_tool_begins_with_the_tool() -> None:
    async def slow(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    calls: Any = [("slow", {"seconds": 0.03})] * 3
    tool: Any = Tool(slow, timeout=0.08)
    done = asyncio.run(Agent(model_of(calls), tools=[tool], capabilities=[ordered_tools()]).run("go"))
    assert [content for _, content in returns(done.all_messages())] == ["done"] * 3
    late: Any = [[("slow", {"seconds": 5}), ("slow", {"seconds": 0})], []]
    done = asyncio.run(Agent(model_of(*late), tools=[tool], capabilities=[ordered_tools()]).run("go"))
    assert "Timed out" in returns(done.all_messages())[0][1]
    assert returns(done.all_messages())[1][1] == "done"


def test_agents_inside_tools_run_inside_their_calls() -> None:
    log: list[str] = []
    order = ordered_tools()

    async def leaf(text: str) -> str:
        log.append(text)
        return text

    async def delegate(text: str) -> str:
        calls: Any = [("leaf", {"text": f"{text}1"}), ("leaf", {"text": f"{text}2"})]
        done = await Agent(model_of(calls), tools=[leaf], capabilities=[order]).run("go")
        return str(done.output)

    calls: Any = [("delegate", {"text": "a"}), ("leaf", {"text": "b"}), ("delegate", {"text": "c"})]
    asyncio.run(Agent(model_of(calls), tools=[delegate, leaf], capabilities=[order]).run("go"))
    assert log == ["a1", "a2", "b", "c1", "c2"]


def test_tools_of_both_kinds_keep_one_order() -> None:
    log: list[str] = []

    @toolrt.tool(claims=[Claim("log", WRITE)])
    async def mark(ctx: toolrt.ToolContext, text: str) -> str:
        """A tool of the runtime."""
        if text == "bad":
            raise ValueError(text)
        log.append(text)
        return f"marked {text}"

    async def note(text: str) -> str:
        await several_turns()
        log.append(text)
        return f"noted {text}"

    calls: Any = [("note", {"text": "1"}), ("mark", {"text": "2"}), ("mark", {"text": "bad"}), ("mark", {"txt": "3"})]
    order = ordered_tools(claims={"note": [Claim("log", WRITE)]}, tools=[mark])
    agent = Agent(model_of(calls), tools=[note], capabilities=[order])
    done = asyncio.run(agent.run("go"))
    assert log == ["1", "2"]
    told = returns(done.all_messages())
    assert told[:2] == [("0.0", "noted 1"), ("0.1", "marked 2")]
    assert told[2][1] == "[error] ValueError: bad"
    assert "input.text: expected a value" in told[3][1]


def test_two_orders_around_one_agent() -> None:
    log: list[str] = []

    async def step(text: str) -> None:
        log.append(f"{text} began")
        await several_turns()
        log.append(f"{text} ended")

    calls: Any = [("step", {"text": text}) for text in "123"]
    for orders in ([ordered_tools(), ordered_tools(safe=["step"])], [ordered_tools(safe=["step"]), ordered_tools()]):
        log.clear()
        asyncio.run(Agent(model_of(calls), tools=[step], capabilities=orders).run("go"))
        assert log == [f"{text} {what}" for text in "123" for what in ("began", "ended")]


def test_streams_run_sync_and_the_test_model() -> None:
    async def look(name: str) -> ToolReturn[str]:
        return ToolReturn(f"seen {name}", metadata={"n": 1})

    agent = Agent(TestModel(), tools=[look], capabilities=[ordered_tools()])
    assert "seen" in str(agent.run_sync("go").output)

    async def streamed() -> str:
        async with agent.run_stream("go") as stream:
            return str(await stream.get_output())

    assert "seen" in asyncio.run(streamed())


def test_what_cannot_work_is_refused() -> None:
    @toolrt.tool(safe=True)
    def own(ctx: toolrt.ToolContext) -> None:
        """A tool of the runtime."""

    with pytest.raises(DefinitionRefused, match="collection of tools' names"):
        ordered_tools(safe="look")
    with pytest.raises(DefinitionRefused, match="tools that promise for themselves"):
        ordered_tools(safe=["own"], tools=[own])
    with pytest.raises(DefinitionRefused, match="a toolset of pydantic-ai"):
        ordered_toolset(3)


@pytest.mark.parametrize("asks", ["always", "when it runs"])
def test_a_later_call_that_conflicts_with_one_that_waits_for_an_approval_is_refused(asks: str) -> None:
    """It would overtake it; a call of another file runs, and after the answer each lands in order."""
    log: list[str] = []

    async def write(ctx: RunContext[None], path: str, text: str) -> str:
        if asks == "when it runs" and not ctx.tool_call_approved and text == "first":
            raise ApprovalRequired
        log.append(f"{path} {text}")
        return text

    async def erase(path: str, text: str) -> str:
        log.append(f"{path} {text}")
        return text

    asked = Tool(write, requires_approval=asks == "always", name="write")
    agent = Agent(
        model_of(
            [
                ("write", {"path": "a", "text": "first"}),
                ("erase", {"path": "a", "text": "final"}),
                ("erase", {"path": "b", "text": "other"}),
            ]
        ),
        tools=[asked, erase],
        output_type=[str, DeferredToolRequests],
        capabilities=[ordered_tools(claims={name: {"path": WRITE} for name in ("write", "erase")})],
    )
    stopped = asyncio.run(agent.run("go"))
    assert log == ["b other"]
    texts = [str(content) for _, content in returns(stopped.all_messages())]
    assert any("send this call again" in text for text in texts), texts
    results = DeferredToolResults(approvals={"0.0": True})
    asyncio.run(agent.run(message_history=stopped.all_messages(), deferred_tool_results=results))
    assert log == ["b other", "a first"]
