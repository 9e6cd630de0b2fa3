"""Programs whose tasks meet at an instant, or a thread at an access."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Awaitable, Callable

import trio
from trio.lowlevel import checkpoint

from tests.sim.missed._table import ends, together

# ---------------------------------------------------------------------- deadlines of one instant


async def _answer_at_the_limit() -> str:
    answered = trio.Event()

    async def answer() -> None:
        await trio.sleep(5)
        answered.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        with trio.move_on_after(5):
            await answered.wait()
            return "answered"
    return "gave up"


@ends("gave up")
async def deadlines_together() -> str:
    return await _answer_at_the_limit()


@ends("gave up", "answered", clock="real")
async def deadlines_apart() -> str:
    return await _answer_at_the_limit()


@ends(1, 2)
async def two_wake_together() -> int:
    count = {"n": 0}

    async def add() -> None:
        await trio.sleep(1)
        seen = count["n"]
        await checkpoint()
        count["n"] = seen + 1

    await together(add, add)
    return count["n"]


@ends((True, False), (False, True), clock="real")
async def outer_and_inner_deadline() -> tuple[bool, bool]:
    """Two scopes of one task and one instant: the task is cut by either, or by the outer one after both."""
    with trio.move_on_after(1) as outer, trio.move_on_after(1) as inner:
        await trio.sleep_forever()
    return outer.cancel_called, inner.cancelled_caught


# ---------------------------------------------------------------------- threads at accesses


async def _beside_a_thread(in_thread: Callable[[], object], in_task: Callable[[], Awaitable[object]]) -> None:
    await together(functools.partial(trio.to_thread.run_sync, in_thread), in_task)


@ends(1, 2)
async def thread_adds_beside_a_task() -> int:
    count = 0

    def add() -> None:
        nonlocal count
        count += 1

    async def add_later() -> None:
        nonlocal count
        seen = count
        await checkpoint()
        count = seen + 1

    await _beside_a_thread(add, add_later)
    return count


@ends(["a"], ["a", "b"])
async def thread_goes_through_a_list() -> list[str]:
    names, got = ["a"], list[str]()

    def go_through() -> None:
        for name in names:
            got.append(name)

    async def add() -> None:  # noqa: ASYNC124  a task is one step
        names.append("b")

    await _beside_a_thread(go_through, add)
    return got


@ends((1, 1))
async def thread_has_a_place_of_its_own() -> tuple[int, int]:
    places = [0, 0]

    async def write() -> None:  # noqa: ASYNC124
        places[1] = 1

    await _beside_a_thread(lambda: operator.setitem(places, 0, 1), write)
    return places[0], places[1]


@ends("torn", "before", "after")
async def thread_reads_twice() -> str:
    pair, seen = types.SimpleNamespace(left=0, right=0), []

    def read() -> None:
        seen.append((pair.left, pair.right))

    async def write() -> None:  # noqa: ASYNC124
        pair.left = pair.right = 1

    await _beside_a_thread(read, write)
    return {(0, 1): "torn", (0, 0): "before", (1, 1): "after"}[seen[0]]
