"""Which racing pairs came in which order, and sampling that prefers the orders that did not."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import sim


async def _two() -> list[int]:
    """One task writes a cell, the other reads it; a third touches another one."""
    cell, other = sim.Cell(0, name="x"), sim.Cell(0, name="y")
    seen: list[int] = []

    async def write() -> None:
        cell.set(1)

    async def read() -> None:
        seen.append(cell.get())

    async def apart() -> None:
        other.set(1)

    async with trio.open_nursery() as nursery:
        for task in (write, read, apart):
            nursery.start_soon(task)
    other.get()
    return seen


def test_pair_is_seen_in_each_order_that_came() -> None:
    """One execution has one order; all have both.  What a task's end orders is no race."""
    pairs = sim.PairCoverage()
    assert pairs.note(sim.run(_two)) == 1
    (pair,) = pairs.one_way
    assert (pair.first, pair.first_writes, pair.second, pair.second_writes) == ("main.0", True, "main.1", False)
    assert pairs.both == ()
    sim.explore(_two, sim.Exhaustive(), pairs.noting())
    assert (pairs.both, pairs.one_way) == ((pair,), ())
    assert pair.reversed.reversed == pair


def test_report_says_which_were_not_seen() -> None:
    """By task, step and resource."""
    report = sim.explore(_two, sim.Guided(1))
    assert report.pairs is not None
    assert "0 seen in both orders, 1 in one only (step 0 of main.0 wrote ('cell', 'x') before step 0 of main.1 " in str(
        report
    )
    assert sim.explore(_two, sim.Portfolio(1)).pairs is None


def test_noting_judges_as_the_check_does() -> None:
    """And says what it leaves out."""

    def check(execution: sim.Execution) -> bool:
        return execution.value == [1]

    check.leaves_out = ("nothing",)  # type: ignore[attr-defined]
    report = sim.explore(_two, sim.Exhaustive(), sim.PairCoverage().noting(check))
    assert (report.failed, report.leaves_out) == (sim.explore(_two, sim.Exhaustive(), check).failed, ("nothing",))


async def _late() -> bool:
    """The reader comes last of all only if it waits for sixty steps."""
    cell = sim.Cell(0, name="x")
    seen: list[int] = []

    async def count() -> None:
        for _ in range(60):
            cell.set(cell.get() + 1)
            await checkpoint()

    async def read() -> None:
        await checkpoint()
        seen.append(cell.get())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        nursery.start_soon(count)
    return bool(seen)


@pytest.mark.parametrize("seed", range(3))
def test_guided_sees_more_orders_than_the_sample_it_is_made_from(seed: int) -> None:
    """With as many executions."""
    guided = sim.explore(_late, sim.Guided(40, seed)).pairs
    sample = sim.PairCoverage()
    sim.explore(_late, sim.Portfolio(40, seed), sample.noting())
    assert guided is not None
    assert len(guided.both) > len(sample.both)


def test_guided_is_a_sample_of_its_size() -> None:
    """The same seed, the same executions; and it ends although a pair stays one-way."""

    async def one_way() -> None:
        cell, event = sim.Cell(0, name="x"), trio.Event()

        async def first() -> None:
            cell.set(1)
            event.set()

        async def second() -> None:
            await event.wait()
            cell.get()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(first)
            nursery.start_soon(second)

    report = sim.explore(one_way, sim.Guided(50))
    assert (report.verdict, report.executions) == (sim.PASS, 50)
    assert report.claim.startswith("sampled(n=50, distinct=")

    def choices() -> list[Any]:
        seen: list[Any] = []
        sim.explore(_late, sim.Guided(30, 4), lambda each: bool(seen.append(each.choices) or True))
        return seen

    assert choices() == choices()
