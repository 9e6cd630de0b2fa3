"""Random numbers and clocks of the standard library are the execution's."""

from __future__ import annotations

import datetime
import os
import random
import secrets
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from random import choice
from typing import Any

import pytest
import trio

from toolrt import sim
from toolrt.errors import DefinitionRefused, NotSimulated

ASKED: dict[str, Callable[[], Any]] = {
    "random.random": lambda: random.random(),
    "random.gauss": lambda: random.gauss(0, 1),
    "random.randbytes": lambda: random.randbytes(8),
    "choice, imported before": lambda: choice(range(1_000_000)),
    "random.Random()": lambda: random.Random().random(),
    "random.SystemRandom": lambda: random.SystemRandom().random(),
    "random.seed()": lambda: (random.seed(), random.random()),
    "secrets.token_hex": secrets.token_hex,
    "os.urandom": lambda: os.urandom(8),
    "uuid.uuid1": uuid.uuid1,
    "uuid.uuid4": uuid.uuid4,
    "time.time": lambda: time.time(),
    "time.time_ns": lambda: time.time_ns(),
    "time.monotonic": lambda: time.monotonic(),
    "time.perf_counter_ns": lambda: time.perf_counter_ns(),
    "time.localtime": lambda: time.localtime(),
    "time.ctime": lambda: time.ctime(),
    "datetime.now": lambda: datetime.datetime.now(),
    "datetime.now of a zone": lambda: datetime.datetime.now(datetime.UTC),
    "date.today": lambda: datetime.date.today(),
}


@pytest.mark.parametrize("name", ASKED)
def test_decided_alike_in_every_execution(name: str) -> None:
    """Two executions, and two simulations, get the same answers; an answer changes within an execution as it would."""

    async def program() -> tuple[str, str]:
        told = str(ASKED[name]())
        await trio.sleep(0.5)
        return told, str(ASKED[name]())

    report = sim.explore(program, sim.Exhaustive())
    assert report.verdict is sim.PASS
    assert list(report.outcomes) == [sim.run(program).value]


@pytest.mark.parametrize("name", [name for name in ASKED if "today" not in name and "ctime" not in name])
def test_decided_numbers_are_the_machines_elsewhere(name: str) -> None:
    """Before, in a check and afterwards the answers are real."""

    async def program() -> str:
        return str(ASKED[name]())

    real = []
    report = sim.explore(
        program, sim.Random(sim.RandomWalk(seed=1), 2), lambda execution: real.append(str(ASKED[name]()))
    )
    assert not report.failures
    assert sim.run(program).value not in {*real, str(ASKED[name]())}


def test_decided_clocks_tell_virtual_time() -> None:
    """They move with Trio's clock, and `time.sleep` moves it."""

    async def program() -> None:
        began = time.monotonic(), time.time(), datetime.datetime.now(datetime.UTC), trio.current_time()
        await trio.sleep(90)
        time.sleep(10)  # noqa: ASYNC251
        assert time.monotonic() - began[0] == time.time() - began[1] == trio.current_time() - began[3] == 100
        assert datetime.datetime.now(datetime.UTC) - began[2] == datetime.timedelta(seconds=100)
        assert time.gmtime(0).tm_year == 1970, "a time that is given is not the time now"
        with pytest.raises(ValueError, match="non-negative"):
            time.sleep(-1)  # noqa: ASYNC251

    assert sim.run(program).error is None


def test_decided_sleep_that_blocks_makes_a_deadline_due() -> None:
    """What was to time out meanwhile does at the next checkpoint."""

    async def program() -> bool:
        with trio.move_on_after(5) as scope:
            time.sleep(6)  # noqa: ASYNC251
            await trio.lowlevel.checkpoint()
        return scope.cancelled_caught

    assert sim.run(program).value is True


def test_decided_seed_of_the_program_is_taken() -> None:
    """A program that seeds draws what Python gives for that seed, and can save and restore its state."""

    async def program() -> tuple[float, bool]:
        random.seed(7)
        state, first = random.getstate(), random.random()
        random.setstate(state)
        return first, random.random() == first

    assert sim.run(program).value == (random.Random(7).random(), True)


def test_decided_draws_are_ordered_by_a_reduction() -> None:
    """Which of two tasks draws first decides what each gets; a reduction tries both orders."""

    async def program() -> tuple[float, ...]:
        cells = [sim.Cell(0.0, name=name) for name in "ab"]

        async def draw(cell: sim.Cell[float]) -> None:
            await trio.lowlevel.checkpoint()
            cell.set(random.random())

        async with trio.open_nursery() as nursery:
            for cell in cells:
                nursery.start_soon(draw, cell)
        return tuple(cell.get() for cell in cells)

    every, reduced = sim.explore(program, sim.Exhaustive()), sim.explore(program, sim.DPOR())
    assert len(every.outcomes) == 2
    assert set(reduced.outcomes) == set(every.outcomes)
    assert reduced.complete


def test_decided_look_at_a_clock_is_ordered_with_its_moves() -> None:
    """Where time may move at any step, a reduction tries a look before and behind each move."""

    async def program() -> float:
        cell = sim.Cell(0.0, name="seen")

        async def look() -> None:
            await trio.lowlevel.checkpoint()
            cell.set(time.monotonic())
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(look)
            await trio.sleep(1)
        return cell.get()

    every = sim.explore(program, sim.Exhaustive(), clock="explored")
    reduced = sim.explore(program, sim.DPOR(), clock="explored")
    assert set(every.outcomes) == set(reduced.outcomes) == {0.0, 1.0}


@pytest.mark.seldom
@pytest.mark.process
def test_decided_alike_in_another_process() -> None:
    """A schedule found here gives the same there: neither the hash seed nor the process decides."""
    text = (
        "import random, uuid, time, trio\nfrom toolrt import sim\n"
        "async def program():\n    await trio.sleep(1)\n"
        "    return random.random(), str(uuid.uuid4()), str(uuid.uuid1())\n"
        "print(sim.run(program).value)"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", text], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
    assert b"Error" not in said.pop()


def test_decided_kinds_can_be_left_real() -> None:
    """A program that says so draws the machine's numbers, until its execution has ended."""

    async def program(*kinds: str) -> tuple[float, float]:
        sim.leave_real(*kinds)
        return random.random(), time.time()

    executions = [sim.run(lambda: program("random")).value for _ in range(2)]
    assert executions[0][0] != executions[1][0]
    assert executions[0][1] == executions[1][1]
    executions = [sim.run(lambda: program()).value for _ in range(2)]
    assert executions[0][1] != executions[1][1]

    async def next_program() -> float:
        return random.random()

    assert sim.run(next_program).value == sim.run(next_program).value


def test_decided_refuses_what_it_does_not_know() -> None:
    """The message says which kinds there are, and where to call it."""

    async def program() -> None:
        sim.leave_real("dice")

    error = sim.run(program).error
    assert isinstance(error, DefinitionRefused)
    assert "'dice'" in str(error)
    with pytest.raises(NotSimulated, match="in the program"):
        sim.leave_real()
