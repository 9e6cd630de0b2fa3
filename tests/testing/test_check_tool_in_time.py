"""`check_tool`: what a tool does with time, a cancel, and the calls beside it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest
import trio

from tests.testing._promises import counter_tool, promises_of
from toolrt import READ, WRITE, Claim, tool
from toolrt.errors import NotSimulated
from toolrt.testing import check_tool


def test_async_tool_that_sleeps_in_its_thread_is_broken() -> None:
    """`time.sleep` in an async tool holds up all others."""

    @tool(safe=True)
    async def sleepy(ctx: Any) -> str:
        await trio.lowlevel.checkpoint()
        time.sleep(0)  # noqa: ASYNC251
        return "done"

    [broken] = check_tool(sleepy, [{}])
    assert broken.promise == "blocking"
    assert "time.sleep()" in broken.detail


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: subprocess.run(["no such program"], check=False), "held up every other task: subprocess;"),
        (lambda: os.system("exit"), "os.system()"),
    ],
    ids=["subprocess", "system"],
)
def test_async_tool_that_waits_for_the_system_is_broken(call: Callable[[], object], told: str) -> None:
    """What the simulator does not even let happen would hold up all others."""

    @tool(safe=True)
    async def waiting(ctx: Any) -> str:
        call()
        return "done"

    [broken] = check_tool(waiting, [{}])
    assert broken.promise == "blocking"
    assert told in broken.detail


@pytest.mark.process
def test_async_tool_that_waits_with_trio_is_refused() -> None:
    """A subprocess that holds up nobody is no broken promise: it cannot be checked."""

    @tool(safe=True)
    async def waiting(ctx: Any) -> None:
        await trio.run_process(["no such program"])

    with pytest.raises(NotSimulated):
        check_tool(waiting, [{}])


def test_async_tool_that_computes_for_long_is_broken() -> None:
    """More than a second of processor time without a checkpoint holds up all others."""

    @tool(safe=True)
    async def busy(ctx: Any) -> str:
        until = time.thread_time() + 1.1
        while time.thread_time() < until:
            pass
        return "done"

    [broken] = check_tool(busy, [{}])
    assert broken.promise == "blocking"
    assert "computing" in broken.detail


def test_sync_tool_may_block() -> None:
    """It runs in a thread of its own."""

    @tool(safe=True)
    def sleepy(ctx: Any) -> str:
        time.sleep(0)
        return "done"

    assert check_tool(sleepy, [{}]) == []


async def _returns() -> str:
    try:
        await trio.sleep(1)
    except BaseException:
        return "stopped"
    return "done"


async def _raises_another() -> str:
    try:
        await trio.sleep(1)
    except trio.Cancelled:
        raise ValueError("stopped") from None
    return "done"


async def _tries_again() -> str:
    for _ in range(3):
        try:
            await trio.sleep(1)
        except BaseException:
            continue
        return "done"
    return "gave up"


async def _never_stops() -> str:
    while True:
        try:
            await trio.sleep(1)
            return "done"
        except trio.Cancelled:
            pass


@pytest.mark.parametrize("body", [_returns, _raises_another, _tries_again, _never_stops], ids=lambda it: it.__name__)
def test_tool_that_swallows_a_cancel_is_broken(body: Any) -> None:
    """A cancel that reached the tool has to leave it."""

    @tool(safe=True)
    async def stubborn(ctx: Any) -> str:
        return str(await body())

    [broken] = check_tool(stubborn, [{}])
    assert broken.promise == "cancel"
    assert "checkpoint 1" in broken.detail


async def _shielded() -> str:
    with trio.CancelScope(shield=True):
        await trio.sleep(1)
    return "done"


async def _cleans_up() -> str:
    try:
        await trio.sleep(1)
    finally:
        with trio.move_on_after(5, shield=True):
            await trio.sleep(10)
    return "done"


async def _has_a_timeout() -> str:
    with trio.move_on_after(1):
        await trio.sleep(10)
    return "done"


async def _shielded_with_a_timeout() -> str:
    with trio.move_on_after(1, shield=True):
        await trio.sleep(10)
    return "done"


async def _with_children() -> str:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 1)
        nursery.start_soon(trio.sleep, 2)
    return "done"


@pytest.mark.parametrize(
    "body",
    [_shielded, _cleans_up, _has_a_timeout, _shielded_with_a_timeout, _with_children],
    ids=lambda it: it.__name__,
)
def test_tool_that_passes_a_cancel_on_keeps_its_promise(body: Any) -> None:
    """Shields, clean-up, timeouts and children are all as they should be."""

    @tool(safe=True)
    async def obedient(ctx: Any) -> str:
        return str(await body())

    assert check_tool(obedient, [{}]) == []


def test_tool_that_finishes_when_interrupted_is_not_cancelled() -> None:
    """The runtime does not cancel such a tool either."""

    @tool(safe=True, interrupt="finish")
    async def finishes(ctx: Any) -> str:
        return await _returns()

    assert check_tool(finishes, [{}]) == []


def test_answer_that_depends_on_the_time_is_broken() -> None:
    """A clock is no input."""

    @tool(safe=True)
    async def now(ctx: Any) -> float:
        return trio.current_time()

    [broken] = check_tool(now, [{}])
    assert broken.promise == "timing"
    assert "1024" in broken.detail


def test_answer_that_depends_on_the_order_of_its_tasks_is_broken() -> None:
    """The first of two children to come back decides."""

    @tool(safe=True)
    async def first(ctx: Any) -> str:
        order: list[str] = []

        async def ask(name: str) -> None:
            await trio.lowlevel.checkpoint()
            order.append(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "left")
            nursery.start_soon(ask, "right")
        return order[0]

    [broken] = check_tool(first, [{}])
    assert broken.promise == "timing"
    assert "left" in broken.detail
    assert "right" in broken.detail


def test_tool_that_is_not_safe_although_it_says_so_is_found() -> None:
    """Two calls at once lose one count, which one after the other do not."""
    broken = check_tool(counter_tool(safe=True), [{"name": "a"}])
    assert set(promises_of(broken)) == {"safe"}
    assert "[1, 2]" in broken[0].detail


def test_claims_on_less_than_what_is_shared_are_found() -> None:
    """READ lets a second call of the same name in."""
    claims = lambda input, state: [Claim(("count", input["name"]), READ)]  # noqa: E731
    broken = check_tool(counter_tool(claims=claims), [{"name": "a"}, {"name": "b"}])
    assert set(promises_of(broken)) == {"claims"}


def test_claims_on_what_is_shared_are_enough() -> None:
    """A tool that keeps something between calls and claims it is as it should be, made anew for each run."""
    claims = lambda input, state: [Claim(("count", input["name"]), WRITE)]  # noqa: E731
    assert check_tool(counter_tool(claims=claims), [{"name": "a"}, {"name": "b"}]) == []


def test_tool_that_keeps_something_is_told_to_be_made_anew() -> None:
    """The same tool twice answers otherwise: the message says what to give instead."""
    [broken] = check_tool(counter_tool()(), [{"name": "a"}])
    assert broken.promise == "deterministic"
    assert "a function that makes it" in broken.detail


def test_tool_that_never_ends_is_broken() -> None:
    """Nobody else is there to wake it."""

    @tool(safe=True)
    async def waits(ctx: Any) -> None:
        await trio.sleep_forever()

    assert promises_of(check_tool(waits, [{}])) == ["ends"]
