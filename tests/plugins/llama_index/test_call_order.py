"""LlamaIndex with ordered agents: order of effects and results, overlap, cancels, errors, contexts, nested agents."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("llama_index.core", reason="toolrt[llama_index]")

from hypothesis import given, settings
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent
from workflows.errors import WorkflowCancelledByUser

from tests.aio._frameworks import PAUSES, Endless, Files, Pair, edits_in_order
from tests.plugins._paused import several_turns
from tests.plugins.llama_index._fake import Script
from toolrt import aio
from toolrt.errors import DefinitionRefused
from toolrt.plugins.llama_index import ordered

#: LlamaIndex looks at deprecated attributes of pydantic's models.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

PATHS = "aababa"


def edits(paths: str = PATHS) -> list[tuple[str, dict[str, Any]]]:
    """One edit for each letter, which is its path."""
    return [("edit", {"path": path, "number": number}) for number, path in enumerate(paths)]


def agent_of(
    script: Script, tools: list[Any], order: aio.CallOrder | None, workflow: bool = False, **options: Any
) -> Any:
    """An agent with an order, by itself or in a workflow of agents."""
    if not workflow:
        return ordered(FunctionAgent, order)(tools=tools, llm=script, **options)
    agents = [FunctionAgent(name="one", description="the only one", tools=tools, llm=script, **options)]
    return ordered(AgentWorkflow, order)(agents=agents)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("workflow", [False, True])
@given(pauses=PAUSES)
@settings(max_examples=5)
def test_independent_calls_overlap_and_edits_keep_call_order(workflow: bool, streamed: bool, pauses: list[int]) -> None:
    """Whichever call would end first, each file gets its edits in call order, and all results come in it."""

    async def main() -> None:
        files, pair = Files(pauses), Pair()
        calls = edits()
        script = Script([*calls[:1], ("look", {}), *calls[1:5], ("look", {}), *calls[5:]])
        agent = agent_of(script, [files.edit, pair.look], edits_in_order(), workflow, streaming=streamed)
        result = await agent.run(user_msg="go")
        assert files.texts == {"a": "0135", "b": "24"}
        assert script.answers() == ["a0", "seen", "a1", "b2", "a3", "b4", "seen", "a5"]
        assert [call.tool_id for call in result.tool_calls] == [f"call_{number}" for number in range(8)]

    asyncio.run(main())


@pytest.mark.parametrize("named", [False, True])
def test_sequential_and_parallel(named: bool) -> None:
    """A tool without claims runs alone, and calls that wait hold up no others, however many they are."""

    async def main() -> None:
        files = Files([200, 5, 1])
        script = Script(edits("aaaaaaaab"))
        await agent_of(script, [files.edit], edits_in_order() if named else None).run(user_msg="go")
        assert files.texts == {"a": "01234567", "b": "8"}
        assert sorted(files.started[:2]) == ([0, 8] if named else [0, 1])

    asyncio.run(main())


@pytest.mark.parametrize("by_user", [False, True])
@pytest.mark.parametrize("workflow", [False, True])
def test_a_cancel_leaves_nothing_running(workflow: bool, by_user: bool) -> None:
    """A cancelled run: the running call ends, and those that wait never start."""

    async def main() -> None:
        endless = Endless()

        order = aio.CallOrder(safe=["work"], limit=2)
        script = Script([("work", {"name": str(number)}) for number in range(6)])
        handler = agent_of(script, [endless.work], order, workflow).run(user_msg="go")
        waits = asyncio.ensure_future(handler.stop_event_result())
        await endless.begun.wait()
        if by_user:
            await handler.cancel_run()
        else:
            waits.cancel()
        with pytest.raises((asyncio.CancelledError, WorkflowCancelledByUser)):
            await waits
        await asyncio.wait_for(order.wait_idle(), 5)
        await several_turns()
        begins = [line for line in endless.seen if line.endswith("begins")]
        assert len(begins) <= 2
        assert len(endless.seen) == 2 * len(begins)

    asyncio.run(main())


def test_errors_are_those_of_the_framework() -> None:
    """A tool's error becomes the framework's result, and the calls after it run."""

    async def breaks() -> str:
        """Break."""
        raise ValueError("no")

    async def main() -> None:
        said = []
        for order in (aio.CallOrder(), None):
            files = Files()
            script = Script([("breaks", {}), ("nothing", {}), ("edit", {"path": "a", "number": 2})])
            tools = [breaks, files.edit]
            agent = agent_of(script, tools, order) if order else FunctionAgent(tools=tools, llm=script)
            await agent.run(user_msg="go")
            said.append(script.answers())
        assert sorted(map(str, said[0])) == sorted(map(str, said[1]))
        assert (said[0][0], said[0][2]) == ("no", "a2")

    asyncio.run(main())


def test_the_context_and_a_direct_return_are_handed_on() -> None:
    """A tool gets the run's context; of several tools that return directly, the first in call order wins."""

    async def count(ctx: Context, pauses: int) -> str:
        """Count."""
        found = await ctx.store.get("counted", default=0)
        for _ in range(pauses):
            await asyncio.sleep(0)
        await ctx.store.set("counted", found + 1)
        return str(found)

    async def main() -> None:
        script = Script([("count", {"pauses": 20}), ("count", {"pauses": 0})])
        tool = FunctionTool.from_defaults(count, return_direct=True)
        result = await agent_of(script, [tool], None).run(user_msg="go")
        assert str(result) == "0"

    asyncio.run(main())


