"""Iteration over own classes: whatever `__iter__` gives, the reduction sees what its caller goes through."""

from __future__ import annotations

import collections.abc
import gc
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trio

from toolrt import sim


class GivesIterator:
    """Its `__iter__` has ended before the first item is taken."""

    def __init__(self) -> None:
        self.items: list[int] = []

    def put(self) -> None:
        self.items.append(1)

    def __iter__(self) -> Iterator[int]:
        return iter(self.items)


class GivesView(GivesIterator):
    def __init__(self) -> None:
        self.items: Any = {}

    def put(self) -> None:
        self.items["k"] = 1

    def __iter__(self) -> Iterator[int]:
        return iter(self.items.values())


class GivesSet(GivesIterator):
    def __init__(self) -> None:
        self.items: Any = set()

    def put(self) -> None:
        self.items.add(1)


class GivesDeque(GivesIterator):
    def __init__(self) -> None:
        self.items: Any = deque()


class Generates(GivesIterator):
    def __iter__(self) -> Iterator[int]:
        yield from self.items


class Steps(GivesIterator):
    """An iterator of itself."""

    def __iter__(self) -> Iterator[int]:
        self.at = 0
        return self

    def __next__(self) -> int:
        if self.at == len(self.items):
            raise StopIteration
        self.at += 1
        return self.items[self.at - 1]


class Indexed:
    """The older protocol."""

    def __init__(self) -> None:
        self.items: list[int] = []

    def put(self) -> None:
        self.items.append(1)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, at: int) -> int:
        return self.items[at]


class Sequence(Indexed, collections.abc.Sequence):  # type: ignore[type-arg]
    """With the methods that `collections.abc` adds, in code of another module."""


class Inherits(list):  # type: ignore[type-arg]
    """A list itself."""

    def put(self) -> None:
        self.append(1)


KINDS = [GivesIterator, GivesView, GivesSet, GivesDeque, Generates, Steps, Indexed, Sequence, Inherits]


def _loop(bag: Any) -> Any:
    found = []
    for item in bag:
        found.append(item)  # noqa: PERF402  the loop is what is looked at
    return found


def _yields(bag: Any) -> Any:
    def inner() -> Iterator[Any]:
        yield from bag

    return list(inner())


def _stars(*items: Any) -> Any:
    return items


WAYS: dict[str, Callable[[Any], Any]] = {
    "for": _loop,
    "comprehension": lambda bag: [item for item in bag],  # noqa: C416
    "generator expression": lambda bag: list(item for item in bag),  # noqa: C400
    "unpacking": lambda bag: [*bag],
    "arguments": lambda bag: _stars(*bag),
    "in": lambda bag: 1 in bag,
    "list": list,
    "tuple": tuple,
    "set": lambda bag: sorted(set(bag)),
    "sorted": sorted,
    "sum": sum,
    "max": lambda bag: max(bag, default=None),
    "any": any,
    "zip": lambda bag: list(zip(bag, "ab", strict=False)),
    "enumerate": lambda bag: list(enumerate(bag)),
    "map": lambda bag: list(map(str, bag)),
    "filter": lambda bag: list(filter(None, bag)),
    "join": lambda bag: "".join(map(str, bag)),
    "dict": lambda bag: dict.fromkeys(bag),
    "extend": lambda bag: [].extend(bag) or 0,
    "chain": lambda bag: list(itertools.chain(bag, bag)),
    "next": lambda bag: next(iter(bag), None),
    "yield from": _yields,
    "deque": lambda bag: list(deque(bag)),
}


def _program(kind: type, way: Callable[[Any], Any]) -> Callable[[], Any]:
    async def program() -> list[Any]:
        bag, seen = kind(), []

        async def reads() -> None:
            seen.append(way(bag))

        async def puts() -> None:
            bag.put()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(reads)
            nursery.start_soon(puts)
        return seen

    return program


@pytest.mark.drawn(4)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_reduction_has_every_outcome_of_an_iteration(kind: type) -> None:
    """As each order has, for every way to go through an object; where it has not, it says that it is undecided."""
    wrong = []
    for name, way in WAYS.items():
        program = _program(kind, way)
        found = sim.explore(program, sim.DPOR(), track=True)
        if found.verdict is sim.PASS:
            every = sim.explore(program, sim.Exhaustive(), track=False)
            if {str(one) for one in found.outcomes} != {str(one) for one in every.outcomes}:
                wrong.append(name)
        elif kind is GivesIterator:
            wrong.append(f"{name}: {found.verdict}")
    assert wrong == []


def test_bug_behind_one_order_of_an_iteration_is_found() -> None:
    """The reader comes between two of five writers in one order alone."""

    async def program() -> None:
        bag = GivesIterator()

        async def puts(number: int) -> None:
            bag.items.append(number)

        async def reads() -> None:
            assert list(bag) != [3, 1, 0]

        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(puts, number)
            nursery.start_soon(reads)

    assert sim.explore(program, sim.DPOR(), track=True).verdict is sim.FAIL


def test_async_iteration_that_is_left_early_leaves_nothing_to_be_closed(recwarn: pytest.WarningsRecorder) -> None:
    """Nor does the program's own: where warnings are errors, one from tracking would fail its test."""
    foreign: dict[str, Any] = {}
    exec("class Ones:\n def __aiter__(self): return self\n async def __anext__(self): return 1\n", foreign)
    seen: list[bool] = []

    async def program() -> int:
        async for one in foreign["Ones"]():
            seen.append(type(one) is int)
            break
        with pytest.raises(TypeError, match="'async for' requires an object with __aiter__ method, got int"):
            async for _ in one:
                pass
        return one

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 3), track=True)
    gc.collect()
    assert report.outcomes == {1: 3}
    assert seen
    assert [str(one.message) for one in recwarn] == []
