"""`check_tool`: what a tool does with time, a cancel, and the calls beside it."""

from __future__ import annotations

import os
import subprocess
import time
from typing import Any

import pytest
import trio

from tests.testing._promises import Promises, check, counter_tool
from toolrt import READ, WRITE, Claim, tool
from toolrt.errors import NotSimulated
from toolrt.testing import check_tool

case = Promises()

# What holds up all others


@case.broken("blocking", "time.sleep()")
@tool(safe=True)
async def sleeps_in_its_thread(ctx: Any) -> str:
    """`time.sleep` in an async tool."""
    await trio.lowlevel.checkpoint()
    time.sleep(0)  # noqa: ASYNC251
    return "done"


@case.kept()
@tool(safe=True)
def sync_tool_sleeps(ctx: Any) -> str:
    """It runs in a thread of its own."""
    time.sleep(0)
    return "done"


@case.broken("blocking", "held up every other task: subprocess;")
@tool(safe=True)
async def waits_for_a_subprocess(ctx: Any) -> None:
    """What the simulator does not even let happen."""
    subprocess.run(["no such program"], check=False)  # noqa: ASYNC221


@case.broken("blocking", "os.system()")
@tool(safe=True)
async def waits_for_the_system(ctx: Any) -> None:
    """The same by another call."""
    os.system("exit")  # noqa: ASYNC221


@case.broken("blocking", "computing")
@tool(safe=True)
async def computes_for_long(ctx: Any) -> str:
    """More than a second of processor time without a checkpoint."""
    until = time.thread_time() + 1.1
    while time.thread_time() < until:
        pass
    return "done"


@case.broken("ends")
@tool(safe=True)
async def never_ends(ctx: Any) -> None:
    """There is no other task to wake it."""
    await trio.sleep_forever()


# What swallows a cancel that reached it


@case.broken("cancel", "checkpoint 1")
@tool(safe=True)
async def returns(ctx: Any) -> str:
    """It gives an answer as if nothing had been."""
    try:
        await trio.sleep(1)
    except BaseException:
        return "stopped"
    return "done"


@case.broken("cancel", "checkpoint 1")
@tool(safe=True)
async def raises_another(ctx: Any) -> str:
    """An error of its own takes the place of the cancel."""
    try:
        await trio.sleep(1)
    except trio.Cancelled:
        raise ValueError("stopped") from None
    return "done"


@case.broken("cancel", "checkpoint 1")
@tool(safe=True)
async def tries_again(ctx: Any) -> str:
    """A loop that takes a cancel for a failure."""
    for _ in range(3):
        try:
            await trio.sleep(1)
        except BaseException:
            continue
        return "done"
    return "gave up"


@case.broken("cancel", "checkpoint 1")
@tool(safe=True)
async def never_stops(ctx: Any) -> str:
    """The same without an end."""
    while True:
        try:
            await trio.sleep(1)
            return "done"
        except trio.Cancelled:
            pass


# What passes it on: shields, clean-up, timeouts and children are all as they should be


@case.kept()
@tool(safe=True)
async def shielded(ctx: Any) -> None:
    """A cancel does not reach it."""
    with trio.CancelScope(shield=True):
        await trio.sleep(1)


@case.kept()
@tool(safe=True)
async def cleans_up(ctx: Any) -> None:
    """Behind a shield, for a while."""
    try:
        await trio.sleep(1)
    finally:
        with trio.move_on_after(5, shield=True):
            await trio.sleep(10)


@case.kept()
@tool(safe=True)
async def has_a_timeout(ctx: Any) -> None:
    """Its own cancel ends where it began."""
    with trio.move_on_after(1):
        await trio.sleep(10)


@case.kept()
@tool(safe=True)
async def shielded_with_a_timeout(ctx: Any) -> None:
    """Both."""
    with trio.move_on_after(1, shield=True):
        await trio.sleep(10)


@case.kept()
@tool(safe=True)
async def with_children(ctx: Any) -> None:
    """A group of cancels is one."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 1)
        nursery.start_soon(trio.sleep, 2)


# The runtime does not cancel such a tool either.
case.kept()(tool(safe=True, interrupt="finish", name="finishes")(returns.function))

# What an answer depends on


@case.broken("timing", "1024")
@tool(safe=True)
async def depends_on_the_time(ctx: Any) -> float:
    """A clock is no input."""
    return trio.current_time()


@case.broken("timing", "left", "right")
@tool(safe=True)
async def depends_on_the_order_of_its_tasks(ctx: Any) -> str:
    """The first of two children to come back decides."""
    order: list[str] = []

    async def ask(name: str) -> None:
        await trio.lowlevel.checkpoint()
        order.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, "left")
        nursery.start_soon(ask, "right")
    return order[0]


def on_the_count(mode: Any) -> Any:
    """Claims on the count of a name."""
    return lambda input, state: [Claim(("count", input["name"]), mode)]


# Two calls at once lose one count, which one after the other do not; READ lets a second call of the same name in.
# A tool that keeps something between calls and claims it is as it should be, made anew for each run.
ON_A, ON_BOTH = [{"name": "a"}], [{"name": "a"}, {"name": "b"}]
case.broken("safe", "[1, 2]", inputs=ON_A)(counter_tool(safe=True))
case.broken("claims", inputs=ON_BOTH)(counter_tool(claims=on_the_count(READ)))
case.kept(ON_BOTH)(counter_tool(claims=on_the_count(WRITE)))
case.broken("deterministic", "a function that makes it", inputs=ON_A)(counter_tool()())


@pytest.mark.drawn(7)
@pytest.mark.parametrize(("made", "promise", "words", "inputs", "options"), case.cases)
def test_tool_breaks_this_promise_and_no_other(
    made: Any, promise: str | None, words: tuple[str, ...], inputs: list[Any], options: dict[str, Any]
) -> None:
    """The promise is named, once for each input, with what the check saw."""
    check(made, promise, words, inputs, options)


@pytest.mark.process
def test_async_tool_that_waits_with_trio_is_refused() -> None:
    """A subprocess that holds up no other task is no broken promise: it cannot be checked."""

    @tool(safe=True)
    async def waiting(ctx: Any) -> None:
        await trio.run_process(["no such program"])

    with pytest.raises(NotSimulated):
        check_tool(waiting, [{}])
