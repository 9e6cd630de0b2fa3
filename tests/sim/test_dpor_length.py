"""What the reduction costs a step does not depend on how long an execution is."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.sim.strategies import dpor
from toolrt.sim.strategies.dpor import _tree

Program = Callable[[], Awaitable[Any]]


def _pipe(steps: int) -> Program:
    """Two tasks that take turns: nearly every step is in a race with the one before."""

    async def program() -> None:
        send, receive = trio.open_memory_channel[int](1)

        async def fill() -> None:
            async with send:
                for number in range(steps // 3):
                    await send.send(number)

        async def drain() -> None:
            async for _ in receive:
                pass

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fill)
            nursery.start_soon(drain)

    return program


def _readers(steps: int) -> Program:
    """Two tasks that read one cell over and over; a third writes it at the end."""

    async def program() -> None:
        cell = sim.Cell(0)

        async def read() -> None:
            for _ in range(steps // 2):
                cell.get()
                await checkpoint()

        async def write() -> None:
            cell.set(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            nursery.start_soon(read)
            nursery.start_soon(write)

    return program


def _lines_a_step(program: Program, executions: int) -> float:
    """Give how many lines of the reduction's code run for each step."""
    folder, lines, steps = str(Path(dpor.__file__).parent), 0, 0
    ours: dict[CodeType, bool] = {}

    def within(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return within

    def enter(frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        if code not in ours:
            ours[code] = code.co_filename.startswith(folder)
        return within if ours[code] else None

    def count(execution: sim.Execution) -> bool:
        nonlocal steps
        steps += len(execution.choices)
        return True

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        sim.explore(program, sim.DPOR(samples=0), count, executions)
    finally:
        sys.settrace(before)
    return lines / steps


@pytest.mark.parametrize("make", [_pipe, _readers])
def test_a_step_of_a_long_execution_costs_what_one_of_a_short_one_does(make: Callable[[int], Program]) -> None:
    """The reduction runs no more lines for each step when an execution is eight times as long."""
    assert _lines_a_step(make(1_600), 1) < 1.1 * _lines_a_step(make(200), 1)


def _family() -> Program:
    """Races over a cell, a lock, a failing child and a deadline."""

    async def program() -> tuple[int, bool]:
        cell, lock = sim.Cell(0), trio.Lock()

        async def add() -> None:
            async with lock:
                seen = cell.get()
            await checkpoint()
            cell.set(seen + 1)

        async def hurry() -> None:
            await trio.sleep(1)
            cell.set(7)

        with trio.move_on_after(1) as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(add)
                nursery.start_soon(add)
                nursery.start_soon(hurry)
        return cell.get(), scope.cancelled_caught

    return program


@pytest.mark.parametrize("ways", [{}, {"clock": "explored"}, {"cancel_at": "any"}])
@pytest.mark.parametrize("make", [lambda: _pipe(12), _family])
def test_when_a_race_is_planned_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], Program], ways: dict[str, Any]
) -> None:
    """The same executions come in the same order, whether a race is planned at once or when its place is reached."""

    def explored() -> tuple[str, list[tuple[int, ...]]]:
        seen: list[tuple[int, ...]] = []
        report = sim.explore(make(), sim.DPOR(), lambda execution: seen.append(execution.choices), 60, **ways)
        return report.claim, seen

    at_once = explored()
    monkeypatch.setattr(_tree, "_NEAR", 0)
    for most in (1, 3, 10_000):
        monkeypatch.setattr(_tree, "_MOST_ASKED", most)
        assert explored() == at_once
