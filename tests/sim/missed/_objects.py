"""Programs whose tasks share an object, by way of its class, its code or its end."""

from __future__ import annotations

import contextlib
import functools
import json
import operator
import types
import weakref
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import trio
from trio.lowlevel import checkpoint

from tests.sim.missed._table import ends, together, twice
from toolrt.sim import Cell

# ---------------------------------------------------------------------- classes


@ends(1, 2)
async def super_attribute() -> int:
    class Base:
        limit = 0

    class Own(Base):
        limit = 7

        def get(self) -> int:
            return super().limit

    return await twice(Own().get, lambda value: setattr(Base, "limit", value))


@ends(1, 2)
async def super_method() -> int:
    class Base:
        limit = 0

        def get(self) -> int:
            return self.limit

    class Own(Base):
        def get(self) -> int:
            return super().get()

    return await twice(Own().get, lambda value: setattr(Base, "limit", value))


@ends(1, 2)
async def attribute_of_a_base() -> int:
    class Base:
        limit = 0

    class Own(Base):
        pass

    return await twice(lambda: Own.limit, lambda value: setattr(Base, "limit", value))


@ends(1, 2)
async def attribute_of_a_metaclass() -> int:
    class Meta(type):
        limit = 0

    class Own(metaclass=Meta):
        pass

    return await twice(lambda: Own.limit, lambda value: setattr(Meta, "limit", value))


@ends(1, 2)
async def class_method() -> int:
    class Own:
        made = 0

        @classmethod
        def make(cls, made: int) -> None:
            cls.made = made

    return await twice(lambda: Own.made, Own.make)


@ends(0, 1)
async def class_of_an_object() -> int:
    class First:
        kind = 0

    class Second(First):
        kind = 1

    one, seen = First(), []

    async def change() -> None:
        await checkpoint()
        one.__class__ = Second

    async def look() -> None:
        await checkpoint()
        seen.append(one.kind)

    await together(change, look)
    return seen[0]


@ends(1, 2)
async def class_attribute_of_another_module() -> int:
    json.JSONEncoder.number = 0  # type: ignore[attr-defined]
    return await twice(
        lambda: json.JSONEncoder.number,  # type: ignore[attr-defined]
        lambda value: setattr(json.JSONEncoder, "number", value),
    )


@ends(1, 2)
async def attribute_of_another_module() -> int:
    json.number = 0  # type: ignore[attr-defined]
    return await twice(lambda: json.number, lambda value: setattr(json, "number", value))  # type: ignore[attr-defined]


@ends(1, 2)
async def attribute_of_a_function() -> int:
    def handler() -> None: ...

    handler.calls = 0  # type: ignore[attr-defined]
    return await twice(lambda: handler.calls, lambda value: setattr(handler, "calls", value))  # type: ignore[attr-defined]


# ---------------------------------------------------------------------- attributes that are code


@ends(1, 2)
async def property_of_both_ways() -> int:
    class Own:
        _n = 0

        @property
        def n(self) -> int:
            return self._n

        @n.setter
        def n(self, value: int) -> None:
            self._n = value

    own = Own()
    return await twice(lambda: own.n, lambda value: setattr(own, "n", value))


@ends(1, 2)
async def descriptor() -> int:
    class Kept:
        n = 0

        def __get__(self, own: object, cls: type) -> int:
            return self.n

        def __set__(self, own: object, value: int) -> None:
            self.n = value

    class Own:
        n = Kept()

    first, second = Own(), Own()
    return await twice(lambda: first.n, lambda value: setattr(second, "n", value))


@ends(1, 2)
async def slot() -> int:
    class Own:
        __slots__ = ("n",)

    own = Own()
    own.n = 0
    return await twice(lambda: own.n, lambda value: setattr(own, "n", value))


@ends(1, 2)
async def get_attribute_that_is_missing() -> int:
    class Own:
        def __init__(self) -> None:
            self.kept = {"n": 0}

        def __getattr__(self, name: str) -> int:
            return self.__dict__["kept"][name]

    own = Own()
    return await twice(lambda: own.n, lambda value: operator.setitem(own.kept, "n", value))


@ends(1, 2)
async def get_every_attribute() -> int:
    kept = {"n": 0}

    class Own:
        def __getattribute__(self, name: str) -> int:
            return kept[name]

        def __setattr__(self, name: str, value: int) -> None:
            kept[name] = value

    own = Own()
    return await twice(lambda: own.n, lambda value: setattr(own, "n", value))


