"""The OpenAI Agents SDK with ordered tools: order, overlap, cancels, errors, approvals, guardrails, nested agents."""

import asyncio
import copy
import threading
from typing import Any

import pytest

pytest.importorskip("agents", reason="toolrt[openai_agents]")

from agents import (
    Agent,
    AgentHooks,
    RunConfig,
    RunContextWrapper,
    RunState,
    ToolExecutionConfig,
    ToolGuardrailFunctionOutput,
    ToolOutputImage,
    UserError,
    function_tool,
    tool_input_guardrail,
)
from hypothesis import given, settings

from tests.aio._frameworks import PAUSES, Endless, Files, Pair, edits_in_order
from tests.plugins._paused import several_turns
from tests.plugins.openai_agents._fake import Script, answers, run
from toolrt import aio
from toolrt.errors import DefinitionRefused
from toolrt.plugins.openai_agents import ordered

PATHS = "aababa"


def mixed_calls() -> list[tuple[str, dict[str, Any]]]:
    """Edits of two files, and among them two calls that wait for each other."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("edit", {"path": path, "number": number}) for number, path in enumerate(PATHS)
    ]
    return [*calls[:1], ("look", {}), *calls[1:5], ("look", {}), *calls[5:]]


def edit_tool(files: Files, **options: Any) -> Any:
    """The files' edit as a tool of the SDK."""

    @function_tool(**options)
    async def edit(path: str, number: int) -> str:
        return await files.edit(path, number)

    return edit


def editor(files: Files, order: aio.CallOrder | None = None, calls: str = PATHS, **options: Any) -> Agent[Any]:
    """An agent whose model asks for one edit for each letter of `calls`, which is its path."""
    script = Script([("edit", {"path": path, "number": number}) for number, path in enumerate(calls)])
    return Agent(name="editor", model=script, tools=ordered([edit_tool(files, **options)], order))


@pytest.mark.parametrize("streamed", [False, True])
@given(pauses=PAUSES)
@settings(max_examples=10)
def test_independent_calls_overlap_and_edits_keep_call_order(streamed: bool, pauses: list[int]) -> None:
    """Whichever call would end first, each file gets its edits in call order, and the model all results in it."""

    async def main() -> None:
        files = Files(pauses)
        look = function_tool(Pair().look)
        script = Script(mixed_calls())
        agent = Agent(name="editor", model=script, tools=ordered([edit_tool(files), look], edits_in_order()))
        await run(agent, streamed=streamed)
        assert files.texts == {"a": "0135", "b": "24"}
        assert answers(agent) == ["a0", "seen", "a1", "b2", "a3", "b4", "seen", "a5"]

    asyncio.run(main())


@pytest.mark.parametrize("order", [None, edits_in_order()])
@pytest.mark.parametrize("at_once", [1, None])
def test_sequential_modes(order: aio.CallOrder | None, at_once: int | None) -> None:
    """A tool without claims runs alone; the SDK's own limit goes together with an order."""
    files = Files([9, 5, 1])
    agent = editor(files, order)
    config = RunConfig(tool_execution=ToolExecutionConfig(max_function_tool_concurrency=at_once))
    asyncio.run(run(agent, run_config=config))
    assert files.texts == {"a": "0135", "b": "24"}
    assert files.most_at_once == (1 if order is None or at_once == 1 else 2)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_cancel_leaves_nothing_running(streamed: bool) -> None:
    """A cancelled run: the running call ends, the waiting one never starts, and the next run is not held up."""

    async def main() -> list[str]:
        endless = Endless()

        order = aio.CallOrder()
        script = Script([("work", {"name": "one"}), ("work", {"name": "two"})])
        agent = Agent(name="worker", model=script, tools=ordered([function_tool(endless.work)], order))
        task = asyncio.create_task(run(agent, streamed=streamed))
        await endless.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(order.wait_idle(), 5)
        ended = list(endless.seen)
        await several_turns()
        assert endless.seen == ended
        files = Files()
        await run(editor(files, order))
        assert files.texts == {"a": "0135", "b": "24"}
        return endless.seen

    assert asyncio.run(main()) == ["one begins", "one ended"]


def test_a_cancel_waits_for_the_thread_of_a_sync_tool() -> None:
    """A cancel cannot end a thread, so the call keeps its place until the thread has ended."""
    go_on = threading.Event()
    begun = threading.Event()
    seen: list[str] = []

    @function_tool
    def work() -> str:
        begun.set()
        go_on.wait(10)
        seen.append("wrote")
        return "ok"

    async def main() -> None:
        order = aio.CallOrder()
        agent = Agent(name="worker", model=Script([("work", {})]), tools=ordered([work], order))
        task = asyncio.create_task(run(agent))
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        idle = asyncio.create_task(order.wait_idle())
        await several_turns()
        assert not idle.done()
        go_on.set()
        await asyncio.wait_for(idle, 5)
        assert seen == ["wrote"]

    asyncio.run(main())


