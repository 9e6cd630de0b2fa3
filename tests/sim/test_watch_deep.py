"""What is reached from a watched thing is watched, too."""

from __future__ import annotations

import hashlib
import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import attrs
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.lowlevel import checkpoint

from toolrt import probe, sim
from toolrt.sim.programs._watch_below import DEPTH_MOST


class Item:
    """An object below."""

    def __init__(self, n: Any) -> None:
        self.n = n


@attrs.define
class Slotted:
    """One without a ``__dict__``."""

    n: Any


@dataclass(frozen=True)
class Frozen:
    """A value that holds something."""

    n: Any


class Heard:
    """Keeps accesses as text."""

    def __init__(self) -> None:
        self.writes: list[str] = []
        self.all: list[Any] = []

    def event(self, kind: str, fields: Any) -> None:
        pass

    def access(self, resource: Any, write: bool) -> None:
        self.all.append(resource)
        if write:
            self.writes.append(" ".join(map(str, resource)))


def heard(act: Callable[[], object]) -> Heard:
    """Give what `act` reports."""
    listener = Heard()
    with probe.observed_by(listener):
        act()
    return listener


def _put(holder: Any, value: int) -> None:
    holder.n = value


NESTED = {
    "an object in a list in an attribute": (lambda: Item([Item(0)]), lambda top: _put(top.n[0], 1), "top.n[0].n"),
    "an object in an object": (lambda: Item(Slotted(0)), lambda top: _put(top.n, 1), "top.n.n"),
    "an object in a dict in a dict": (
        lambda: {"a": {1: Item(0)}},
        lambda top: _put(top["a"][1], 1),
        "top['a'][1].n",
    ),
    "an object in a deque": (lambda: deque([Item(0)]), lambda top: _put(top[0], 1), "top[0].n"),
    "an object in a tuple": (lambda: [(Item(0), 1)], lambda top: _put(top[0][0], 1), "top[0][0].n"),
    "an object in a frozen one": (lambda: [Frozen(Item(0))], lambda top: _put(top[0].n, 1), "top[0].n.n"),
    "a list in a list": (lambda: [[[]]], lambda top: top[0][0].append(1), "top[0][0]"),
    "a set in an object in an object": (lambda: Item(Item({1})), lambda top: top.n.n.add(2), "top.n.n"),
}


@pytest.mark.parametrize("name", NESTED)
def test_what_is_below_is_called_by_its_path(name: str) -> None:
    """A write of it is one of its own, and the step did nothing else; with ``deep=False`` it may have done anything."""
    make, write, path = NESTED[name]
    top = sim.watch(make(), "top")
    reports = heard(lambda: write(top))
    assert reports.writes == [f"watched {path}"]
    shallow = sim.watch(make(), "top", deep=False)
    assert probe.ANYTHING in heard(lambda: write(shallow)).all


def test_circle_is_watched_once() -> None:
    """Each thing has the first path on which it is found."""
    parent = Item(None)
    parent.n = Item(parent)
    sim.watch(parent, "parent")
    assert heard(lambda: _put(parent.n.n.n, 1)).writes == ["watched parent.n.n"]


def test_depth_and_number_have_limits() -> None:
    """What lies deeper may be anything."""
    top = below = Item(0)
    for _ in range(DEPTH_MOST + 1):
        below.n = Item(0)
        below = below.n
    last = below

    def reach() -> None:
        at = top
        while at is not last:
            at = at.n

    sim.watch(top, "top")
    assert probe.ANYTHING in heard(reach).all
    assert heard(lambda: _put(top.n.n, 0)).writes == ["watched top.n.n.n"]


def test_container_that_others_hold_stays_what_it_is() -> None:
    """It is no copy, or they would not see what happens to it."""
    shared: list[int] = []
    top = sim.watch({"mine": [], "ours": shared}, "top")
    top["ours"].append(1)
    assert shared == [1]
    assert probe.ANYTHING in heard(lambda: top["ours"]).all
    assert probe.ANYTHING not in heard(lambda: top["mine"]).all


