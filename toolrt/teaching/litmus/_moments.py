"""Programs with a temporal check: what holds after every step, after some step, or at an end."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any

import trio
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.sim.exploring._temporal import TemporalCheck, observing
from toolrt.teaching.litmus._litmus import Count, Litmus, together

#: What a program shares with the predicate that is asked after its steps.
_Shared = dict[str, Any]


def _asked(
    name: str,
    story: str,
    kind: Callable[[Callable[[], Any]], TemporalCheck],
    program: Callable[[_Shared], Awaitable[object]],
    predicate: Callable[[_Shared], bool],
    **stated: Any,
) -> Litmus:
    """Make a program whose outcome is what a temporal check says of it, of one execution at a time."""
    shared: _Shared = {}
    check = kind(lambda: predicate(shared))

    @functools.wraps(program)
    async def fresh() -> None:
        shared.clear()
        await program(shared)

    def read(execution: sim.Execution) -> str:
        check.met = False
        complaint = check(execution)
        if execution.error is not None:
            return type(execution.error).__name__
        if check.kind in ("always", "eventually"):
            return "does not hold" if complaint else "holds"
        return "reached" if check.met else "not reached"

    return Litmus(name, story, functools.wraps(program)(observing(fresh, check)), read=read, **stated)


def _both_inside(shared: _Shared) -> bool:
    return bool(shared) and shared["inside"].get() == 2


def _nothing_is_gone(shared: _Shared) -> bool:
    return not shared or shared["here"].get() + shared["there"].get() == 1


async def _transfer(shared: _Shared) -> None:
    here, there = shared["here"], shared["there"] = sim.Cell(1, name="here"), sim.Cell(0, name="there")

    async def move() -> None:
        here.set(0)
        await checkpoint()
        there.set(1)

    await together(move, checkpoint)


async def _transfer_at_once(shared: _Shared) -> None:
    here, there = shared["here"], shared["there"] = sim.Cell(1, name="here"), sim.Cell(0, name="there")

    async def move() -> None:  # noqa: ASYNC124  a task is one step
        here.set(0)
        there.set(1)

    await together(move, checkpoint)


async def _visits(shared: _Shared) -> None:
    inside = shared["inside"] = sim.Cell(0, name="inside")

    async def visit() -> None:
        inside.set(inside.get() + 1)
        await checkpoint()
        inside.set(inside.get() - 1)

    await together(visit, visit)


async def _visits_that_wait(shared: _Shared) -> None:
    inside, both = sim.Cell(0, name="inside"), trio.Event()
    shared["inside"] = inside

    async def visit() -> None:
        inside.set(inside.get() + 1)
        if inside.get() == 2:
            both.set()
        await both.wait()
        inside.set(inside.get() - 1)

    await together(visit, visit)


async def _visits_in_turn(shared: _Shared) -> None:
    inside, door = sim.Cell(0, name="inside"), trio.Lock()
    shared["inside"] = inside

    async def visit() -> None:
        async with door:
            inside.set(inside.get() + 1)
            await checkpoint()
            inside.set(inside.get() - 1)

    await together(visit, visit)


async def _last_word(shared: _Shared) -> None:
    said = shared["said"] = sim.Cell("", name="said")

    async def say(word: str) -> None:  # noqa: ASYNC124  a task is one step
        said.set(word)

    await together(lambda: say("yes"), lambda: say("no"))


MOMENTS = (
    _asked(
        "always_whole",
        "Something is moved in two steps. In the end all is well in every schedule; `sim.always` asks after each step,"
        " and between the two it is in neither place.",
        sim.always,
        _transfer,
        _nothing_is_gone,
        right=(),
        wrong={"does not hold"},
        interleavings=Count(6),
        classes=Count(6),
    ),
    _asked(
        "always_whole_at_once",
        "The same in one step: it holds after every step.",
        sim.always,
        _transfer_at_once,
        _nothing_is_gone,
        right={"holds"},
        interleavings=Count(3),
        classes=Count(3),
    ),
    _asked(
        "eventually_met",
        "Two visitors enter a room, stay for a checkpoint and leave. `sim.eventually` says that at some time both are"
        " there; they may miss each other.",
        sim.eventually,
        _visits,
        _both_inside,
        right={"holds"},
        wrong={"does not hold"},
        interleavings=Count(6),
        classes=Count(6),
    ),
    _asked(
        "eventually_met_waiting",
        "The same where each waits for the other one: they meet in every schedule.",
        sim.eventually,
        _visits_that_wait,
        _both_inside,
        right={"holds"},
        interleavings=Count(4),
        classes=Count(4),
    ),
    _asked(
        "reachable_both",
        "Can both be in the room? `sim.reachable` is content with one step of one schedule, and so this room has no"
        " mutual exclusion.",
        sim.reachable,
        _visits,
        _both_inside,
        right={"not reached"},
        wrong={"reached"},
        interleavings=Count(6),
        classes=Count(6),
    ),
    _asked(
        "reachable_in_turn",
        "The same behind a lock: no step of any schedule has both inside.",
        sim.reachable,
        _visits_in_turn,
        _both_inside,
        right={"not reached"},
        interleavings=Count(6),
        classes=Count(4),
    ),
    _asked(
        "sometimes_last",
        "Two tasks have a word each. `sim.sometimes` looks at the end only, and `no` is the last word of one schedule.",
        sim.sometimes,
        _last_word,
        lambda shared: bool(shared) and shared["said"].get() == "no",
        right={"reached", "not reached"},
        interleavings=Count(2),
        classes=Count(2),
    ),
)
