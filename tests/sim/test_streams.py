"""The streams of random numbers that the executions of an exploration draw from."""

from __future__ import annotations

import random
import uuid
from pathlib import Path

import pytest
import trio

from toolrt import sim


async def drawing() -> int:
    """Draw two dice, beside another task."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.lowlevel.checkpoint)
        nursery.start_soon(trio.lowlevel.checkpoint)
    return random.randrange(6) + random.randrange(6)


async def unlucky() -> None:
    """Fail when the dice show 10 and the second task stepped first."""
    order: list[int] = []

    async def step(number: int) -> None:  # noqa: ASYNC124  a task is one step
        order.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(2):
            nursery.start_soon(step, number)
    assert order == [0, 1] or random.randrange(6) + random.randrange(6) != 10


_SAMPLERS = [
    sim.Random(sim.RandomWalk(seed=1), 300),
    sim.Random(sim.Fifo(), 300),
    sim.Portfolio(300),
    sim.Guided(300),
    sim.Hybrid(600),
]


@pytest.mark.parametrize("strategy", _SAMPLERS, ids=repr)
def test_sampler_varies_the_stream(strategy: sim.Strategy) -> None:
    """Every execution of a sample has another pair of dice, and the claim says how many streams there were."""
    report = sim.explore(drawing, strategy, lambda execution: True)
    assert set(report.outcomes) == set(range(11))
    assert "streams of random numbers" in report.claim


@pytest.mark.parametrize("strategy", [sim.Exhaustive(), sim.DPOR(), sim.Bounded(1)], ids=repr)
@pytest.mark.parametrize("jobs", [1, 2])
def test_systematic_search_says_that_it_had_one_stream(strategy: sim.Strategy, jobs: int) -> None:
    """Its claim names the one stream where the program draws, and no stream where it does not."""
    report = sim.explore(drawing, strategy, jobs=jobs)
    assert report.verdict is sim.PASS
    assert len(report.outcomes) == 1
    assert report.claim.endswith(" with one stream of random numbers")
    assert "stream" not in sim.explore(trio.lowlevel.checkpoint, strategy, jobs=jobs).claim


@pytest.mark.parametrize("strategy", [sim.Random(sim.RandomWalk(seed=1), 300), sim.Portfolio(300)], ids=repr)
def test_failure_carries_its_stream(strategy: sim.Strategy) -> None:
    """A failure of some stream is replayed from its schedule in each form, shrinks, and is told with its stream."""
    report = sim.explore(unlucky, strategy)
    assert report.verdict is sim.FAIL
    failure = report.failures[0]
    assert failure.reproduced
    for schedule in (failure.schedule, failure.minimal):
        assert schedule.chance == failure.execution.chance != 0
        for text in (schedule, schedule.short, schedule.to_json()):
            again = sim.replay(unlucky, text)
            assert isinstance(again.error, AssertionError)
            assert again.schedule.short == schedule.short
        assert sim.Schedule.of(schedule.to_json()) == schedule
    assert f"chance={failure.schedule.chance}" in failure.explain()
    assert sim.explore(unlucky, sim.Random(sim.Replay(failure.minimal), 1)).verdict is sim.FAIL


def test_streams_do_not_depend_on_how_the_work_is_divided(tmp_path: Path) -> None:
    """Two jobs, and a checkpoint, find the outcomes and failures of one job."""
    one, *others = (
        sim.explore(unlucky, sim.Portfolio(300), jobs=jobs, checkpoint=checkpoint)
        for jobs, checkpoint in ((1, None), (2, None), (1, tmp_path / "kept"))
    )
    for other in others:
        assert (other.claim, other.outcomes, other.distinct) == (one.claim, one.outcomes, one.distinct)
        assert [each.schedule.short for each in other.failures] == [each.schedule.short for each in one.failures]


def test_stream_that_the_program_seeds_is_no_choice() -> None:
    """A program that seeds the generator draws from its own stream: schedules and claims have none."""

    async def program() -> tuple[float, str]:  # noqa: ASYNC124  one step
        random.seed(7)
        return random.random(), random.Random(3).random().hex()

    report = sim.explore(program, sim.Portfolio(20))
    assert len(report.outcomes) == 1
    assert "stream" not in report.claim


def test_streams_reach_what_begins_before_the_first_choice() -> None:
    """A program whose first step draws how many tasks it has is controlled, under every stream."""

    async def program() -> str:
        async with trio.open_nursery() as nursery:
            for _ in range(uuid.uuid4().int % 3):
                nursery.start_soon(trio.lowlevel.checkpoint)
        return "done"

    assert sim.explore(program, sim.Portfolio(100)).verdict is sim.PASS
