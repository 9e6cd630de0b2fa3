"""Shapes of the programs by which frontrun is tested, written anew: their threads end here in all that plain runs do.

frontrun (github.com/lucaswiman/frontrun) steps threads opcode by opcode.  Here a thread hands over at each access of
tracked code, and the outcomes that are written beside each program are exactly those that are explored.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections import ChainMap, defaultdict, deque
from collections.abc import Awaitable, Callable, Generator
from functools import cached_property
from typing import Any

import pytest
import trio

from tests._profile import FULL
from tests.sim.test_threads_at_accesses import _in_threads, hasty
from toolrt import sim

__all__ = ["hasty"]


class _Sold:
    def __init__(self) -> None:
        self._count = 0

    @property
    def count(self) -> int:
        return self._count

    @count.setter
    def count(self, count: int) -> None:
        self._count = count


async def _property() -> int:
    """A property that two threads read and write."""
    sold = _Sold()

    def sell() -> None:
        sold.count += 1

    await _in_threads(sell, sell)
    return sold.count


class _Slotted:
    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


async def _slot() -> int:
    """The same in a slot, by name."""
    one = _Slotted()

    def add() -> None:
        setattr(one, "count", getattr(one, "count") + 1)  # noqa: B009, B010  the two built-in functions are the point

    await _in_threads(add, add)
    return one.count


async def _class_attribute() -> int:
    """The same in an attribute of a class, which each thread finds by its own object."""

    class Counted:
        made = 0

    def make() -> None:
        one = Counted()
        type(one).made = one.made + 1

    await _in_threads(make, make)
    return Counted.made


async def _default_item() -> int:
    """A key that is made as it is first read."""
    counts: defaultdict[str, int] = defaultdict(int)

    def add() -> None:
        counts["tea"] += 1

    await _in_threads(add, add)
    return counts["tea"]


async def _layers() -> tuple[int, int]:
    """The first write puts a key into the upper of two dicts, which hides that of the lower one."""
    upper: dict[str, int] = {}
    both = ChainMap(upper, {"tea": 10})

    def add() -> None:
        both["tea"] = both["tea"] + 1

    await _in_threads(add, add)
    return upper["tea"], both["tea"]


def _variable() -> tuple[Callable[[], None], Callable[[], int]]:
    count = 0

    def adders() -> Callable[[], None]:
        def add() -> None:
            nonlocal count
            count = count + 1

        return add

    return adders(), lambda: count


async def _nested_closure() -> int:
    """A variable two functions further out."""
    add, get = _variable()
    await _in_threads(add, add)
    return get()


async def _swapped() -> tuple[int, int]:
    """One swaps two attributes, and the other reads both."""
    pair = _Pair(1, 2)
    seen: list[tuple[int, int]] = []

    def swap() -> None:
        pair.left, pair.right = pair.right, pair.left

    def read() -> None:
        seen.append((pair.left, pair.right))

    await _in_threads(swap, read)
    return seen[0]


class _Pair:
    def __init__(self, left: int, right: int) -> None:
        self.left = left
        self.right = right


async def _text() -> str:
    """A text is made of a value that changes between its two places."""
    pair = _Pair(0, 0)
    made: list[str] = []

    def write() -> None:
        made.append(f"{pair.left}{pair.left}")

    def change() -> None:
        pair.left = 1

    await _in_threads(write, change)
    return made[0]


async def _chosen_by_flag() -> int:
    """The flag is read, and then the value that it stands for has changed."""
    pair, flags = _Pair(1, 2), [True]
    seen: list[int] = []

    def choose() -> None:
        seen.append(pair.left if flags[0] else pair.right)

    def change() -> None:
        flags[0] = False
        pair.left = -1

    await _in_threads(choose, change)
    return seen[0]


async def _looked_and_popped() -> tuple[int, int]:
    """Both see that something is there, and one finds nothing: so many items were got, and so many errors."""
    items = deque([7])
    got: list[int] = []
    errors: list[str] = []

    def take() -> None:
        if len(items) > 0:
            try:
                got.append(items.popleft())
            except IndexError:
                errors.append("empty")

    await _in_threads(take, take)
    return len(got), len(errors)


async def _asked_and_read() -> object:
    """The key was there when it was asked for."""
    stock = {"tea": 1}
    seen: list[object] = []

    def read() -> None:
        if "tea" in stock:
            try:
                seen.append(stock["tea"])
            except KeyError:
                seen.append("gone")
        else:
            seen.append("none")

    def sell() -> None:
        del stock["tea"]

    await _in_threads(read, sell)
    return seen[0]


async def _used_early() -> str:
    """One uses what the other makes."""
    made: dict[str, str] = {}
    seen: list[str] = []

    def make() -> None:
        made["connection"] = "open"

    def use() -> None:
        seen.append(made.get("connection", "none"))

    await _in_threads(make, use)
    return seen[0]


async def _computed_once() -> int:
    """A cached property counts how often it is computed; before Python 3.12 it has a lock of its own."""
    computed: list[int] = []

    class Report:
        @cached_property
        def total(self) -> int:
            computed.append(1)
            return 3

    report = Report()
    await _in_threads(lambda: report.total, lambda: report.total)
    return len(computed)


async def _sent() -> int:
    """Both send to one generator, and keep what it answers: the last to keep is not the last to have sent."""

    def sums() -> Generator[int, int]:
        total = 0
        while True:
            total += yield total

    total, kept = sums(), {"sum": 0}
    next(total)

    def send() -> None:
        try:
            answer = total.send(1)
        except ValueError:
            return  # it is running
        kept["sum"] = answer

    await _in_threads(send, send)
    return kept["sum"]


async def _told_by_an_event() -> int:
    """One waits for an event that is set after the value is there."""
    box, written, seen = {"value": 0}, threading.Event(), list[int]()

    def write() -> None:
        box["value"] = 7
        written.set()

    def read() -> None:
        written.wait()
        seen.append(box["value"])

    await _in_threads(write, read)
    return seen[0]


async def _handed_over() -> int:
    """One gets what the other has put into a queue."""
    box: dict[str, int] = {}
    orders: queue.Queue[str] = queue.Queue()
    seen: list[int] = []

    def write() -> None:
        box["tea"] = 7
        orders.put("tea")

    def read() -> None:
        seen.append(box[orders.get()])

    await _in_threads(write, read)
    return seen[0]


async def _own_places() -> list[int]:
    """Each writes to its own place of one list."""
    places = [0, 0]

    def write(at: int) -> None:
        places[at] = places[at] + 1

    await _in_threads(lambda: write(0), lambda: write(1))
    return places


#: The programs, and what they may end with.
_SHAPES: dict[Callable[[], Awaitable[Any]], list[Any]] = {
    _property: [1, 2],
    _slot: [1, 2],
    _class_attribute: [1, 2],
    _default_item: [1, 2],
    _layers: [(11, 11), (12, 12)],
    _nested_closure: [1, 2],
    _swapped: [(1, 1), (1, 2), (2, 1), (2, 2)],
    _text: ["00", "01", "11"],
    _chosen_by_flag: [1, 2, -1],
    _looked_and_popped: [(1, 0), (1, 1)],
    _asked_and_read: [1, "gone", "none"],
    _used_early: ["open", "none"],
    _computed_once: [1] if sys.version_info < (3, 12) else [1, 2],
    _sent: [1, 2],
    _told_by_an_event: [7],
    _handed_over: [7],
    _own_places: [[1, 1]],
}


# Too many traces for a reduction in a test.
_LARGE = (_layers, _told_by_an_event, _handed_over)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("program", _SHAPES)
def test_every_outcome_of_plain_threads_is_explored(program: Callable[[], Awaitable[Any]], hasty: None) -> None:
    """The outcomes are those that are written here, and plain runs end with no other."""
    strategy = sim.Random(sim.RandomWalk(0), 150) if program in _LARGE else sim.DPOR()
    report = sim.explore(program, strategy, lambda execution: True, track=True, max_executions=2_000)
    assert report.verdict is sim.PASS, report
    assert sorted(map(str, report.outcomes)) == sorted(map(str, _SHAPES[program])), report
    for _ in range(5_000 if FULL else 5):
        assert trio.run(program) in _SHAPES[program]
