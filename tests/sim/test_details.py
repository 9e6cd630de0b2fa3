"""What is kept of steps and accesses when somebody asks for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from toolrt import sim


async def lost_update() -> int:
    cell = sim.Cell(0, name="x")

    async def add() -> None:
        seen = cell.get()
        await trio.lowlevel.checkpoint()
        cell.set(seen + 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add)
        nursery.start_soon(add)
    return cell.get()


def test_details_say_line_and_value_of_each_access() -> None:
    """Each access has its line, and what the cell held when it was read or was given."""
    trace = sim.run(lost_update, sim.Choices(), details=True).trace
    told = [
        (trace.steps[step].task, write, line, value)
        for step, _, write, where, line, value in trace.notes["details"]["accesses"]
        if where.startswith("test_details.py:")
    ]
    assert told == [
        ("main.0", False, "seen = cell.get()", "0"),
        ("main.0", True, "cell.set(seen + 1)", "1"),
        ("main.1", False, "seen = cell.get()", "1"),
        ("main.1", True, "cell.set(seen + 1)", "2"),
        ("main", False, "return cell.get()", "2"),
    ]


def test_details_of_watched_things_have_values() -> None:
    """An attribute and a key that are written are shown with what was written."""

    class Shared:
        count = 0

    async def program() -> None:
        shared, stock = sim.watch(Shared(), "shared"), sim.watch({"a": 1}, "stock")
        shared.count = 3
        stock["a"] = 7
        await trio.lowlevel.checkpoint()

    accesses = sim.run(program, details=True).trace.notes["details"]["accesses"]
    values = {(tuple(resource), write): value for _, resource, write, _, _, value in accesses}
    assert values[("watched", "shared", "count"), True] == "3"
    assert values[("watched", "stock", "key", "a"), True] == "7"


def test_details_change_nothing_else() -> None:
    """Steps, events and the way it ends are the same; without details there are no notes."""
    without, with_them = sim.run(lost_update), sim.run(lost_update, details=True)
    assert without.trace.notes == {}
    assert (without.trace.steps, without.trace.meta) == (with_them.trace.steps, with_them.trace.meta)
    again = sim.replay(lost_update, without.schedule, details=True)
    assert again.trace.notes == with_them.trace.notes


def test_long_value_is_cut() -> None:
    """A value of any size takes a bounded place."""

    async def program() -> None:
        sim.Cell("", name="x").set("a" * 10_000)
        await trio.lowlevel.checkpoint()

    ((_, _, _, _, _, value),) = sim.run(program, details=True).trace.notes["details"]["accesses"]
    assert len(value) < 250
    assert value.endswith("...")


def test_compared_gives_the_minimal_failure_and_what_passes() -> None:
    """A failure has the pair of traces that a page shows side by side, both with details."""
    report = sim.explore(lost_update, sim.DPOR(), lambda execution: execution.value == 2)
    failing, passing = report.failures[0].compared
    assert tuple(step.task for step in failing.steps) == report.failures[0].minimal.tasks
    assert passing is not None
    assert failing.notes["details"]["accesses"][-1][-1] == "1"
    assert passing.notes["details"]["accesses"][-1][-1] == "2"


def test_compared_has_nothing_beside_what_always_fails() -> None:
    """Where no schedule passes there is nothing to hold it against."""
    report = sim.explore(lost_update, sim.DPOR(), lambda execution: False)
    assert report.failures[0].compared[1] is None


def test_explanation_has_the_names_of_functions_and_variables() -> None:
    """A column names the task's function, an access the variable; what two things are called is their number."""

    class Account:
        def __init__(self) -> None:
            self.lock = trio.Lock()

    async def withdraw(account: Account, money: sim.Cell[int]) -> None:
        if money.get() >= 10:
            async with account.lock:
                money.set(money.get() - 10)

    async def program() -> int:
        account, money = Account(), sim.Cell(10, name="money")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(withdraw, account, money)
            nursery.start_soon(withdraw, account, money)
        return money.get()

    report = sim.explore(program, sim.DPOR(), lambda execution: execution.value == 0)
    told = report.failures[0].explain()
    assert "main.0 withdraw" in told
    assert "main.1 withdraw" in told
    assert "acquires Lock account.lock" in told
    assert report.failures[0].minimal.short in told


def test_explanation_keeps_the_number_of_what_shares_a_name() -> None:
    """Two locks that a function calls the same have different numbers."""

    async def use(lock: trio.Lock) -> None:
        async with lock:
            await trio.lowlevel.checkpoint()

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(use, trio.Lock())
            nursery.start_soon(use, trio.Lock())

    report = sim.explore(program, sim.Random(sim.Fifo(), 1), lambda execution: False)
    told = report.failures[0].explain()
    assert "acquires Lock lock 1" in told
    assert "acquires Lock lock 2" in told


_COUNT = 0


async def _counts() -> int:
    global _COUNT
    _COUNT = 0

    async def add() -> None:
        global _COUNT
        seen = _COUNT
        await trio.lowlevel.checkpoint()
        _COUNT = seen + 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add)
        nursery.start_soon(add)
    return _COUNT


class _Pool:
    def __init__(self) -> None:
        self.free = ["c"]

    async def take(self) -> str:
        if self.free:
            await trio.lowlevel.checkpoint()
            return self.free.pop()
        return "none"


async def _takes() -> None:
    pool = _Pool()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pool.take)
        nursery.start_soon(pool.take)


def _told(program: Callable[[], Awaitable[Any]], check: Any = None) -> list[str]:
    failure = sim.explore(program, sim.DPOR(), check, track=True).failures[0]
    details = failure.compared[0].notes["details"]["told"]
    return [part for parts in details.values() for part in parts]


def test_global_is_told_with_what_it_held_before() -> None:
    """A binding is reported when it has been made: the old value is the one last seen."""
    told = _told(_counts, lambda execution: execution.value == 2)
    name = f"{__name__}._COUNT"
    assert [part for part in told if name in part] == [
        f"writes {name} = 0",
        f"reads {name} = 0",
        f"reads {name} = 0",
        f"writes {name} 0 -> 1",
        f"writes {name} 1 -> 1",
        f"reads {name} = 1",
    ]


def test_attribute_and_the_list_that_it_holds_have_one_name() -> None:
    """A step names them once: with what it reads of them, or with what it writes."""
    told = [part for part in _told(_takes) if "pool.free" in part]
    assert told == [
        "writes pool.free = ['c']",
        "reads pool.free = ['c']",
        "reads pool.free = ['c']",
        "writes pool.free ['c'] -> []",
        "writes pool.free [] -> []",
    ]


class _Proxy:
    """It stands for something that is not there yet: to ask it for anything is an error."""

    def __getattribute__(self, name: str) -> Any:
        raise LookupError(name)


def test_names_are_looked_for_without_code_of_the_program() -> None:
    """The recorder asks no proxy in a variable and copies no large dict, and still names what the steps do."""

    async def program() -> int:
        proxy, large, box = _Proxy(), dict.fromkeys(map(str, range(10_000)), 0), {"n": 0}

        async def add() -> None:
            seen = box["n"]
            await trio.lowlevel.checkpoint()
            box["n"] = seen + 1 if proxy is not None and large else 0

        async with trio.open_nursery() as nursery:
            nursery.start_soon(add)
            nursery.start_soon(add)
        return box["n"]

    assert "writes box['n'] 1 -> 1" in _told(program, lambda execution: execution.value == 2)
