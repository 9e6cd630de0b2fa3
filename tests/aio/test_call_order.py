"""Calls that a framework runs in tasks of its own: places, overlap, refusals, calls inside calls, what is left."""

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings

import toolrt
from tests.aio._frameworks import OF_PATH, PAUSES, Files, Pair, edits_in_order
from toolrt import MemoryDisk, Workspace, aio
from toolrt.errors import DefinitionRefused, MisuseError

PATHS = "aababa"


async def one(order: aio.CallOrder, name: str, input: dict[str, Any], run: Callable[[], Awaitable[Any]]) -> Any:
    """Run a call as a framework does: the place first, then things that wait, then the tool."""
    placed = order.place(name, input, group=order)
    for _ in range(len(input) % 3):
        await asyncio.sleep(0)
    async with placed:
        return await run()


def edits(order: aio.CallOrder, files: Files, paths: str = PATHS) -> list[Awaitable[Any]]:
    """One edit for each letter, which is its path."""
    return [
        one(order, "edit", {"path": path}, lambda path=path, number=number: files.edit(path, number))  # type: ignore[misc]
        for number, path in enumerate(paths)
    ]


@given(pauses=PAUSES)
@settings(max_examples=10)
def test_edits_keep_call_order_and_others_overlap(pauses: list[int]) -> None:
    """Whichever call would end first, what touches the same thing runs in call order."""

    async def main() -> None:
        files, pair, order = Files(pauses), Pair(), edits_in_order()
        looks = [one(order, "look", {}, pair.look) for _ in range(2)]
        await asyncio.gather(looks[0], *edits(order, files), looks[1])
        assert files.texts == {"a": "0135", "b": "24"}

    asyncio.run(main())


def test_a_name_without_a_promise_runs_alone() -> None:
    """It waits for all before it, and all after it wait for it."""

    async def main() -> list[int]:
        files, order = Files([9, 5, 1]), aio.CallOrder()
        await asyncio.gather(*edits(order, files))
        assert files.most_at_once == 1
        return files.started

    assert asyncio.run(main()) == [0, 1, 2, 3, 4, 5]


def test_the_limit_bounds_how_many_run() -> None:
    """Calls beyond the limit wait for a slot."""

    async def main() -> int:
        files, order = Files([5]), aio.CallOrder(claims={"edit": OF_PATH}, limit=2)
        await asyncio.gather(*edits(order, files, "abcdef"))
        return files.most_at_once

    assert asyncio.run(main()) == 2


def test_a_place_that_is_not_used_goes_back_with_its_task() -> None:
    """A call that its framework refuses after it took a place holds up nothing."""

    async def refused(order: aio.CallOrder) -> None:
        order.place("edit", {"path": "a"}, group=order)
        await asyncio.sleep(0)
        raise ValueError

    async def main() -> str:
        files, order = Files(), edits_in_order()
        await asyncio.gather(refused(order), *edits(order, files), return_exceptions=True)
        return files.texts["a"]

    assert asyncio.run(main()) == "0135"


def test_cancelled_calls_go_back_and_nothing_is_left() -> None:
    """A cancel of a call that waits lets those after it go on; afterwards the order keeps nothing."""

    async def main() -> str:
        files, order = Files([20]), edits_in_order()
        tasks = [asyncio.ensure_future(call) for call in edits(order, files)]
        await one(order, "look", {}, lambda: asyncio.sleep(0))
        tasks[1].cancel()
        await asyncio.wait(tasks)
        await order.wait_idle()
        assert not order._open
        assert not order._tasks
        return files.texts["a"]

    assert asyncio.run(main()) == "035"


def test_exceptions_and_context_variables_are_the_tasks_own() -> None:
    """The block runs in the framework's task: what it raises is what the task raises, in the task's context."""
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")

    async def main() -> None:
        order = aio.CallOrder()

        async def ask() -> str:
            return who.get()

        async def fail() -> None:
            raise KeyError("k")

        who.set("me")
        done = await asyncio.gather(
            one(order, "ask", {}, ask), one(order, "fail", {}, fail), one(order, "ask", {}, ask), return_exceptions=True
        )
        assert (done[0], done[2]) == ("me", "me")
        assert isinstance(done[1], KeyError)

    asyncio.run(main())


def test_calls_inside_a_call_run_within_its_claims() -> None:
    """Calls that a call makes end before later calls start; what its claims do not cover is refused."""

    async def main() -> None:
        files, order = Files([9, 5, 1]), edits_in_order()

        async def nested() -> None:
            await asyncio.gather(*edits(order, files, "aa"))

        last = one(order, "edit", {"path": "a"}, lambda: files.edit("a", 2))
        await asyncio.gather(one(order, "agent", {}, nested), last)
        assert files.texts == {"a": "012"}
        with pytest.raises(MisuseError, match="inside which it would run, holds nothing"):
            await one(order, "look", {}, nested)

    asyncio.run(main())


