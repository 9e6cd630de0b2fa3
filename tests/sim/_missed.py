"""Litmus programs for what searches have missed: each shares something in a way of its own, beside all it can end in.

Most of them lose an update: two tasks read a number, pass a checkpoint, and write one more.  What differs is where the
number is, and by which way it is reached.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import io
import itertools
import json
import logging
import operator
import os
import sys
import types
import weakref
from collections import ChainMap, UserDict, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from contextvars import Context, ContextVar, copy_context
from typing import Any

import attrs
import trio
from trio.lowlevel import checkpoint

import tests.sim._missed as alias

__all__ = ["MISSED", "Missed"]

Program = Callable[[], Awaitable[Any]]


@attrs.frozen
class Missed:
    """A program, and exactly what it can end in."""

    program: Program
    outcomes: tuple[Any, ...]
    #: What `sim.explore` is asked for besides.
    options: dict[str, Any]
    #: Whether some of it is not seen: a reduction then says so, and decides nothing.
    is_seen: bool


#: The programs by name.
MISSED: dict[str, Missed] = {}


def ends(*outcomes: Any, seen: bool = True, **options: Any) -> Callable[[Program], Program]:
    """Take a program into the table, with all that it can end in."""

    def take(program: Program) -> Program:
        MISSED[program.__name__] = Missed(program, outcomes, options, seen)
        return program

    return take


async def together(*tasks: Callable[[], Awaitable[object]]) -> None:
    """Run each in a task of its own."""
    async with trio.open_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(task)


async def twice(read: Callable[[], int], write: Callable[[int], object]) -> int:
    """Two tasks read, and write one more; give what is read in the end."""

    async def add() -> None:
        seen = read()
        await checkpoint()
        write(seen + 1)

    await together(add, add)
    return read()


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


# ---------------------------------------------------------------------- variables of modules, by other names

total = 0


@ends(1, 2)
async def global_by_alias() -> int:
    alias.total = 0
    return await twice(lambda: total, lambda value: setattr(alias, "total", value))


@ends(1, 2)
async def global_by_dict() -> int:
    globals()["total"] = 0
    return await twice(lambda: total, lambda value: operator.setitem(globals(), "total", value))


@ends(1, 2)
async def global_by_table_of_modules() -> int:
    alias.total = 0
    return await twice(lambda: alias.total, lambda value: setattr(sys.modules[__name__], "total", value))


@ends(1, 2)
async def global_statement() -> int:
    global total
    total = 0

    async def add() -> None:
        global total
        seen = total
        await checkpoint()
        total = seen + 1

    await together(add, add)
    return total


@ends(1, 2)
async def built_in_name() -> int:
    builtins.number = 0  # type: ignore[attr-defined]
    return await twice(lambda: number, lambda value: setattr(builtins, "number", value))  # type: ignore[name-defined]  # noqa: F821


@ends("0", "1")
async def environment() -> str:
    os.environ["TOOLRT_MISSED"] = "0"
    seen = []

    async def write() -> None:
        await checkpoint()
        os.environ["TOOLRT_MISSED"] = "1"

    async def read() -> None:
        await checkpoint()
        seen.append(os.environ["TOOLRT_MISSED"])

    await together(write, read)
    return seen[0]


# ---------------------------------------------------------------------- functions and what they keep


@ends(1, 2)
async def two_closures() -> int:
    def made() -> tuple[Callable[[], int], Callable[[int], None]]:
        count = 0

        def write(value: int) -> None:
            nonlocal count
            count = value

        return lambda: count, write

    return await twice(*made())


@ends(1, 2)
async def closure_in_a_closure() -> int:
    count = 0

    def outer() -> Callable[[int], None]:
        def inner(value: int) -> None:
            nonlocal count
            count = value

        return inner

    return await twice(lambda: count, outer())


@ends(1, 2)
async def default_list() -> int:
    def kept(value: int | None = None, kept: list[int] = [0]) -> int:  # noqa: B006  that is the point
        if value is not None:
            kept[0] = value
        return kept[0]

    return await twice(kept, kept)


@ends(1, 2)
async def default_dict_by_name() -> int:
    def kept(value: int | None = None, *, cache: dict[str, int] = {"n": 0}) -> int:  # noqa: B006
        if value is not None:
            cache["n"] = value
        return cache["n"]

    return await twice(kept, kept)


@ends(0, 1)
async def defaults_replaced() -> int:
    def get(value: int = 0) -> int:
        return value

    seen = []

    async def write() -> None:
        await checkpoint()
        get.__defaults__ = (1,)

    async def read() -> None:
        await checkpoint()
        seen.append(get())

    await together(write, read)
    return seen[0]


@ends(1, 2)
async def cache_of_a_function() -> int:
    made: list[int] = []
    cache: dict[str, int] = {}

    async def get() -> None:
        if "page" not in cache:
            made.append(1)
            await checkpoint()
            cache["page"] = 1

    await together(get, get)
    return len(made)


@ends(1, 2)
async def bound_in_a_partial() -> int:
    box = [0]
    return await twice(functools.partial(operator.getitem, box, 0), functools.partial(operator.setitem, box, 0))


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


# ---------------------------------------------------------------------- what a process has one of


@ends(("a", "b"), ("", "a"), ("b", ""))
async def printed_elsewhere() -> tuple[str, str]:
    """Each prints into a text of its own; the one that came later restores the other's."""
    before, texts = sys.stdout, (io.StringIO(), io.StringIO())
    sys.stdout = io.StringIO()

    async def tell(text: io.StringIO, word: str) -> None:
        with contextlib.redirect_stdout(text):
            await checkpoint()
            print(word, end="")

    try:
        await together(functools.partial(tell, texts[0], "a"), functools.partial(tell, texts[1], "b"))
    finally:
        sys.stdout = before
    return texts[0].getvalue(), texts[1].getvalue()


