"""What lies below a watched value is not watched: a step that reaches it may have done anything."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass
from typing import Any

import attrs
import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import sim


def _fine(execution: sim.Execution) -> bool:
    return True


class Box:
    """A user's object."""

    def __init__(self, value: Any) -> None:
        self.value = value


@attrs.frozen
class Frozen:
    """A value that holds something."""

    inner: Any


@dataclass(frozen=True)
class FrozenToo:
    """The same, by dataclasses."""

    inner: Any


def _get(holder: Any) -> int:
    return holder["n"]


def _put(holder: Any, value: int) -> None:
    holder["n"] = value


#: What is watched, and how a plain dict below it is reached.
BELOW = {
    "a dict in a dict": (lambda inner: {"users": inner}, lambda top: top["users"]),
    "a dict in a dict, by get": (lambda inner: {"users": inner}, lambda top: top.get("users")),
    "a dict in a dict, by setdefault": (lambda inner: {"users": inner}, lambda top: top.setdefault("users", {})),
    "a dict in a dict, by values": (lambda inner: {"users": inner}, lambda top: next(iter(top.values()))),
    "a dict in a dict, by items": (lambda inner: {"users": inner}, lambda top: dict(top.items())["users"]),
    "a dict in a list": (lambda inner: [inner], lambda top: top[0]),
    "a dict in a slice": (lambda inner: [inner], lambda top: top[:][0]),
    "a dict in an iteration": (lambda inner: [inner], lambda top: next(item for item in top)),
    "a dict in a copy": (lambda inner: [inner], lambda top: top.copy()[0]),
    "a dict in a deque": (lambda inner: deque([inner]), lambda top: top[-1]),
    "a dict in a tuple in a list": (lambda inner: [(1, inner)], lambda top: top[0][1]),
    "a dict in a frozen object": (lambda inner: [Frozen(inner)], lambda top: top[0].inner),
    "a dict in a frozen dataclass": (lambda inner: [FrozenToo(inner)], lambda top: top[0].inner),
    "an object in an attribute": (lambda inner: Box(Box(inner)), lambda top: top.value.value),
    "an attribute by __dict__": (lambda inner: Box(Box(inner)), lambda top: vars(top)["value"].value),
    "a dict in a list in an attribute": (lambda inner: Box([inner]), lambda top: top.value[0]),
    "a bound method": (lambda inner: {"get": inner.__getitem__, "d": 1}, lambda top: top["get"].__self__),
}


def _lost_update(wrap: Any, reach: Any, keeps: bool):
    """Two tasks that update what lies below, in steps that report something else besides."""

    async def program() -> int:
        plain = {"n": 0}
        top = sim.watch(wrap(plain), "top")

        async def add(number: int) -> None:
            own = sim.Cell(0, name=f"own {number}")
            own.set(1)
            inner = reach(top)
            await checkpoint()
            seen = _get(inner if keeps else reach(top))
            own.set(2)
            await checkpoint()
            _put(inner if keeps else reach(top), seen + 1)
            own.set(3)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(add, 0)
            nursery.start_soon(add, 1)
        return plain["n"]

    return program


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("name", BELOW)
def test_race_below_a_watched_value_is_found(name: str, keeps: bool) -> None:
    """The reduction has both outcomes, whether what lies below is reached anew or kept from an earlier step."""
    report = sim.explore(_lost_update(*BELOW[name], keeps), sim.DPOR(samples=0), _fine)
    assert set(report.outcomes) == {1, 2}
    assert report.complete