def test_classes_of_libraries_are_left_alone() -> None:
    """What they do is in C, or is none of the program's."""
    error, digest = ValueError("no"), hashlib.sha256()
    before = type(error), type(digest)
    top = sim.watch([error, digest, Item(0)], "top")
    assert (type(error), type(digest)) == before
    assert probe.ANYTHING in heard(lambda: top[0]).all


def test_c_code_that_changes_a_container_below_is_noticed() -> None:
    """A container below is compared between steps, as the uppermost is; that it was copied is no change."""

    def program(push: bool) -> Any:
        async def run() -> None:
            top = sim.watch({"heap": [3, 4]}, "top")
            await checkpoint()
            if push:
                heapq.heappush(top["heap"], 1)
            else:
                top["heap"].append(1)

        return run

    def is_wild(push: bool) -> bool:
        execution = sim.run(program(push))
        return any(access.resource == probe.ANYTHING for step in execution.trace.steps for access in step.accesses)

    assert is_wild(True)
    assert not is_wild(False)


SHARED = Item(0)


def test_object_that_outlives_an_execution_is_seen_anew_in_each() -> None:
    """An access before it is watched is none that is reported, in the second execution as in the first."""

    async def program() -> int:
        seen = SHARED.n
        top = sim.watch([SHARED], "top")
        await checkpoint()
        return seen + top[0].n

    report = sim.explore(program, sim.Random(sim.RandomWalk(0), 3))
    assert report.verdict is sim.PASS, report
    assert not heard(lambda: _put(SHARED, 0)).writes


_STEPS = st.tuples(st.sampled_from(["add", "move", "rename", "grow", "sum"]), st.integers(0, 1), st.integers(0, 1))


def _program(tasks: list[list[tuple[str, int, int]]]) -> Any:
    """A program on objects in lists in a dict in an object."""

    async def run() -> str:
        top = sim.watch(Item({"a": [Item(0), Item(1)], "b": [Item(2), Item(3)]}), "top")

        async def one(steps: list[tuple[str, int, int]]) -> None:
            # A step that reports nothing would count as anything.
            sim.Cell(0).set(1)
            for what, row, at in steps:
                await checkpoint()
                items = top.n["ab"[row]]
                if what == "add":
                    items[at].n += 1 + items[1 - at].n
                elif what == "move":
                    items.reverse()
                elif what == "rename":
                    top.n["ab"[row]] = top.n["ba"[row]]
                elif what == "grow":
                    items.append(Item(5))
                else:
                    items[at].n = sum(item.n for item in items)

        async with trio.open_nursery() as nursery:
            for steps in tasks:
                nursery.start_soon(one, steps)
        return str({key: [item.n for item in items] for key, items in top.n.items()})

    return run


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(_STEPS, min_size=1, max_size=2), min_size=2, max_size=2))
def test_reduction_with_a_deep_watch_has_all_outcomes(tasks: list[list[tuple[str, int, int]]]) -> None:
    """It has those of all schedules, whatever tasks store, move and hold."""
    program = _program(tasks)
    every = sim.explore(program, sim.Exhaustive())
    reduced = sim.explore(program, sim.DPOR(samples=0))
    assert every.complete
    assert reduced.complete
    assert set(reduced.outcomes) == set(every.outcomes)


def test_tasks_on_items_of_their_own_are_one_class() -> None:
    """Deep, the reduction tells the items from each other."""

    def program(deep: bool) -> Any:
        async def run() -> None:
            top = sim.watch([Item(0), Item(0)], "top", deep=deep)

            async def add(at: int) -> None:
                for _ in range(2):
                    top[at].n += 1
                    await checkpoint()
                    top[at].n += 1

            async with trio.open_nursery() as nursery:
                nursery.start_soon(add, 0)
                nursery.start_soon(add, 1)

        return run

    assert sim.explore(program(True), sim.DPOR()).executions == 1
    assert sim.explore(program(False), sim.DPOR()).executions > 1