def test_an_agent_as_a_tool_runs_inside_its_call() -> None:
    """The calls of a nested agent run within the call of the outer one, and later calls wait for all of them."""

    async def main() -> None:
        files, order = Files([9, 5, 1]), edits_in_order()

        async def inner() -> str:
            """Run an agent."""
            return str(await agent_of(Script(edits("aa")), [files.edit], order).run(user_msg="go"))

        script = Script([("inner", {}), ("edit", {"path": "a", "number": 2})])
        await agent_of(script, [inner, files.edit], order).run(user_msg="go")
        assert files.texts == {"a": "012"}

    asyncio.run(main())


def test_a_tool_that_waits_for_a_person_holds_up_nothing() -> None:
    """It gives its place back while it waits, and runs anew with the answer."""

    async def ask(ctx: Context) -> str:
        """Ask a person."""
        answer = await ctx.wait_for_event(HumanResponseEvent, waiter_event=InputRequiredEvent(prefix="really?"))
        return str(answer.response)

    async def main() -> None:
        edited = asyncio.Event()

        async def edit() -> str:
            """Edit."""
            edited.set()
            return "edited"

        script = Script([("ask", {}), ("edit", {})])
        handler = agent_of(script, [ask, edit], None).run(user_msg="go")
        async for event in handler.stream_events():
            if isinstance(event, InputRequiredEvent):
                await edited.wait()
                handler.ctx.send_event(HumanResponseEvent(response="yes"))
        await handler
        assert script.answers() == ["yes", "edited"]

    asyncio.run(asyncio.wait_for(main(), 10))


def test_two_conversations_are_two_batches() -> None:
    """Runs of one agent at the same time have a limit each."""

    async def main() -> None:
        script = Script([("look", {})], [("look", {})])
        agent = agent_of(script, [Pair().look], aio.CallOrder(safe=["look"], limit=1))
        await asyncio.gather(*(asyncio.ensure_future(agent.run(user_msg="go").stop_event_result()) for _ in range(2)))
        assert script.answers() == ["seen"]

    asyncio.run(main())


def test_what_is_no_agent_class_is_refused() -> None:
    """Wrong arguments are refused where the class is made."""
    with pytest.raises(DefinitionRefused, match="an agent class"):
        ordered(dict)
    with pytest.raises(DefinitionRefused, match="CallOrder"):
        ordered(FunctionAgent, "safe")  # type: ignore[arg-type]
