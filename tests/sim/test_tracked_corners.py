"""Objects that hold nothing of their own, as the tracker has it, and what a program may share through them."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import io
import sys
from collections.abc import Callable
from typing import Any

import attr
import attrs
import pytest
import trio

from toolrt import sim


class Base:
    """Has what `super()` reads."""

    limit = 0


class Below(Base):
    def read(self) -> int:
        return super().limit


class Counted:
    def method(self) -> None:
        """Bear an attribute."""


@attrs.define
class Point:
    x: int = 0

    def move(self) -> None:
        self.x = 1


VARIABLE: contextvars.ContextVar[int] = contextvars.ContextVar("VARIABLE")

#: What one task reads, and another one does.
Uses = tuple[Callable[[], Any], Callable[[], Any]]


def through_super() -> Uses:
    below, Base.limit = Below(), 0
    return below.read, lambda: setattr(Base, "limit", 1)


def attribute_of_a_bound_method() -> Uses:
    counted = Counted()
    Counted.method.calls = 0  # type: ignore[attr-defined]

    def write() -> None:
        Counted.method.calls = 1  # type: ignore[attr-defined]

    return lambda: counted.method.calls, write  # type: ignore[attr-defined]


def shared_context() -> Uses:
    context = contextvars.Context()
    context.run(VARIABLE.set, 0)
    return lambda: context[VARIABLE], lambda: context.run(VARIABLE.set, 1)


def attribute_of_trios_own() -> Uses:
    limiter = trio.CapacityLimiter(1)

    def write() -> None:
        limiter.total_tokens = 5

    return lambda: limiter.total_tokens, write


def attribute_put_on_trios_own() -> Uses:
    event: Any = trio.Lock()
    event.note = 0

    def write() -> None:
        event.note = 1

    return lambda: event.note, write


def docstring() -> Uses:
    class Told:
        """Before."""

    def write() -> None:
        Told.__doc__ = "after"

    return lambda: Told.__doc__, write


def exit_stack() -> Uses:
    stack, closed = contextlib.ExitStack(), list[int]()

    def read() -> Any:
        stack.pop_all().close()
        return tuple(closed)

    return read, lambda: stack.callback(closed.append, 1)


def fields_of_attrs() -> Uses:
    point = Point()
    return lambda: attr.astuple(point), point.move


def attributes_of_a_partial() -> Uses:
    part: Any = functools.partial(int)
    part.note = 0

    def write() -> None:
        part.note = 1

    return lambda: part.note, write


@pytest.mark.parametrize(
    "case",
    [
        through_super,
        attribute_of_a_bound_method,
        shared_context,
        attribute_of_trios_own,
        attribute_put_on_trios_own,
        docstring,
        exit_stack,
        fields_of_attrs,
        attributes_of_a_partial,
    ],
)
def test_reduction_tries_both_orders(case: Callable[[], Uses]) -> None:
    """Where the steps report something else of their own, too."""

    async def program() -> str:
        read, write = case()
        cells = [sim.Cell(0, name=f"own {number}") for number in range(2)]
        seen = ""

        async def reads() -> None:
            nonlocal seen
            cells[0].set(1)
            seen = repr(read())

        async def writes() -> None:
            cells[1].set(1)
            write()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(reads)
            nursery.start_soon(writes)
        return seen

    every = sim.explore(program, sim.Exhaustive())
    reduced = sim.explore(program, sim.DPOR(samples=0), track=True)
    assert len(every.outcomes) == 2
    assert set(reduced.outcomes) == set(every.outcomes)


def test_two_prints_to_a_captured_stdout_are_in_both_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed to a terminal decides nothing, so it is no access there."""

    async def program() -> str:
        captured = io.StringIO()
        monkeypatch.setattr(sys, "stdout", captured)

        async def say(word: str) -> None:
            print(word)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(say, "a")
            nursery.start_soon(say, "b")
        monkeypatch.undo()
        return captured.getvalue()

    assert set(sim.explore(program, sim.DPOR(samples=0), track=True).outcomes) == {"a\nb\n", "b\na\n"}
