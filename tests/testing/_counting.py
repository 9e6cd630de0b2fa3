"""A count that loses an update, and settings of Hypothesis, for the tests of explored tests."""

from __future__ import annotations

from typing import Any

import trio
from hypothesis import HealthCheck, settings

from toolrt import sim

QUICK = settings(max_examples=30, database=None, suppress_health_check=[HealthCheck.differing_executors])


async def bump(cell: sim.Cell[int]) -> None:
    """Lose an update, if another task comes between."""
    seen = cell.get()
    await trio.lowlevel.checkpoint()
    cell.set(seen + 1)


async def count(tasks: int) -> int:
    """Count in so many tasks."""
    cell = sim.Cell(0, name="counter")
    async with trio.open_nursery() as nursery:
        for _ in range(tasks):
            nursery.start_soon(bump, cell)
    return cell.get()


class settings_of:  # noqa: N801  used like a function
    """Have Hypothesis' default settings name a database."""

    def __init__(self, database: Any) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._before = settings.get_current_profile_name()
        settings.register_profile("toolrt-test", settings(database=self._database))
        settings.load_profile("toolrt-test")

    def __exit__(self, *_: object) -> None:
        settings.load_profile(self._before)
