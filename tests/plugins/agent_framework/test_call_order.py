"""The Agent Framework with ordering middleware: order, overlap, cancels, errors, approvals, nested agents."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("agent_framework", reason="toolrt[agent_framework]")

from agent_framework import (
    Agent,
    FunctionInvocationContext,
    Message,
    MiddlewareFailure,
    MiddlewareTermination,
    function_middleware,
    tool,
)
from hypothesis import given, settings

from tests.aio._frameworks import PAUSES, Endless, Files, Pair, edits_in_order
from tests.plugins._paused import HeldThread
from tests.plugins.agent_framework._fake import Script, answers, run
from toolrt import aio
from toolrt.errors import DefinitionRefused
from toolrt.plugins.agent_framework import ordering

PATHS = "aababa"


def edit_tool(files: Files, approval: str = "never_require") -> Any:
    """The files' edit as a tool of the framework."""

    @tool(approval_mode=approval)  # type: ignore[call-overload]
    async def edit(path: str, number: int) -> str:
        """Edit a file."""
        return await files.edit(path, number)

    return edit


def edits(paths: str = PATHS) -> list[tuple[str, dict[str, Any]]]:
    """One edit for each letter, which is its path."""
    return [("edit", {"path": path, "number": number}) for number, path in enumerate(paths)]


def editor(files: Files, order: aio.CallOrder | None = None, paths: str = PATHS, *more: Any, **options: Any) -> Any:
    """An agent whose model asks for one edit for each letter."""
    middleware = [ordering(order), *more]
    return Agent(Script(edits(paths)), "edit", tools=[edit_tool(files, **options)], middleware=middleware)


@pytest.mark.parametrize("streamed", [False, True])
@given(pauses=PAUSES)
@settings(max_examples=10)
def test_independent_calls_overlap_and_edits_keep_call_order(streamed: bool, pauses: list[int]) -> None:
    """Whichever call would end first, each file gets its edits in call order, and the model all results in it."""

    async def main() -> None:
        files = Files(pauses)
        look = tool(Pair().look, approval_mode="never_require")
        calls = edits()
        script = Script([*calls[:1], ("look", {}), *calls[1:5], ("look", {}), *calls[5:]])
        middleware = [ordering(edits_in_order())]
        agent = Agent(script, "edit", tools=[edit_tool(files), look], middleware=middleware)
        await run(agent, streamed=streamed)
        assert files.texts == {"a": "0135", "b": "24"}
        assert answers(agent) == ["a0", "seen", "a1", "b2", "a3", "b4", "seen", "a5"]

    asyncio.run(main())


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_sequential_modes(named: bool, at_once: bool) -> None:
    """A tool without claims runs alone; the framework's own sequential mode goes together with an order."""

    async def main() -> None:
        files = Files([9, 5, 1])
        agent = editor(files, edits_in_order() if named else None)
        agent.client.function_invocation_configuration["allow_concurrent_invocation"] = at_once
        await run(agent)
        assert files.texts == {"a": "0135", "b": "24"}
        assert files.most_at_once == (2 if named and at_once else 1)

    asyncio.run(main())


@pytest.mark.parametrize("streamed", [False, True])
def test_a_cancel_leaves_nothing_running(streamed: bool) -> None:
    """A cancelled run: the running call has ended, and the waiting one never starts."""

    async def main() -> list[str]:
        endless = Endless()

        order = aio.CallOrder()
        script = Script([("work", {"name": "one"}), ("work", {"name": "two"})])
        work = tool(endless.work, approval_mode="never_require")
        agent = Agent(script, "work", tools=[work], middleware=[ordering(order)])
        task = asyncio.create_task(run(agent, streamed=streamed))
        await endless.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert endless.seen == ["one begins", "one ended"]
        await asyncio.wait_for(order.wait_idle(), 5)
        return endless.seen

    assert asyncio.run(main()) == ["one begins", "one ended"]


def test_a_cancel_waits_for_the_thread_of_a_sync_tool() -> None:
    """A cancel cannot end a thread, so it is raised when the thread has ended."""

    async def main() -> None:
        held = HeldThread()
        work = tool(held.block, approval_mode="never_require")
        agent = Agent(Script([("block", {})]), "work", tools=[work], middleware=[ordering()])
        await held.outlasts(asyncio.create_task(run(agent)))

    asyncio.run(main())


