"""Batches awaited by asyncio: results, cancellation, contexts, approvals and what is refused."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import trio
import trio.lowlevel

import toolrt
from toolrt import (
    Allow,
    Claim,
    Deny,
    Mode,
    Outcome,
    Registry,
    ResultReady,
    Runtime,
    State,
    StateMerged,
    ToolCall,
    ToolOutput,
    aio,
    tool,
)
from toolrt.errors import BatchClosed, DefinitionRefused, MisuseError

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("WHO", default="unset")


@tool(safe=True)
async def on_trio(ctx: Any, text: str) -> str:
    """Give the text back from Trio."""
    await trio.lowlevel.checkpoint()
    return text


@aio.tool(safe=True)
async def on_asyncio(ctx: Any, text: str) -> str:
    """Give the text back from asyncio."""
    await asyncio.sleep(0)
    return text


@tool(safe=True)
async def wait_on_trio(ctx: Any) -> None:
    """Wait for ever in Trio."""
    await trio.sleep_forever()


@aio.tool(safe=True)
async def wait_on_asyncio(ctx: Any) -> None:
    """Wait for ever in asyncio."""
    await asyncio.Event().wait()


@aio.tool(claims=(Claim("count", Mode.WRITE),))
async def count(ctx: Any) -> ToolOutput:
    """Count in the state."""
    await asyncio.sleep(0)
    return ToolOutput("ok", modifiers=[lambda state: state.set("n", state.get("n", 0) + 1)])


ALL = Registry([on_trio, on_asyncio, wait_on_trio, wait_on_asyncio, count])


def calls(*names: str, **input: Any) -> list[ToolCall]:
    """One call of each tool, all with the same input."""
    return [ToolCall(f"call_{index}", name, input) for index, name in enumerate(names)]


def outcomes(done: Any) -> list[Outcome]:
    """The outcome of each call."""
    return [result.outcome for result in done.results]


async def running(batch: aio.AsyncioBatch, number: int) -> None:
    """Wait until so many calls of the batch run."""
    while sum(call.status is toolrt.Status.EXECUTING for call in batch.calls) < number:  # noqa: ASYNC110
        await asyncio.sleep(0)


def test_run_gives_results_in_call_order_and_the_state() -> None:
    """Tools of both kinds run in one batch."""
    done = asyncio.run(
        aio.run(Runtime(ALL), [*calls("on_trio", "on_asyncio", text="x"), *calls("count", "count")], State({"n": 1}))
    )
    assert [result.content for result in done.results] == ["x", "x", "ok", "ok"]
    assert done.state["n"] == 3


def test_a_trio_run_may_follow_in_the_same_thread() -> None:
    """The guest has ended with its loop."""
    asyncio.run(aio.run(Runtime(ALL), calls("on_trio", text="x")))
    trio.run(trio.lowlevel.checkpoint)


def test_batches_of_many_tasks_run_at_the_same_time() -> None:
    """Three batches wait for each other, on one runtime."""

    async def main() -> None:
        barrier = asyncio.Barrier(3)

        @aio.tool(safe=True)
        async def meet(ctx: Any) -> None:
            await barrier.wait()

        runtime = Runtime(Registry([meet]))
        done = await asyncio.gather(*(aio.run(runtime, calls("meet")) for _ in range(3)))
        assert [outcomes(one) for one in done] == [[Outcome.OK]] * 3

    asyncio.run(main())


@pytest.mark.parametrize("name", ["wait_on_trio", "wait_on_asyncio"])
def test_a_cancelled_task_leaves_nothing_running(name: str) -> None:
    """The cancel comes out when the call has ended."""

    async def main() -> None:
        ended = []
        started = asyncio.Event()

        async def watched(ctx: Any) -> None:
            started.set()
            try:
                await {"wait_on_trio": trio.sleep_forever, "wait_on_asyncio": asyncio.Event().wait}[name]()
            finally:
                ended.append(name)

        make = tool if name == "wait_on_trio" else aio.tool
        runtime = Runtime(Registry([make(name=name, safe=True)(watched)]))
        task = asyncio.ensure_future(aio.run(runtime, calls(name)))
        await started.wait()
        task.cancel("enough")
        with pytest.raises(asyncio.CancelledError, match="enough"):
            await task
        assert ended == [name]

    asyncio.run(main())


def test_asyncio_timeout_cancels_the_batch_and_keeps_its_outcome() -> None:
    """A cancel from outside, as an enclosing Trio scope would be."""

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60) as timeout, aio.open_batch(Runtime(ALL)) as batch:
                for call in calls("wait_on_trio", "wait_on_asyncio"):
                    batch.submit(call)
                await running(batch, 2)
                timeout.reschedule(0)
                await asyncio.Event().wait()
        assert outcomes(batch.outcome) == [Outcome.INTERRUPTED] * 2
        assert batch.cancel_reason == "the caller's scope was cancelled"

    asyncio.run(main())


def test_a_deadline_cancels_the_batch_and_gives_its_outcome() -> None:
    """Unlike a timeout around it: `run` raises nothing, and the errors name the deadline."""

    async def main() -> toolrt.BatchOutcome:
        runtime = Runtime(Registry([wait_on_trio, wait_on_asyncio]))
        return await aio.run(runtime, [ToolCall("a", "wait_on_trio"), ToolCall("b", "wait_on_asyncio")], deadline=0.001)

    results = asyncio.run(main()).results
    # Whether they have begun within a millisecond is the machine's to decide.
    assert {result.outcome for result in results} <= {Outcome.INTERRUPTED, Outcome.NOT_STARTED}
    assert all("its deadline of 0.001 s had passed" in str(result.error) for result in results)


def test_a_tool_timeout_cancels_its_asyncio_task() -> None:
    """The tool sees the cancel, and the call is timed out."""

    async def main() -> None:
        seen = []

        @aio.tool(safe=True, timeout=0.01)
        async def slow(ctx: Any) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        assert outcomes(await aio.run(Runtime(Registry([slow])), calls("slow"))) == [Outcome.TIMED_OUT]
        assert seen == ["cancelled"]

    asyncio.run(main())


def test_a_tool_that_returns_in_spite_of_a_cancel_is_ok() -> None:
    """A call that returns is OK, whatever was asked meanwhile."""

    async def main() -> None:
        @aio.tool(safe=True)
        async def stubborn(ctx: Any) -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "done all the same"
            return ""

        async with aio.open_batch(Runtime(Registry([stubborn]))) as batch:
            batch.submit(calls("stubborn")[0])
            await running(batch, 1)
            await asyncio.sleep(0)
            batch.cancel("by the test")
        assert [result.content for result in batch.outcome.results] == ["done all the same"]

    asyncio.run(main())


def test_an_asyncio_tool_that_cancels_itself_has_failed() -> None:
    """Its cancel is no cancel of the batch."""

    async def main() -> None:
        @aio.tool(safe=True)
        async def gives_up(ctx: Any) -> None:
            raise asyncio.CancelledError

        [result] = (await aio.run(Runtime(Registry([gives_up])), calls("gives_up"))).results
        assert (result.outcome, result.error) == (Outcome.ERROR, "CancelledError")

    asyncio.run(main())


def test_open_batch_is_read_while_it_runs() -> None:
    """Updates come in the order of the laws; the second call is submitted after the first result."""

    async def main() -> None:
        seen: list[Any] = []
        async with aio.open_batch(Runtime(ALL)) as batch:
            batch.submit(calls("on_asyncio", text="x")[0])
            async for update in batch:
                seen.append(type(update))
                if len(seen) == 1:
                    batch.submit(calls("count")[0])
                    batch.seal()
        assert seen == [ResultReady, ResultReady, StateMerged]
        assert batch.outcome.state == State({"n": 1})

    asyncio.run(main())


def test_a_cancelled_read_takes_no_update_away() -> None:
    """The update that arrived with the cancel is the next one."""

    async def main() -> None:
        async with aio.open_batch(Runtime(ALL)) as batch:
            batch.submit(calls("on_trio", text="x")[0])
            batch.seal()
            while batch.calls[0].status is not toolrt.Status.COMPLETED:  # noqa: ASYNC110
                await asyncio.sleep(0)
            for wait in range(12):
                read = asyncio.ensure_future(batch.__anext__())
                for _ in range(wait):
                    await asyncio.sleep(0)
                read.cancel()
                await asyncio.wait([read])
                if not read.cancelled():
                    break
            first = read.result() if not read.cancelled() else await batch.__anext__()
            assert isinstance(first, ResultReady)

    asyncio.run(main())


def test_a_cancel_while_the_block_is_entered_ends_the_batch() -> None:
    """Nothing of it waits to be left by a block that never began."""

    async def main() -> None:
        await aio.run(Runtime(ALL), calls("on_trio", text="x"))  # the guest runs: only the batch has to be opened
        for wait in range(4):
            batch = aio.open_batch(Runtime(ALL))
            entering = asyncio.ensure_future(batch.__aenter__())
            for _ in range(wait):
                await asyncio.sleep(0)
            entering.cancel()
            await asyncio.wait([entering], timeout=10)
            assert entering.done()
            if not entering.cancelled():
                await batch.__aexit__(None, None, None)

    asyncio.run(main())


def test_an_exception_in_the_block_cancels_the_batch_and_comes_out_as_it_is() -> None:
    """The same object, with its own traceback only."""

    async def main() -> None:
        error = ValueError("mine")
        with pytest.raises(ValueError, match="mine") as raised:
            async with aio.open_batch(Runtime(ALL)) as batch:
                batch.submit(calls("wait_on_asyncio")[0])
                await running(batch, 1)
                raise error
        assert raised.value is error
        assert not any("_hold" in str(entry.name) for entry in raised.traceback)
        assert batch.cancel_reason == "its block was left by ValueError"

    asyncio.run(main())


def test_context_variables_are_carried_to_tools_of_both_kinds() -> None:
    """A tool sees what the task that awaits the batch has set."""

    async def main() -> None:
        async def who(ctx: Any) -> str:
            return WHO.get()

        runtime = Runtime(Registry([tool(name="t", safe=True)(who), aio.tool(name="a", safe=True)(who)]))
        WHO.set("me")
        assert [result.content for result in (await aio.run(runtime, calls("t", "a"))).results] == ["me", "me"]

    asyncio.run(main())


def test_tools_run_in_the_thread_of_the_loop() -> None:
    """No thread of ours: Trio's own waits for I/O."""

    async def main() -> None:
        async def where(ctx: Any) -> bool:
            return threading.current_thread() is threading.main_thread()

        runtime = Runtime(Registry([tool(name="t", safe=True)(where), aio.tool(name="a", safe=True)(where)]))
        assert [result.content for result in (await aio.run(runtime, calls("t", "a"))).results] == [True, True]

    asyncio.run(main())