def _heap(change: Any, read: Any):
    async def program() -> str:
        heap = sim.watch([5, 7], "heap")
        seen: list[str] = []

        async def changes() -> None:
            own = sim.Cell(0, name="own")
            own.set(1)
            await checkpoint()
            own.set(2)
            change(heap)

        async def reads() -> None:
            other = sim.Cell(0, name="other")
            other.set(1)
            await checkpoint()
            other.set(2)
            seen.append(str(read(heap)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(changes)
            nursery.start_soon(reads)
        return seen[0]

    return program


@pytest.mark.parametrize(
    "change",
    [
        lambda heap: heapq.heappush(heap, 1),
        heapq.heappop,
        lambda heap: heapq.heapreplace(heap, 9),
        lambda heap: list.append(heap, 3),
        lambda heap: list.__setitem__(heap, 0, 3),
    ],
)
def test_change_by_c_code_is_seen(change: Any) -> None:
    """A list that is changed without its methods was changed by the step."""
    report = sim.explore(_heap(change, lambda heap: heap[0] + len(heap)), sim.DPOR(samples=0), _fine)
    assert len(report.outcomes) == 2


def test_two_pops_by_c_code_are_dependent() -> None:
    """Both steps change the heap, and neither calls a method of it."""
    report = sim.explore(_heap(heapq.heappop, heapq.heappop), sim.DPOR(samples=0), _fine)
    assert set(report.outcomes) == {"5", "7"}


def test_dict_and_set_too() -> None:
    """So is a dict whose other key was written by a method, and a set."""

    async def program() -> tuple[Any, ...]:
        mapping, group = sim.watch({"a": 0, "b": 0}, "mapping"), sim.watch(set(), "group")
        seen: list[Any] = []

        async def changes() -> None:
            mapping["a"] = 1
            await checkpoint()
            mapping["a"] = 2
            dict.__setitem__(mapping, "b", 1)
            set.add(group, 1)

        async def reads() -> None:
            seen.append(mapping["b"])
            await checkpoint()
            seen.append(len(group))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(changes)
            nursery.start_soon(reads)
        return tuple(seen)

    every = sim.explore(program, sim.Exhaustive(), _fine)
    assert set(sim.explore(program, sim.DPOR(samples=0), _fine).outcomes) == set(every.outcomes)


def test_watched_outside_the_program_too() -> None:
    """A list that is watched before the exploration is looked at in each execution."""
    heap = sim.watch([0], "heap")

    async def program() -> int:
        heap[:] = [5]
        seen: list[int] = []

        async def changes() -> None:
            cell = sim.Cell(0, name="own")
            cell.set(1)
            await checkpoint()
            cell.set(2)
            heapq.heappush(heap, 1)

        async def reads() -> None:
            await checkpoint()
            seen.append(heap[0])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(changes)
            nursery.start_soon(reads)
        return seen[0]

    assert set(sim.explore(program, sim.DPOR(samples=0), _fine).outcomes) == {1, 5}


def test_what_reports_for_itself_is_no_reason() -> None:
    """Values, watched things, cells and Trio's primitives below leave the reduction as it was."""

    class Account:
        def __init__(self) -> None:
            self.name, self.lock, self.items = "a", trio.Lock(), [1, "two", (3, None)]

    async def program() -> None:
        accounts = [sim.watch(Account(), name) for name in "ab"]

        async def work(account: Account) -> None:
            for _ in range(3):
                _ = account.name, account.lock, account.items[0], list(account.items)
                await checkpoint()
            account.name = "b"

        async with trio.open_nursery() as nursery:
            for account in accounts:
                nursery.start_soon(work, account)

    assert sim.explore(program, sim.DPOR(), _fine).claim == "exhaustive(traces=1)"


def test_lost_update_below_is_no_pass() -> None:
    """The example: a caught race stays caught when its dict is watched."""

    async def program() -> int:
        data = sim.watch({"users": {"n": 0}}, "data")

        async def add() -> None:
            seen = data["users"]["n"]
            await checkpoint()
            data["users"]["n"] = seen + 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(add)
            nursery.start_soon(add)
        return data["users"]["n"]

    for strategy in (sim.DPOR(), sim.DPOR(samples=0), sim.Exhaustive()):
        assert sim.explore(program, strategy, lambda execution: execution.value == 2).verdict is sim.FAIL
