"""What the reduction takes for one trace is run in the other order, and what the program can reach is compared."""

from __future__ import annotations

import sqlite3
from email.message import Message

import pytest
import trio
from trio.lowlevel import checkpoint

from tests.sim._programs import set_apart
from toolrt import sim


def _fine(execution: sim.Execution) -> bool:
    return True


async def _headers() -> int:
    """Two tasks add a header to one message of Python's own: the order of headers is in no outcome."""
    message = Message()

    async def add(name: str) -> None:
        cell = sim.Cell(0, name=name)
        cell.set(1)
        message[name] = name
        await checkpoint()
        cell.set(2)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add, "a")
        nursery.start_soon(add, "b")
    return len(message)


def test_steps_that_lead_to_another_state_depend_on_each_other() -> None:
    """The search goes on with them, and runs both orders, although no outcome differs."""
    report = sim.explore(_headers, sim.DPOR(), _fine)
    assert (report.verdict, report.claim, report.executions) == (sim.PASS, "exhaustive(traces<=2)", 3)


def test_search_that_cannot_go_on_is_called_reduced() -> None:
    """Workers do not begin again: the claim says that two steps are not what the reduction takes them for."""
    report = sim.explore(_headers, sim.DPOR(), _fine, jobs=2)
    assert report.verdict is sim.PASS
    assert report.claim.startswith("reduced(traces=1, ")
    assert report.claim.endswith("unlike=1)")


@pytest.mark.parametrize("strategy", [sim.DPOR(samples=0), sim.DPOR("declared")])
def test_who_wants_no_comparison_gets_none(strategy: sim.DPOR) -> None:
    """Without samples, and with the caller's word, traces are not turned."""
    assert sim.explore(_headers, strategy, _fine).claim.startswith("exhaustive(traces=1")


def test_claim_names_what_cannot_be_compared() -> None:
    """A connection of a compiled module is known by its type alone."""

    async def program() -> int:
        base = sqlite3.connect(":memory:")
        await set_apart()
        base.close()
        return 1

    assert sim.explore(program, sim.DPOR(), _fine).claim == "exhaustive(traces=1, unseen=['sqlite3.Connection'])"


def test_claim_names_the_share_of_pairs_whose_both_orders_were_run() -> None:
    """Eighty tasks that share nothing have more pairs than are looked at."""

    async def program() -> None:
        async def work() -> None:
            sim.Cell(0).set(1)

        async with trio.open_nursery() as nursery:
            for _ in range(80):
                nursery.start_soon(work)

    report = sim.explore(program, sim.DPOR(), _fine)
    assert (report.verdict, report.claim) == (sim.PASS, "exhaustive(traces=1, pairs=2016 of 2016 or more)")


@pytest.mark.parametrize("strategy", [sim.DPOR(), sim.Hybrid(60)])
@pytest.mark.parametrize("wrong", ["ab", "ba"])
@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("second", range(4))
def test_steps_that_share_in_one_trace_of_many_are_turned_there(
    first: int, second: int, wrong: str, strategy: sim.DPOR | sim.Hybrid
) -> None:
    """What a step knows decides which list it touches: the two share one list in one trace of sixteen."""

    async def program() -> str:
        turns = sim.Cell(0, name="turns")
        shared: list[str] = []

        async def count() -> None:
            for _ in range(3):
                turns.set(turns.get() + 1)
                await checkpoint()
            turns.get()

        async def append(name: str, when: int) -> None:
            own, cell = list[str](), sim.Cell(0, name=name)
            chosen = shared if turns.get() == when else own
            await checkpoint()
            cell.set(1)
            chosen.append(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(count)
            nursery.start_soon(append, "a", first)
            nursery.start_soon(append, "b", second)
        return "".join(shared)

    assert sim.explore(program, strategy, lambda execution: execution.value != wrong).verdict is not sim.PASS


class Hostile(dict[str, int]):
    """Raises wherever it is looked at."""

    __slots__ = ("kept",)

    def _refuse(self, *_: object) -> object:
        raise RuntimeError("it was called")

    __class__ = property(_refuse)  # type: ignore[assignment]
    __iter__ = __len__ = __getitem__ = items = keys = __repr__ = __eq__ = __getattribute__ = _refuse  # type: ignore


def test_comparison_calls_no_code_of_the_program() -> None:
    """Attributes and items are read below what a class has redefined."""

    async def program() -> int:
        hostile = Hostile(a=1)
        await set_apart()
        return dict.__len__(hostile)

    assert sim.explore(program, sim.DPOR(), _fine).claim == "exhaustive(traces=1)"
