"""Loops that poll the clock beside a pending deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import trio
from trio.lowlevel import checkpoint

from tests._profile import FULL
from toolrt import sim

# Each is true as long as a loop that began at the time `start` is to go on, up to two seconds after.
_POLLS: dict[str, Callable[[float], bool]] = {
    "time < end": lambda start: trio.current_time() < start + 2,
    "end > time": lambda start: start + 2 > trio.current_time(),
    "not time >= end": lambda start: not trio.current_time() >= start + 2,
    "time <= end": lambda start: trio.current_time() <= start + 2,
    "elapsed < 2": lambda start: trio.current_time() - start < 2,
    "left > 0": lambda start: start + 2 - trio.current_time() > 0,
    "left >= 0": lambda start: (start + 2) - trio.current_time() >= 0,
    "monotonic": lambda start: time.monotonic() < start + 2,
    "time.time": lambda start: time.time() - 1_000_000_000 < start + 2,
}


@pytest.mark.parametrize(("strategy", "order"), [(sim.DPOR(), "any"), (sim.Exhaustive(), "trio")], ids=repr)
@pytest.mark.parametrize("name", _POLLS if FULL else ["time < end", "not time >= end", "monotonic"])
def test_polling_loop_sees_the_time_it_waits_for(name: str, strategy: sim.Strategy, order: str) -> None:
    """It ends at that time, not at the deadline, whatever else waits."""
    ended: set[float] = set()

    async def program() -> None:
        await trio.sleep(0.1)
        start = trio.current_time()
        with trio.fail_after(5):
            while _POLLS[name](start):
                await checkpoint()
            ended.add(round(trio.current_time() - start, 6))
            await trio.sleep(2.5)

    assert sim.explore(program, strategy, order=order).verdict is sim.PASS
    assert ended == {2}


def test_two_polling_loops_end_at_their_times() -> None:
    """Each ends at its own, in the order of those."""

    async def program() -> tuple[float, ...]:
        ended: list[float] = []

        async def poll(end: float) -> None:
            while trio.current_time() < end:
                await checkpoint()
            ended.append(end)

        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                for end in (4.9, 1.5):
                    nursery.start_soon(poll, end)
        return tuple(ended)

    report = sim.explore(program, sim.Exhaustive())
    assert report.verdict is sim.PASS
    assert report.outcomes.keys() == {(1.5, 4.9)}


def test_polling_loop_that_comes_too_late_fails() -> None:
    """A time behind the deadline is no excuse."""

    async def program() -> None:
        with trio.fail_after(5):
            while trio.current_time() < 6:
                await checkpoint()

    assert sim.explore(program, sim.Exhaustive()).verdict is sim.FAIL


def test_polling_unseen_decides_no_failure() -> None:
    """Milliseconds are compared where no comparison is seen: the report says why that decides nothing."""

    async def program() -> None:
        end = trio.current_time() + 2
        with trio.fail_after(5):
            while trio.current_time() * 1_000 < end * 1_000:
                await checkpoint()

    report = sim.explore(program, sim.Exhaustive())
    assert report.verdict is sim.INCONCLUSIVE
    assert "a loop polled the clock" in next(iter(report.reasons))
