"""Programs whose tasks share what a container, a context or a generator holds."""

from __future__ import annotations

import functools
import io
import itertools
import operator
import types
from collections import ChainMap, UserDict, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextvars import Context, ContextVar, copy_context
from typing import Any

from trio.lowlevel import checkpoint

import tests.sim.missed._contents as alias
from tests.sim.missed._table import Program, ends, together, twice

# ---------------------------------------------------------------------- what is shared depends on data


def _log(shards: int) -> Callable[[int], Callable[[], Awaitable[None]]]:
    alias.logs = [0] * shards

    def of(number: int) -> Callable[[], Awaitable[None]]:
        async def add() -> None:
            seen = alias.logs[number % shards]
            await checkpoint()
            alias.logs[number % shards] = seen + 1

        return add

    return of


logs: list[int] = []


@ends([1, 1])
async def own_shards() -> list[int]:
    add = _log(2)
    await together(add(0), add(1))
    return logs


@ends([1], [2])
async def one_shard() -> list[int]:
    add = _log(1)
    await together(add(0), add(1))
    return logs


@ends([1, 1], [2, 1])
async def two_of_three_share() -> list[int]:
    add = _log(2)
    await together(add(0), add(1), add(2))
    return logs


@ends({"a": 1, "b": 0}, {"a": 0, "b": 1})
async def the_place_changes() -> dict[str, int]:
    """One adds where the other points to."""
    points, counts = ["a"], {"a": 0, "b": 0}

    async def add() -> None:
        await checkpoint()
        counts[points[0]] += 1

    async def point() -> None:
        await checkpoint()
        points[0] = "b"

    await together(add, point)
    return counts


@ends((1, 0), (0, 1))
async def the_object_changes() -> tuple[int, int]:
    """One adds to what is current, and the other makes another one current."""
    first, second = types.SimpleNamespace(n=0), types.SimpleNamespace(n=0)
    holder = types.SimpleNamespace(current=first)

    async def add() -> None:
        await checkpoint()
        holder.current.n += 1

    async def replace() -> None:
        await checkpoint()
        holder.current = second

    await together(add, replace)
    return first.n, second.n


@ends(0, 1)
async def shared_if_asked() -> int:
    """What the second task touches the first one decides."""
    asked, count, seen = [False], {"n": 0}, []

    async def write() -> None:
        await checkpoint()
        asked[0] = True
        count["n"] = 1

    async def read() -> None:
        await checkpoint()
        seen.append(count["n"] if asked[0] else 0)

    await together(write, read)
    return seen[0]


@ends(("a", "b"), ("b", "a"))
async def drawn_from_one_iterator() -> tuple[str, str]:
    numbers, names = itertools.count(), ["a", "b"]
    got = {}

    async def take(name: str) -> None:
        await checkpoint()
        got[next(numbers)] = name

    await together(*(functools.partial(take, name) for name in names))
    return got[0], got[1]


# ---------------------------------------------------------------------- containers

_MADE: dict[str, Callable[[], Any]] = {
    "user_dict": lambda: UserDict(n=0),
    "chained": lambda: ChainMap({}, {"n": 0}),
    "default_items": lambda: defaultdict(int),
    "read_only_view": lambda: {"n": 0},
}


def _of_items(name: str) -> Program:
    async def program() -> int:
        made = _MADE[name]()
        seen: Any = types.MappingProxyType(made) if name == "read_only_view" else made
        return await twice(lambda: seen["n"], lambda value: operator.setitem(made, "n", value))

    program.__name__ = name
    return program


for _name in _MADE:
    ends(1, 2)(_of_items(_name))


@ends(["a", "b"], ["b", "a"])
async def order_of_keys() -> list[str]:
    keys: dict[str, int] = {}

    async def put(key: str) -> None:
        await checkpoint()
        keys[key] = 1

    await together(functools.partial(put, "a"), functools.partial(put, "b"))
    return list(keys)


@ends("ab", "ba")
async def written_text() -> str:
    text = io.StringIO()

    async def put(letter: str) -> None:
        await checkpoint()
        text.write(letter)

    await together(functools.partial(put, "a"), functools.partial(put, "b"))
    return text.getvalue()


# ---------------------------------------------------------------------- contexts and generators

_current: ContextVar[Any] = ContextVar("_current")


@ends((1, 1))
async def a_context_of_its_own() -> tuple[int, int]:
    """Each task has its own value."""
    got = {}
    _current.set(0)

    async def add(name: str) -> None:
        seen = _current.get()
        await checkpoint()
        _current.set(seen + 1)
        got[name] = _current.get()

    await together(functools.partial(add, "a"), functools.partial(add, "b"))
    return got["a"], got["b"]


@ends(1, 2)
async def what_contexts_share() -> int:
    """The value is one object in both contexts."""
    _current.set({"n": 0})
    return await twice(lambda: _current.get()["n"], lambda value: operator.setitem(_current.get(), "n", value))


@ends(1, 2)
async def one_context_for_both() -> int:
    context: Context = copy_context()
    context.run(_current.set, 0)
    return await twice(lambda: context[_current], lambda value: context.run(_current.set, value))


@ends(("a", "b"), ("b", "a"))
async def generator_of_both() -> tuple[str, str]:
    def places() -> Generator[int]:
        at = 0
        while True:
            yield at
            at += 1

    made, got = places(), {}

    async def take(name: str) -> None:
        await checkpoint()
        got[next(made)] = name

    await together(functools.partial(take, "a"), functools.partial(take, "b"))
    return got[0], got[1]


@ends(3, 5)
async def generator_that_is_sent_to() -> int:
    """What is sent first is doubled by what is sent next."""

    def sums() -> Generator[int, int]:
        total = 0
        while True:
            total = 2 * total + (yield total)

    total = sums()
    next(total)
    got = []

    async def send(value: int) -> None:
        await checkpoint()
        got.append(total.send(value))

    await together(functools.partial(send, 1), functools.partial(send, 2))
    return {4: 3, 5: 5}[got[-1]]


@ends(["a", "b"], ["b", "a"], ["a", "busy"], ["b", "busy"])
async def async_generator_of_both() -> list[str]:
    """One that passes a checkpoint is not to be asked meanwhile."""

    async def letters() -> AsyncGenerator[int]:
        while True:
            await checkpoint()
            yield 1

    made, got = letters(), []

    async def take(name: str) -> None:
        try:
            await anext(made)
        except RuntimeError:
            got.append("busy")
        else:
            got.append(name)

    await together(functools.partial(take, "a"), functools.partial(take, "b"))
    await made.aclose()
    return sorted(got, key=lambda each: each == "busy") if "busy" in got else got