def test_errors_are_those_of_the_sdk() -> None:
    """A tool's error becomes the text of its error function, and the calls after it run."""

    def sorry(context: RunContextWrapper[Any], error: Exception) -> str:
        return f"sorry: {error}"

    @function_tool
    async def breaks(number: int) -> str:
        raise ValueError(f"no {number}")

    excused = function_tool(breaks.__wrapped__, name_override="excused", failure_error_function=sorry)
    files = Files()
    calls = [("breaks", {"number": 0}), ("excused", {"number": 1}), ("edit", {"path": "a", "number": 2})]
    calls.append(("edit", {"path": 7}))
    tools = ordered([breaks, excused, edit_tool(files)])
    agent = Agent(name="worker", model=Script(calls), tools=tools)
    plain = Agent(name="worker", model=Script(calls), tools=[breaks, excused, edit_tool(files)])
    asyncio.run(run(agent))
    asyncio.run(run(plain))
    assert answers(agent) == answers(plain)
    assert answers(agent)[1:3] == ["sorry: no 1", "a2"]


def test_an_error_without_error_function_ends_the_run() -> None:
    """The run fails as it does without an order, and nothing of it is left."""

    @function_tool(failure_error_function=None)
    async def breaks() -> str:
        raise ValueError("no")

    async def main() -> None:
        files = Files()
        order = aio.CallOrder()
        calls = [("breaks", {}), ("edit", {"path": "a", "number": 1})]
        agent = Agent(name="worker", model=Script(calls), tools=ordered([breaks, edit_tool(files)], order))
        with pytest.raises(UserError, match="Error running tool breaks: no"):
            await run(agent)
        await asyncio.wait_for(order.wait_idle(), 5)

    asyncio.run(main())


@pytest.mark.parametrize("saved", [False, True])
def test_approvals_survive(saved: bool) -> None:
    """A call that needs approval stops the run; approved calls run in call order, also from a state of text."""

    async def main() -> None:
        files = Files([9, 5, 1])
        asked: list[int] = []

        async def odd(context: Any, parameters: dict[str, Any], call_id: str) -> bool:
            asked.append(parameters["number"])
            for _ in range(10 - parameters["number"]):
                await asyncio.sleep(0)
            return bool(parameters["number"] % 2)

        agent = editor(files, edits_in_order(), needs_approval=odd)
        result = await run(agent)
        assert files.texts == {"b": "24", "a": "0"}
        assert [item.raw_item.call_id for item in result.interruptions] == ["call_1", "call_3", "call_5"]
        state = result.to_state()
        if saved:
            state = await RunState.from_string(agent, state.to_string())
        first, second, third = state.get_interruptions()
        state.approve(third)
        state.reject(second)
        state.approve(first)
        result = await run(agent, state)
        assert files.texts == {"b": "24", "a": "015"}
        assert result.final_output == "done"

    asyncio.run(main())


def test_a_call_that_stays_undecided_holds_up_no_approved_one() -> None:
    """A resumed run asks for it again; meanwhile a later call that was approved runs."""

    async def main() -> None:
        files = Files()

        async def asks(context: Any, parameters: dict[str, Any], call_id: str) -> bool:
            return True

        agent = editor(files, edits_in_order(), "aaa", needs_approval=asks)
        state = (await run(agent)).to_state()
        state.approve(state.get_interruptions()[1])
        result = await asyncio.wait_for(run(agent, state), 10)
        assert files.texts == {"a": "1"}
        assert len(result.interruptions) == 2

    asyncio.run(main())


def test_guardrails_survive() -> None:
    """A call that an input guardrail rejects holds nothing up, and a slow guardrail does not change the order."""
    seen: list[str] = []

    @tool_input_guardrail
    async def slow(data: Any) -> ToolGuardrailFunctionOutput:
        number = int(data.context.tool_call_id.removeprefix("call_"))
        for _ in range(20 - 3 * number):
            await asyncio.sleep(0)
        return ToolGuardrailFunctionOutput.allow()

    @tool_input_guardrail
    def not_the_third(data: Any) -> ToolGuardrailFunctionOutput:
        seen.append(data.context.tool_call_id)
        if data.context.tool_call_id == "call_3":
            return ToolGuardrailFunctionOutput.reject_content("not this one")
        return ToolGuardrailFunctionOutput.allow()

    files = Files([9, 5, 1])
    agent = editor(files, edits_in_order(), tool_input_guardrails=[slow, not_the_third])
    result = asyncio.run(run(agent))
    assert files.texts == {"a": "015", "b": "24"}
    assert answers(agent) == ["a0", "a1", "b2", "not this one", "b4", "a5"]
    names = {item.guardrail.get_name() for item in result.tool_input_guardrail_results}
    assert names == {"slow", "not_the_third"}
    assert sorted(seen) == [f"call_{number}" for number in range(6)]


