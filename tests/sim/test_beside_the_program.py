"""System tasks, nurseries they host, callbacks and ties of deadlines: actors like any other."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.lowlevel import checkpoint

from tests.sim._traces import count_traces, reduced
from toolrt import sim

Program = Callable[[], Awaitable[Any]]


async def refreshed() -> str:
    """A system task that changes what the program reads."""
    token = ["old"]

    async def refresh() -> None:
        await checkpoint()
        token[0] = "new"

    trio.lowlevel.spawn_system_task(refresh)
    await checkpoint()
    await checkpoint()
    return token[0]


async def hosted() -> str:
    """A nursery that a system task hosts."""
    seen, done = sim.Cell("", "seen"), trio.Event()

    async def child(name: str) -> None:
        seen.set(seen.get() + name)

    async def host() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child, "a")
            nursery.start_soon(child, "b")
        done.set()

    trio.lowlevel.spawn_system_task(host)
    await done.wait()
    return seen.get()


async def called_back() -> int:
    """A callback beside the task that gave it."""
    seen = [0]
    trio.lowlevel.current_trio_token().run_sync_soon(seen.append, 1)
    await checkpoint()
    return len(seen)


async def called_back_once() -> int:
    """An idempotent one."""
    seen = [0]
    trio.lowlevel.current_trio_token().run_sync_soon(seen.clear, idempotent=True)
    await checkpoint()
    return len(seen)


async def two_callbacks() -> str:
    """Callbacks that two tasks give: they are called in the order in which they were given."""
    seen, done = sim.Cell("", "seen"), trio.Event()
    token = trio.lowlevel.current_trio_token()

    def call(name: str) -> None:
        seen.set(seen.get() + name)
        if len(seen.get()) == 2:
            done.set()

    async def give(name: str) -> None:
        token.run_sync_soon(call, name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(give, "a")
        nursery.start_soon(give, "b")
        await done.wait()
    return seen.get()


async def spawned_by_a_callback() -> str:
    """A system task that a callback spawns."""
    seen, done = sim.Cell("", "seen"), trio.Event()

    async def late() -> None:
        seen.set(seen.get() + "late ")
        done.set()

    trio.lowlevel.current_trio_token().run_sync_soon(trio.lowlevel.spawn_system_task, late)
    await checkpoint()
    seen.set(seen.get() + "main ")
    await done.wait()
    return seen.get()


async def dropped_generator() -> int:
    """An async generator that is dropped: a callback spawns a system task that closes it."""
    closed = [0]

    async def numbers():  # type: ignore[no-untyped-def]
        try:
            yield 1
        finally:
            closed[0] = 1

    generator = numbers()
    await anext(generator)
    del generator
    await checkpoint()
    await checkpoint()
    return closed[0]


async def two_sleepers() -> str:
    """Two deadlines at one instant: either sleeper may be first."""
    seen = sim.Cell("", "seen")

    async def sleep(name: str) -> None:
        await trio.sleep(1)
        seen.set(seen.get() + name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sleep, "a")
        nursery.start_soon(sleep, "b")
    return seen.get()


#: Program, its outcomes under "any" and under "trio".
LISTED: dict[str, tuple[Program, set[Any], set[Any]]] = {
    "a system task": (refreshed, {"old", "new"}, {"old", "new"}),
    "a nursery in a system task": (hosted, {"ab", "ba"}, {"ab", "ba"}),
    "a callback": (called_back, {1, 2}, {1, 2}),
    "an idempotent callback": (called_back_once, {0, 1}, {0, 1}),
    "two callbacks": (two_callbacks, {"ab", "ba"}, {"ab", "ba"}),
    "a system task of a callback": (spawned_by_a_callback, {"main late ", "late main "}, {"main late "}),
    "a generator that is dropped": (dropped_generator, {0, 1}, {0, 1}),
    "two sleepers": (two_sleepers, {"ab", "ba"}, {"ab", "ba"}),
}


@pytest.mark.parametrize("order", ["any", "trio"])
@pytest.mark.parametrize("name", LISTED)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_both_outcomes_come(name: str, order: str) -> None:
    """Every schedule and the reduction find the same, one execution of each trace, and nothing ran beside."""
    program, some, trios = LISTED[name]
    counted = count_traces(program, order=order)
    report, search, outcomes = reduced(program, order=order)
    assert outcomes == counted.outcomes == {repr(value) for value in (some if order == "any" else trios)}
    assert (report.executions, search.passes) == (len(counted.traces), 1)
    assert report.verdict is sim.PASS
    assert report.complete
    for strategy in (sim.Portfolio(40), sim.Bounded(2)):
        assert sim.explore(program, strategy, lambda execution: True, order=order).verdict is sim.PASS


_REPLAY = """
import sys
from tests.sim import test_beside_the_program as listed
from toolrt import sim
for line in sys.stdin.read().splitlines():
    name, order, schedule = line.split("|")
    print(sim.replay(getattr(listed, name), schedule, order=order).trace.to_json())
"""


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_replays_are_the_same_in_another_process() -> None:
    """Byte for byte, in both orders."""
    lines, traces = [], []
    for program, _, _ in LISTED.values():
        for order in ("any", "trio"):
            for seed in range(3):
                execution = sim.run(program, sim.RandomWalk(seed), order=order)
                lines.append(f"{program.__name__}|{order}|{execution.schedule.short}")
                traces.append(execution.trace.to_json())
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _REPLAY],
        input="\n".join(lines),
        cwd=pathlib.Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == "\n".join(traces).splitlines(), done.stderr


@pytest.mark.parametrize("strategy", [sim.Exhaustive(), sim.DPOR()], ids=str)
def test_a_divided_search_finds_them(strategy: sim.Strategy, tmp_path: pathlib.Path) -> None:
    """With a checkpoint it is the same."""
    report = sim.explore(refreshed, strategy, lambda execution: True, checkpoint=tmp_path / "kept")
    assert report.verdict is sim.PASS
    assert report.outcomes == sim.explore(refreshed, strategy, lambda execution: True).outcomes


def test_actors_have_names() -> None:
    """A system task is named by the task that spawned it; callbacks are called by an actor of their own."""
    execution = sim.run(spawned_by_a_callback)
    assert set(execution.schedule.tasks) == {"main", "callbacks", "callbacks.0"}
    assert execution.schedule.steps[1].enabled == ("main", "callbacks")
    assert set(sim.run(hosted).schedule.tasks) == {"main", "main.0", "main.0.0", "main.0.1"}


def test_a_callback_may_come_too_late() -> None:
    """What the end of the program keeps from happening is no failure, and leaves nothing to the next execution."""
    ran: list[int] = []

    async def program() -> None:  # noqa: ASYNC124  a program is async
        trio.lowlevel.spawn_system_task(trio.sleep_forever)
        trio.lowlevel.current_trio_token().run_sync_soon(ran.append, 1)

    report = sim.explore(program, sim.Exhaustive())
    assert report.verdict is sim.PASS
    assert report.executions == 1
    assert ran
