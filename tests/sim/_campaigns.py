"""Programs that other processes import, and one that kills its worker once."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import trio
from trio.lowlevel import checkpoint

from toolrt import sim

#: Names a file; the first worker that finds none makes it and is killed.
KILLED = "TOOLRT_TEST_KILLED"


async def lost_update() -> int:
    """Three tasks add one, twice: many schedules and many traces, and a bug."""
    cell = sim.Cell(0, "x")

    async def add() -> None:
        for _ in range(2):
            seen = cell.get()
            await checkpoint()
            cell.set(seen + 1)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(add)
    return cell.get()


async def arrivals(tasks: int = 3) -> tuple[int, ...]:
    """Tasks of two steps in every order: three have 90 schedules, four 2,520."""
    order: list[int] = []

    async def arrive(number: int) -> None:
        await checkpoint()
        order.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(tasks):
            nursery.start_soon(arrive, number)
    return tuple(order)


async def four_arrivals() -> tuple[int, ...]:
    """2,520 schedules."""
    return await arrivals(4)


async def killed_once() -> tuple[int, ...]:
    """As `arrivals`; one worker process is killed in the midst."""
    order = await arrivals()
    if order == (2, 0, 1) and multiprocessing.parent_process() is not None and _is_first():
        os.kill(os.getpid(), signal.SIGKILL)
    return order


def _is_first() -> bool:
    flag = Path(os.environ[KILLED])
    if flag.exists():
        return False
    flag.touch()
    return True


async def always_killed() -> None:
    """Every worker that runs it is killed."""
    await arrivals()
    if multiprocessing.parent_process() is not None:
        os.kill(os.getpid(), signal.SIGKILL)


def keeps_all(execution: sim.Execution) -> bool:
    """Say whether no update was lost."""
    return bool(execution.value == 6)


def fine(execution: sim.Execution) -> bool:
    """Say that all is well."""
    return True