def test_slow_hooks_keep_the_order() -> None:
    """A hook that waits at the start of a call changes nothing of the order."""

    class Slow(AgentHooks[Any]):
        """Waits longest for the first call."""

        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            number = int(context.tool_call_id.removeprefix("call_"))
            for _ in range(20 - 3 * number):
                await asyncio.sleep(0)

    files = Files()
    agent = editor(files, edits_in_order()).clone(hooks=Slow())
    asyncio.run(run(agent))
    assert files.texts == {"a": "0135", "b": "24"}


@pytest.mark.parametrize("guarded", [False, True])
def test_a_timeout_begins_when_the_tool_does(guarded: bool) -> None:
    """Waiting for earlier calls does not count for a tool's timeout, and a timeout lets later calls go on."""

    @tool_input_guardrail
    def allows(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.allow()

    @function_tool(timeout=0.2, tool_input_guardrails=[allows] if guarded else None)
    async def work(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "in time"

    calls = [("work", {"seconds": seconds}) for seconds in (0.15, 0.15, 9.0, 0.0)]
    agent = Agent(name="worker", model=Script(calls), tools=ordered([work]))
    asyncio.run(run(agent))
    first, second, third, fourth = answers(agent)
    assert (first, second, fourth) == ("in time",) * 3
    assert "timed out" in third


def test_the_context_is_handed_on() -> None:
    """A tool gets the context of the run, and what one call writes there the next one reads."""

    @function_tool
    async def count(context: RunContextWrapper[list[int]]) -> int:
        found = len(context.context)
        await asyncio.sleep(0)
        context.context.append(found)
        return found

    agent = Agent(name="counter", model=Script([("count", {})] * 4), tools=ordered([count]))
    asyncio.run(run(agent, context=[]))
    assert answers(agent) == ["0", "1", "2", "3"]


def test_an_agent_as_a_tool_runs_inside_its_call() -> None:
    """The calls of a nested agent run within the call of the outer one, and later calls wait for all of them."""
    files = Files([9, 5, 1])
    order = edits_in_order()
    inner = editor(files, order, "aa")
    calls = [("inner", {"input": "go"}), ("edit", {"path": "a", "number": 2})]
    tools = ordered([inner.as_tool("inner", "edits"), edit_tool(files)], order)
    asyncio.run(run(Agent(name="outer", model=Script(calls), tools=tools)))
    assert files.texts == {"a": "012"}


def test_two_conversations_share_an_order() -> None:
    """Runs of one agent at the same time lose no edit, each keeping its own call order."""

    async def main() -> None:
        files = Files([9, 5, 1])
        order = edits_in_order()
        await asyncio.gather(run(editor(files, order)), run(editor(files, order)))
        assert sorted(files.texts["a"]) == list("00113355")
        assert sorted(files.texts["b"]) == list("2244")

    asyncio.run(main())


def test_two_conversations_are_two_batches() -> None:
    """Runs at the same time have a limit each."""

    async def main() -> None:
        order = aio.CallOrder(safe=["look"], limit=1)
        tools = ordered([function_tool(Pair().look)], order)
        agents = [Agent(name="looker", model=Script([("look", {})]), tools=tools) for _ in range(2)]
        await asyncio.gather(*(run(agent) for agent in agents))
        assert [answers(agent) for agent in agents] == [["seen"], ["seen"]]

    asyncio.run(main())


def test_other_tools_and_wrong_orders() -> None:
    """What is no function tool is handed on; an order that is none is refused."""
    assert ordered(["hosted"]) == ["hosted"]
    with pytest.raises(DefinitionRefused, match="CallOrder"):
        ordered([], "safe")  # type: ignore[arg-type]


def test_a_tool_called_by_hand_takes_a_place_of_its_own() -> None:
    """Without a run of the SDK, an ordered tool is still a tool."""
    from agents.tool_context import ToolContext

    files = Files()
    (edit,) = ordered([edit_tool(files)])
    context: ToolContext[None] = ToolContext(None, tool_name="edit", tool_call_id="x", tool_arguments="{}")
    assert asyncio.run(edit.on_invoke_tool(context, '{"path": "a", "number": 1}')) == "a1"
    assert edit.__wrapped__ is not None
    assert type(copy.copy(edit).on_invoke_tool) is type(edit.on_invoke_tool)  # the SDK copies tools


def test_pictures_of_a_tool_stay_pictures() -> None:
    """The SDK hands them on; the order of calls does not look at answers."""

    @function_tool
    async def look() -> ToolOutputImage:
        return ToolOutputImage(image_url="data:image/png;base64,cG5n")

    script = Script([("look", {})])
    asyncio.run(run(Agent(name="viewer", model=script, tools=ordered([look]))))
    [output] = [item["output"] for item in script.inputs[-1] if item.get("type") == "function_call_output"]
    assert output == [{"type": "input_image", "image_url": "data:image/png;base64,cG5n"}]