async def ask_on_asyncio(request: Any) -> Any:
    """An approval that uses what only asyncio tasks may."""
    async with asyncio.timeout(5):
        await asyncio.sleep(0)
    return Deny("not this one") if request.call_index else Allow()


async def ask_on_trio(request: Any) -> Any:
    """The same for Trio."""
    with trio.fail_after(5):
        await trio.lowlevel.checkpoint()
    return Deny("not this one") if request.call_index else Allow()


async def ask_at_once(request: Any) -> Any:
    """One that awaits nothing."""
    return Deny("not this one") if request.call_index else Allow()


async def ask_twice(request: Any) -> Any:
    """One whose second wait is longer than its first."""
    await asyncio.sleep(0)
    await asyncio.sleep(0.001)
    return Deny("not this one") if request.call_index else Allow()


@pytest.mark.parametrize("approve", [ask_on_asyncio, ask_on_trio, ask_at_once, ask_twice])
def test_an_approval_may_await_either(approve: Callable[..., Coroutine[Any, Any, Any]]) -> None:
    """Its first wait tells which of the two it awaits."""
    done = asyncio.run(aio.run(Runtime(ALL, approve=approve), calls("on_trio", "on_trio", text="x")))
    assert outcomes(done) == [Outcome.OK, Outcome.DENIED]
    assert done.results[1].error == "denied: not this one"