@ends(1, 2)
async def missing_key() -> int:
    class Own(dict[str, int]):
        def __missing__(self, key: str) -> int:
            return 0

    own = Own()
    return await twice(lambda: own["n"], lambda value: own.__setitem__("n", value))


@ends(1, 2)
async def length_and_truth() -> int:
    class Own:
        n = 0

        def __len__(self) -> int:
            return self.n

    own = Own()
    return await twice(lambda: len(own) if own else 0, lambda value: setattr(own, "n", value))


@ends(1, 2)
async def written_past_the_class() -> int:
    own = types.SimpleNamespace(n=0)
    return await twice(lambda: own.n, lambda value: object.__setattr__(own, "n", value))


@ends(1, 2)
async def operator_in_place() -> int:
    class Own:
        n = 0

        def __iadd__(self, value: int) -> Own:
            self.n = value
            return self

    box = [Own()]

    def write(value: int) -> None:
        box[0] += value

    return await twice(lambda: box[0].n, write)


# ---------------------------------------------------------------------- finalisers


class _Dropped:
    def __init__(self, told: list[int]) -> None:
        self.told = told

    def __del__(self) -> None:
        self.told.append(1)


async def _dropped_beside_a_look(holder: list[Any], look: Callable[[], int]) -> int:
    seen = []

    async def drop() -> None:
        await checkpoint()
        holder.clear()

    async def see() -> None:
        await checkpoint()
        seen.append(look())

    await together(drop, see)
    return seen[0]


@ends(0, 1)
async def del_method() -> int:
    told: list[int] = []
    return await _dropped_beside_a_look([_Dropped(told)], lambda: len(told))


@ends(0, 1, seen=False)
async def finalize() -> int:
    told: list[int] = []
    holder = [_Dropped([])]
    weakref.finalize(holder[0], told.append, 1)
    return await _dropped_beside_a_look(holder, lambda: len(told))


@ends(0, 1)
async def weak_reference() -> int:
    holder = [_Dropped([])]
    reference = weakref.ref(holder[0])
    return await _dropped_beside_a_look(holder, lambda: int(reference() is None))


@ends(0, 1)
async def weak_dict() -> int:
    holder = [_Dropped([])]
    known = weakref.WeakValueDictionary(key=holder[0])
    return await _dropped_beside_a_look(holder, lambda: 1 - len(known))


@ends(0, 1)
async def generator_closed() -> int:
    told: list[int] = []

    def numbers() -> Iterator[int]:
        try:
            yield 1
        finally:
            told.append(1)

    half = numbers()
    next(half)
    holder = [half]
    del half
    return await _dropped_beside_a_look(holder, lambda: len(told))


@ends(0, 1)
async def exit_stack() -> int:
    told: list[int] = []
    stack, seen = contextlib.ExitStack(), []
    stack.callback(told.append, 1)

    async def close() -> None:
        await checkpoint()
        stack.close()

    async def look() -> None:
        await checkpoint()
        seen.append(len(told))

    await together(close, look)
    return seen[0]


# ---------------------------------------------------------------------- scopes that two tasks hold


@ends(["first"], ["second"])
async def one_scope_entered_by_two() -> list[str]:
    """A scope is entered once: the later task is refused."""
    scope, refused = trio.CancelScope(), []

    async def enter(name: str, own: Cell[int]) -> None:
        own.set(1)
        try:
            with scope:
                pass
        except RuntimeError:
            refused.append(name)

    await together(*(functools.partial(enter, name, Cell(0, name)) for name in ("first", "second")))
    return refused


def _entering(scope: trio.CancelScope) -> Callable[[], Awaitable[None]]:
    """Enter the scope in a step that says something of its own, too."""
    own = Cell(0, "own")

    async def enter() -> None:
        own.set(1)
        with scope:
            pass

    return enter


@ends(["no deadline"], [5.0])
async def a_deadline_that_entering_sets() -> list[object]:
    """A scope of so many seconds has a deadline from the moment on at which it is entered."""
    seen: list[object] = []
    scope, own = trio.move_on_after(5), Cell(0, "other")

    async def look() -> None:
        own.set(1)
        try:
            seen.append(scope.deadline)
        except RuntimeError:
            seen.append("no deadline")

    await together(_entering(scope), look)
    return seen


@ends([False], [None])
async def a_scope_that_is_entered_is_not_relative() -> list[object]:
    """Before it is entered a scope says whether its deadline is relative, and afterwards None."""
    seen: list[object] = []
    scope, own = trio.CancelScope(), Cell(0, "other")

    async def look() -> None:
        own.set(1)
        seen.append(scope.is_relative)

    await together(_entering(scope), look)
    return seen
