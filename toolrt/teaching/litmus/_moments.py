"""Programs with a temporal check: what holds after every step, after some step, or at an end."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any

import trio
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.sim.exploring._temporal import TemporalCheck, observing
from toolrt.teaching.litmus._litmus import Entry, gallery, together

#: What a program shares with the predicate that is asked after its steps.
_Shared = dict[str, Any]


def _asked(
    kind: Callable[[Callable[[], Any]], TemporalCheck],
    program: Callable[[_Shared], Awaitable[object]],
    predicate: Callable[[_Shared], bool],
) -> Entry:
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

    return functools.wraps(program)(observing(fresh, check)), {"read": read}


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

    await together((say, "yes"), (say, "no"))


#: Programs with a temporal check.
MOMENTS = gallery(
    always_whole=_asked(sim.always, _transfer, _nothing_is_gone),
    always_whole_at_once=_asked(sim.always, _transfer_at_once, _nothing_is_gone),
    eventually_met=_asked(sim.eventually, _visits, _both_inside),
    eventually_met_waiting=_asked(sim.eventually, _visits_that_wait, _both_inside),
    reachable_both=_asked(sim.reachable, _visits, _both_inside),
    reachable_in_turn=_asked(sim.reachable, _visits_in_turn, _both_inside),
    sometimes_last=_asked(sim.sometimes, _last_word, lambda shared: bool(shared) and shared["said"].get() == "no"),
)
