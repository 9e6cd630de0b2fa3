"""What a program drops ends where it would in a plain run, also where tracking looks at its steps."""

from __future__ import annotations

import sys
import weakref
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import pytest
import trio
import trio.testing
from trio.lowlevel import checkpoint

from toolrt import sim

_HERE = __name__


class Noted:
    """Notes in which task it ends."""

    def __init__(self, ends: list[str]) -> None:
        self.ends = ends

    def __del__(self) -> None:
        try:
            self.ends.append(trio.lowlevel.current_task().name)
        except RuntimeError:
            self.ends.append("between two steps")


async def drops_an_object() -> list[str]:
    """Drop an object in the middle of a step."""
    ends: list[str] = []
    noted = Noted(ends)
    del noted
    return [*ends]


async def drops_a_generator() -> list[str]:
    """Drop a generator that is half iterated."""
    ends: list[str] = []

    def numbers() -> Generator[int]:
        try:
            yield 1
        finally:
            ends.append(trio.lowlevel.current_task().name)

    half = numbers()
    next(half)
    del half
    return [*ends]


async def drops_an_async_generator() -> list[str]:
    """Drop an async generator, which Trio closes in a system task, before it is idle."""
    ends: list[str] = []

    async def numbers() -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            ends.append("closed")

    async def child() -> None:
        half = numbers()
        await half.asend(None)  # type: ignore[arg-type]
        del half

    async with trio.open_nursery() as nursery:
        nursery.start_soon(child)
    await trio.testing.wait_all_tasks_blocked()
    return [*ends]


async def drops_in_a_circle() -> list[str]:
    """Hand things to calls in a loop whose steps may be looked at instruction by instruction."""
    ends: list[str] = []

    def takes(noted: Noted) -> bool:
        return noted.ends is ends

    async def awaits(noted: Noted) -> bool:
        return noted.ends is ends

    while len(ends) < 9:
        await trio.lowlevel.checkpoint()
        takes(Noted(ends))
        await awaits(Noted(ends))
    return [*ends]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("track", [False, [_HERE]])
@pytest.mark.parametrize(
    "program",
    [drops_an_object, drops_a_generator, drops_an_async_generator, drops_in_a_circle],
    ids=lambda p: p.__name__,
)
def test_dropped_thing_ends_in_the_step_that_drops_it(program: Callable[[], Any], track: Any) -> None:
    """Its finaliser runs in the same task as in a plain run, and an async generator is closed as soon."""
    plain = trio.run(program)
    execution = sim.run(program, track=track)
    assert execution.error is None
    assert len(execution.value) == len(plain)
    assert "between two steps" not in execution.value


class Closes:
    """Says that it has ended; nothing refers to it weakly."""

    __slots__ = ("ends",)

    def __init__(self, ends: list[int]) -> None:
        self.ends = ends

    def __del__(self) -> None:
        self.ends.append(1)


class _Named:
    pass


async def _by_itself(ends: list[int]) -> None:
    closes = Closes(ends)
    await trio.lowlevel.checkpoint()
    del closes
    await trio.lowlevel.checkpoint()


async def _in_a_list(ends: list[int]) -> None:
    closes = [Closes(ends)]
    await trio.lowlevel.checkpoint()
    for _ in closes:
        pass
    del closes, _
    await trio.lowlevel.checkpoint()


async def _in_a_shared_variable(ends: list[int]) -> None:
    async def inner() -> None:
        closes = Closes(ends)

        def takes() -> Any:
            return closes

        takes()
        await trio.lowlevel.checkpoint()

    await inner()
    await trio.lowlevel.checkpoint()


async def _in_a_weak_dictionary(ends: list[int]) -> None:
    found: weakref.WeakValueDictionary[str, _Named] = weakref.WeakValueDictionary()
    named = found["it"] = _Named()
    await trio.lowlevel.checkpoint()
    del named
    await trio.lowlevel.checkpoint()
    if "it" not in found:
        ends.append(1)


@pytest.mark.parametrize("holds", [_by_itself, _in_a_list, _in_a_shared_variable, _in_a_weak_dictionary])
def test_tracking_keeps_nothing_alive(holds: Callable[[list[int]], Any]) -> None:
    """What another task sees of an end is explored, as without tracking."""

    async def program() -> int:
        ends: list[int] = []
        seen: list[int] = []

        async def looks() -> None:
            await trio.lowlevel.checkpoint()
            seen.append(len(ends))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(holds, ends)
            nursery.start_soon(looks)
        return seen[0]

    plain = sim.explore(program, sim.Exhaustive())
    tracked = sim.explore(program, sim.DPOR(), track=[_HERE])
    assert plain.verdict is tracked.verdict is sim.PASS
    assert set(tracked.outcomes) == set(plain.outcomes) == {0, 1}


async def _holders() -> int:
    shared: list[int] = []

    async def use() -> None:
        await checkpoint()
        shared.append(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(use)
        nursery.start_soon(use)
    return sys.getrefcount(shared)


@pytest.mark.parametrize("strategy", [sim.DPOR(), sim.Random(sim.RandomWalk(0), 5)], ids=["reduced", "sampled"])
def test_outcome_that_tracking_changes_is_told(strategy: sim.Strategy) -> None:
    """Tracking holds what a program counts the holders of, so some schedules are run without, and compared."""
    report = sim.explore(_holders, strategy, track=True)
    assert report.verdict is sim.INCONCLUSIVE
    assert "tracking changes what the program does; explore it with track=False" in str(report)
    assert sim.explore(_holders, strategy, track=False).verdict is sim.PASS