def test_errors_are_those_of_the_framework() -> None:
    """A tool's error becomes the framework's result, and the calls after it run; a fatal one ends the run."""

    @tool(approval_mode="never_require")
    async def breaks(fatal: bool) -> str:
        """Break."""
        raise MiddlewareFailure("stop") if fatal else ValueError("no")

    async def main() -> None:
        calls = [("breaks", {"fatal": False}), ("edit", {"path": 7}), ("edit", {"path": "a", "number": 2})]
        said = []
        for middleware in ([ordering()], []):
            files = Files()
            agent = Agent(Script(calls), "go", tools=[breaks, edit_tool(files)], middleware=middleware)
            await run(agent)
            said.append(answers(agent))
        assert said[0] == said[1]
        assert said[0][2] == "a2"
        order, files = aio.CallOrder(), Files()
        calls = [("breaks", {"fatal": True}), ("edit", {"path": "a", "number": 2})]
        agent = Agent(Script(calls), "go", tools=[breaks, edit_tool(files)], middleware=[ordering(order)])
        with pytest.raises(MiddlewareFailure):
            await run(agent)
        await asyncio.wait_for(order.wait_idle(), 5)

    asyncio.run(main())


def test_approvals_survive() -> None:
    """Nothing runs before the approval; then approved calls run in call order."""

    async def main() -> None:
        files = Files([9, 5, 1])
        agent = editor(files, edits_in_order(), "aaab", approval="always_require")
        session = agent.create_session()
        result = await run(agent, session=session)
        requests = result.user_input_requests
        assert not files.started
        assert len(requests) == 4
        given = Message(
            "user", [request.to_function_approval_response(index != 1) for index, request in enumerate(requests)]
        )
        result = await run(agent, [given], session=session)
        assert files.texts == {"a": "02", "b": "3"}
        assert result.text == "done"

    asyncio.run(main())


def test_middleware_survives() -> None:
    """Middleware behind runs in the call's turn; one that answers in place of the tool holds nothing up."""
    seen: list[str] = []

    @function_middleware
    async def slow(context: FunctionInvocationContext, call_next: Any) -> None:
        number = context.arguments["number"]  # type: ignore[index]
        for _ in range(20 - 3 * number):
            await asyncio.sleep(0)
        seen.append(context.metadata["call_id"])
        if number == 3:
            context.result = "not this one"
            return
        context.kwargs["word"] = "kept"
        await call_next()

    files = Files([9, 5, 1])
    agent = editor(files, edits_in_order(), PATHS, slow)
    asyncio.run(run(agent))
    assert files.texts == {"a": "015", "b": "24"}
    assert answers(agent) == ["a0", "a1", "b2", "not this one", "b4", "a5"]
    assert sorted(seen) == [f"call_{number}" for number in range(6)]


def test_a_termination_lets_siblings_end() -> None:
    """A middleware that ends the loop ends it as it does without an order."""

    @function_middleware
    async def ends(context: FunctionInvocationContext, call_next: Any) -> None:
        await call_next()
        if context.arguments["number"] == 1:  # type: ignore[index]
            raise MiddlewareTermination

    files = Files([9, 5, 1])
    agent = editor(files, edits_in_order(), PATHS, ends)
    asyncio.run(run(agent))
    assert files.texts == {"a": "0135", "b": "24"}


def test_the_context_is_handed_on() -> None:
    """A tool gets the invocation's context, with the arguments that the caller of the run gave for tools."""

    @tool(approval_mode="never_require")
    async def count(context: FunctionInvocationContext) -> str:
        """Count."""
        counted: list[int] = context.kwargs["counted"]
        found = len(counted)
        await asyncio.sleep(0)
        counted.append(found)
        return str(found)

    agent = Agent(Script([("count", {})] * 4), "count", tools=[count], middleware=[ordering()])
    asyncio.run(run(agent, function_invocation_kwargs={"counted": []}))
    assert answers(agent) == ["0", "1", "2", "3"]


def test_an_agent_as_a_tool_runs_inside_its_call() -> None:
    """The calls of a nested agent run within the call of the outer one, and later calls wait for all of them."""
    files = Files([9, 5, 1])
    order = edits_in_order()
    inner = editor(files, order, "aa").as_tool(name="inner", description="edits", approval_mode="never_require")
    script = Script([("inner", {"task": "go"}), ("edit", {"path": "a", "number": 2})])
    agent = Agent(script, "go", tools=[inner, edit_tool(files)], middleware=[ordering(order)])
    asyncio.run(run(agent))
    assert files.texts == {"a": "012"}


def test_two_conversations_are_two_batches() -> None:
    """Runs of one agent at the same time have a limit each."""

    async def main() -> None:
        look = tool(Pair().look, approval_mode="never_require")
        script = Script([("look", {})], [("look", {})])
        agent = Agent(script, "look", tools=[look], middleware=[ordering(aio.CallOrder(safe=["look"], limit=1))])
        await asyncio.gather(run(agent), run(agent))
        assert answers(agent) == ["seen"]

    asyncio.run(main())


def test_a_wrong_order_is_refused() -> None:
    """What is no order is refused where the middleware is made."""
    with pytest.raises(DefinitionRefused, match="CallOrder"):
        ordering("safe")  # type: ignore[arg-type]