def test_an_order_serves_loops_of_several_threads() -> None:
    """Each event loop has batches of its own."""
    order = edits_in_order()
    texts: list[str] = []

    def main() -> None:
        files = Files([9, 5, 1])

        async def run() -> None:
            await asyncio.gather(*edits(order, files))

        for _ in range(3):
            asyncio.run(run())
        texts.append(files.texts["a"])

    threads = [threading.Thread(target=main) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["0135" * 3] * 2


def test_claims_on_a_workspace_order_by_its_table() -> None:
    """An owner's claim table orders the calls of several orders."""

    async def main() -> str:
        files, workspace = Files([9, 1]), Workspace(MemoryDisk({}))
        orders = [aio.CallOrder(claims={"edit": OF_PATH}, owner=workspace) for _ in range(2)]
        calls = [edits(order, files, "aa") for order in orders]
        await asyncio.gather(*calls[0], *calls[1])
        return files.texts["a"]

    assert sorted(asyncio.run(main())) == list("0011")


def test_a_guest_that_ends_ends_the_calls() -> None:
    """Closing the door cancels calls that run and calls that wait."""

    async def main() -> None:
        order = aio.CallOrder()
        begun = asyncio.Event()

        async def wait() -> None:
            begun.set()
            await asyncio.Event().wait()

        tasks = [asyncio.ensure_future(one(order, "wait", {}, wait)) for _ in range(2)]
        await begun.wait()
        await aio.close()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(error) for error in done] == [asyncio.CancelledError] * 2

    asyncio.run(main())


def test_a_group_is_cancelled_as_a_whole() -> None:
    """Its calls that run are cancelled, those that wait never begin, and other groups go on."""

    async def main() -> None:
        order, begun = aio.CallOrder(safe=["wait"], limit=1), []

        async def wait() -> None:
            begun.append(len(begun))
            await asyncio.Event().wait()

        tasks = [asyncio.ensure_future(one(order, "wait", {}, wait)) for _ in range(2)]
        other = order.place("wait", {}, group=begun)
        await other.turn()
        await one(aio.CallOrder(), "look", {}, lambda: asyncio.sleep(0))
        assert begun
        order.cancel(order)
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(error) for error in done] == [asyncio.CancelledError] * 2
        assert begun == [0]
        async with other:
            pass
        await order.wait_idle()

    asyncio.run(main())


def test_any_input_of_a_framework_will_do() -> None:
    """Values that are no JSON, names of our own parameters, and a missing claimed field refuse no call."""

    async def main() -> None:
        order = edits_in_order()
        inputs: list[dict[str, Any]] = [{}, {"path": (1,)}, {"path": object()}, {"ctx": 1}, {"self": b"x"}]
        for input in inputs:
            async with order.place("edit", input):
                pass

    asyncio.run(main())


def test_what_cannot_work_is_refused() -> None:
    """Wrong promises are refused where they are made, and a place where no loop runs."""
    with pytest.raises(DefinitionRefused, match="a collection of tools' names"):
        aio.CallOrder(safe="look")
    with pytest.raises(DefinitionRefused, match="'edit', which claims= names too"):
        aio.CallOrder(safe=["edit"], claims={"edit": OF_PATH})
    with pytest.raises(DefinitionRefused, match="list of claims"):
        aio.CallOrder(claims={"edit": "path"})  # type: ignore[dict-item]
    with pytest.raises(MisuseError, match="no asyncio event loop runs"):
        aio.CallOrder().place("edit", {})


def test_a_block_is_entered_once() -> None:
    """A place that was given back begins no block."""

    async def main() -> None:
        placed = aio.CallOrder().place("look", {}, call_id="x")
        async with placed:
            assert placed.is_entered
            assert repr(placed) == "<PlacedCall look 'x'>"
        with pytest.raises(MisuseError, match="runs in one block only"):
            await placed.__aenter__()
        placed = aio.CallOrder().place("look", {})
        placed.give_back()
        with pytest.raises(MisuseError, match="was given back"):
            await placed.turn()

    asyncio.run(main())


async def _answers(order: aio.CallOrder, calls: list[tuple[str, str]]) -> list[str]:
    """How calls of one message end, where those of `ask` turn out to wait for an approval."""
    log: list[str] = []
    group = object()

    async def one(number: int, name: str, path: str) -> str:
        placed = order.place(name, {"path": path}, group, str(number))
        try:
            async with placed:
                await asyncio.sleep(0)
                if name == "ask":
                    placed.give_back(waits=True)
                    return "waits"
                log.append(f"{number} {name}")
                return "ran"
        except aio.BehindApproval as error:
            return f"behind {error.waits.call_id}"

    return list(await asyncio.gather(*(one(number, *call) for number, call in enumerate(calls))))


def test_later_call_that_conflicts_with_one_that_waits_for_an_approval_is_refused() -> None:
    """It would overtake it; calls that do not conflict run, and so do earlier ones and those that declare nothing."""
    order = aio.CallOrder(safe=["look"], claims={name: {"path": toolrt.WRITE} for name in ("ask", "edit")})

    async def main() -> None:
        assert await _answers(order, [("ask", "a"), ("edit", "a")]) == ["waits", "behind 0"]
        assert await _answers(order, [("ask", "a"), ("edit", "b")]) == ["waits", "ran"]
        assert await _answers(order, [("edit", "a"), ("ask", "a")]) == ["ran", "waits"]
        assert await _answers(order, [("ask", "a"), ("look", "a")]) == ["waits", "ran"]
        assert await _answers(order, [("ask", "a"), ("undeclared", "b")]) == ["waits", "ran"]

    asyncio.run(main())