def test_an_asyncio_approval_is_cancelled_with_the_batch() -> None:
    """Its task ends before the batch is left."""

    async def main() -> None:
        ended = []
        asked = asyncio.Event()

        async def ask(request: Any) -> Any:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(True)

        async with aio.open_batch(Runtime(ALL, approve=ask)) as batch:
            batch.submit(calls("on_trio", text="x")[0])
            await asked.wait()
            await asyncio.sleep(0)
            batch.cancel()
        assert ended == [True]
        assert outcomes(batch.outcome) == [Outcome.NOT_STARTED]

    asyncio.run(main())


def test_an_asyncio_tool_opens_a_sub_batch() -> None:
    """Inside the claims of its call, by the same door."""

    async def main() -> None:
        @aio.tool(safe=True)
        async def both(ctx: Any) -> list[Any]:
            async with aio.open_batch(ctx) as batch:
                for call in calls("on_trio", "on_asyncio", text="inner"):
                    batch.submit(call)
            return [result.content for result in batch.outcome.results]

        runtime = Runtime(Registry([both, on_trio, on_asyncio]))
        assert (await aio.run(runtime, calls("both"))).results[0].content == ["inner", "inner"]

    asyncio.run(main())


def test_a_trio_function_is_called_from_asyncio() -> None:
    """Such as a method of a workspace."""

    async def main() -> None:
        assert await aio.call(trio.to_thread.run_sync, lambda: 7) == 7
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await aio.call(trio.sleep_forever)

    asyncio.run(main())