@ends(1, 2)
async def level_of_a_logger() -> int:
    logger = logging.getLogger("tests.sim._missed")
    logger.setLevel(0)
    logger.level = 0
    return await twice(lambda: logger.level, logger.setLevel)


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


# ---------------------------------------------------------------------- deadlines of one instant


async def _answer_at_the_limit() -> str:
    answered = trio.Event()

    async def answer() -> None:
        await trio.sleep(5)
        answered.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        with trio.move_on_after(5):
            await answered.wait()
            return "answered"
    return "gave up"


@ends("gave up")
async def deadlines_together() -> str:
    return await _answer_at_the_limit()


@ends("gave up", "answered", clock="real")
async def deadlines_apart() -> str:
    return await _answer_at_the_limit()


@ends(1, 2)
async def two_wake_together() -> int:
    count = {"n": 0}

    async def add() -> None:
        await trio.sleep(1)
        seen = count["n"]
        await checkpoint()
        count["n"] = seen + 1

    await together(add, add)
    return count["n"]


@ends((True, False), (False, True), clock="real")
async def outer_and_inner_deadline() -> tuple[bool, bool]:
    """Two scopes of one task and one instant: the task is cut by either, or by the outer one after both."""
    with trio.move_on_after(1) as outer, trio.move_on_after(1) as inner:
        await trio.sleep_forever()
    return outer.cancel_called, inner.cancelled_caught


# ---------------------------------------------------------------------- threads at accesses


async def _beside_a_thread(in_thread: Callable[[], object], in_task: Callable[[], Awaitable[object]]) -> None:
    await together(functools.partial(trio.to_thread.run_sync, in_thread), in_task)


@ends(1, 2)
async def thread_adds_beside_a_task() -> int:
    count = 0

    def add() -> None:
        nonlocal count
        count += 1

    async def add_later() -> None:
        nonlocal count
        seen = count
        await checkpoint()
        count = seen + 1

    await _beside_a_thread(add, add_later)
    return count


@ends(["a"], ["a", "b"])
async def thread_goes_through_a_list() -> list[str]:
    names, got = ["a"], list[str]()

    def go_through() -> None:
        for name in names:
            got.append(name)

    async def add() -> None:  # noqa: ASYNC124  a task is one step
        names.append("b")

    await _beside_a_thread(go_through, add)
    return got


@ends((1, 1))
async def thread_has_a_place_of_its_own() -> tuple[int, int]:
    places = [0, 0]

    async def write() -> None:  # noqa: ASYNC124
        places[1] = 1

    await _beside_a_thread(lambda: operator.setitem(places, 0, 1), write)
    return places[0], places[1]


@ends("torn", "before", "after")
async def thread_reads_twice() -> str:
    pair, seen = types.SimpleNamespace(left=0, right=0), []

    def read() -> None:
        seen.append((pair.left, pair.right))

    async def write() -> None:  # noqa: ASYNC124
        pair.left = pair.right = 1

    await _beside_a_thread(read, write)
    return {(0, 1): "torn", (0, 0): "before", (1, 1): "after"}[seen[0]]
