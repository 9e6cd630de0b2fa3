"""Each item of a list and each key of a dict is a variable of its own, and what changes all of them meets each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from toolrt import sim

Program = Callable[[], Awaitable[Any]]


async def _two(task: Callable[[int], Awaitable[None]]) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(task, 1)
        nursery.start_soon(task, 2)


async def own_items() -> list[int]:
    results = [0, 0]

    async def put(me: int) -> None:
        await trio.lowlevel.checkpoint()
        results[me - 1] = me
        await trio.lowlevel.checkpoint()
        results[me - 1] += 1

    await _two(put)
    return results


async def own_keys() -> dict[int, list[int]]:
    results: dict[int, list[int]] = defaultdict(list, {1: [], 2: []})

    async def put(me: int) -> None:
        await trio.lowlevel.checkpoint()
        results[me].append(me)
        await trio.lowlevel.checkpoint()
        results[me] = [*results[me], 0]

    await _two(put)
    return dict(results)


@pytest.mark.parametrize("program", [own_items, own_keys])
def test_items_and_keys_are_variables_of_their_own(program: Program) -> None:
    report = sim.explore(program, sim.DPOR(), track=True)
    assert (report.verdict, report.executions) == ("PASS", 1)


def test_items_of_their_own_are_no_doubt() -> None:
    async def program() -> list[int]:
        results = [0, 0]
        cells = [sim.Cell(0), sim.Cell(0)]

        async def put(me: int) -> None:
            await trio.lowlevel.checkpoint()
            results[me - 1] = me
            cells[me - 1].set(me)

        await _two(put)
        return results

    assert sim.explore(program, sim.DPOR()).verdict == "PASS"


_grows: list[int] = []


def test_list_that_grows_from_one_execution_to_the_next_is_no_doubt() -> None:
    async def program() -> int:
        _grows.append(1)
        await trio.lowlevel.checkpoint()
        return _grows.count(2)

    report = sim.explore(program, sim.Random(sim.RandomWalk(0), 3), track=True)
    assert report.verdict is sim.PASS