def test_close_ends_the_guest_and_a_later_use_starts_another() -> None:
    """What a notebook does before it calls `trio.run`."""

    async def main() -> None:
        assert not trio.lowlevel.in_trio_run()
        await aio.run(Runtime(ALL), calls("on_trio", text="x"))
        assert trio.lowlevel.in_trio_run()
        await aio.close()
        await aio.close()
        assert not trio.lowlevel.in_trio_run()
        assert outcomes(await aio.run(Runtime(ALL), calls("on_trio", text="x"))) == [Outcome.OK]

    asyncio.run(main())


def test_close_cancels_what_runs() -> None:
    """Tasks that await a batch see a cancel."""

    async def main() -> None:
        task = asyncio.ensure_future(aio.run(Runtime(ALL), calls("wait_on_asyncio", "wait_on_trio")))
        while not trio.lowlevel.in_trio_run():  # noqa: ASYNC110  the start of the guest has no event
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        await aio.close()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_an_idle_guest_of_a_stopped_loop_gives_way() -> None:
    """Loops of one thread take turns, as ``run_until_complete`` leaves them: open, with nothing running in them."""
    runtime = Runtime(ALL)
    loops = [asyncio.new_event_loop(), asyncio.new_event_loop()]
    for loop in loops * 3:
        done = loop.run_until_complete(aio.run(runtime, calls("on_trio", "on_asyncio", text="x")))
        assert outcomes(done) == [Outcome.OK] * 2
        assert outcomes(asyncio.run(aio.run(runtime, calls("on_trio", text="x")))) == [Outcome.OK]
    for loop in loops:
        loop.run_until_complete(asyncio.sleep(0))  # what its former guest left in it does nothing
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
    assert not trio.lowlevel.in_trio_run()


def test_a_guest_in_which_a_batch_is_open_does_not_give_way() -> None:
    """It is not cancelled by the use of another loop."""
    loop = asyncio.new_event_loop()

    async def opened() -> aio.AsyncioBatch:
        return await aio.open_batch(Runtime(ALL)).__aenter__()

    batch = loop.run_until_complete(opened())
    with pytest.raises(MisuseError, match="another event loop of this thread has a guest"):
        asyncio.run(aio.run(Runtime(ALL), []))
    loop.run_until_complete(batch.__aexit__(None, None, None))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    assert batch.outcome is not None


def test_it_is_refused_where_no_loop_runs() -> None:
    """The error names what to use instead."""
    with pytest.raises(MisuseError, match="run_sync"):
        aio.open_batch(Runtime(ALL))


async def test_it_is_refused_in_a_plain_trio_program() -> None:
    """So is an asyncio tool in a batch that Trio awaits: its call has failed."""
    with pytest.raises(MisuseError, match=r"await runtime\.run"):
        await aio.run(Runtime(ALL), [])
    [result] = (await Runtime(ALL).run(calls("on_asyncio", text="x"))).results
    assert result.outcome is Outcome.ERROR
    assert "toolrt.aio.run" in str(result.error)


def test_what_is_no_runtime_is_refused() -> None:
    """Before anything is started."""

    async def main() -> None:
        with pytest.raises(DefinitionRefused, match=r"toolrt\.Runtime"):
            await aio.run(ALL, [])  # type: ignore[arg-type]
        with pytest.raises(DefinitionRefused, match="no call"):
            await aio.run(Runtime(ALL), ["no call"])  # type: ignore[list-item]
        assert not asyncio.all_tasks() - {asyncio.current_task()}

    asyncio.run(main())


def test_a_plain_def_is_no_asyncio_tool() -> None:
    """It would run in a thread, which `toolrt.tool` does."""
    with pytest.raises(DefinitionRefused, match="async def"):
        aio.tool(lambda ctx: None)


def test_run_sync_in_a_running_loop_names_the_door() -> None:
    """It would hold up the loop."""

    async def main() -> None:
        with pytest.raises(MisuseError, match=r"toolrt\.aio\.run"):
            toolrt.run_sync(Runtime(ALL), [])

    asyncio.run(main())


def test_loops_in_two_threads_have_a_guest_each() -> None:
    """With a runtime each; both run at the same time."""
    barrier = threading.Barrier(2, timeout=10)

    async def main() -> list[Outcome]:
        @tool(safe=True)
        def meet(ctx: Any) -> None:
            barrier.wait()

        return outcomes(await aio.run(Runtime(Registry([meet])), calls("meet")))

    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(asyncio.run(main()))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[Outcome.OK], [Outcome.OK]]


def test_one_table_in_two_live_loops_is_refused() -> None:
    """Tickets belong to one Trio run at a time; the error says what to do."""
    runtime = Runtime(ALL)
    is_open, may_leave = threading.Event(), threading.Event()

    async def hold() -> None:
        async with aio.open_batch(runtime):
            is_open.set()
            await asyncio.to_thread(may_leave.wait)

    other = threading.Thread(target=lambda: asyncio.run(hold()))
    other.start()
    is_open.wait()
    try:
        with pytest.raises(BatchClosed, match="give each thread a Workspace and a Runtime of its own"):
            asyncio.run(aio.run(runtime, calls("on_trio", text="x")))
    finally:
        may_leave.set()
        other.join()


def test_batch_of_trio_in_asyncio_names_the_door() -> None:
    """`Runtime.run` and `Runtime.open_batch` say what asyncio uses in their place."""
    runtime = Runtime(ALL)

    async def opens() -> None:
        async with runtime.open_batch():
            pass

    for wrong in (lambda: runtime.run([]), opens):
        with pytest.raises(MisuseError, match=r"in asyncio use `await toolrt\.aio\.run\(runtime, calls\)`"):
            asyncio.run(wrong())


def test_trio_tool_that_awaits_asyncio_names_the_decorator() -> None:
    """What Trio says of a foreign await names neither the mistake nor the way out."""

    @tool(safe=True, schema=None)
    async def pause(ctx: Any) -> None:
        await asyncio.sleep(0.01)

    runtime = Runtime(Registry([pause]))
    for done in (asyncio.run(aio.run(runtime, calls("pause"))), toolrt.run_sync(runtime, calls("pause"))):
        assert done.results[0].outcome is Outcome.ERROR
        assert str(done.results[0].error).endswith(
            "(A tool that awaits asyncio is made with @toolrt.aio.tool, and toolrt.aio awaits its batch.)"
        )
