"""What the twin reports of its accesses is enough: the reduced exploration finds every ending that there is."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import trio

from tests._profile import FULL
from toolrt import sim
from toolrt.workspace import Directory, Folding, HardLink, MemoryDisk, Revision, Snapshot, Workspace


def appending(*entry: str) -> Callable[[MemoryDisk], Any]:
    return lambda disk: disk.revise(entry, 1000, lambda before: (b"" if before is None else before.content) + b"+")


#: What two tasks do at the same time; each touches what another may.
OPERATIONS: dict[str, Callable[[MemoryDisk], Any]] = {
    "read a": lambda disk: disk.read(("a",), 1000),
    "read hard": lambda disk: disk.read(("d", "hard"), 1000),
    "read in": lambda disk: disk.read(("d", "in"), 1000),
    "append a": appending("a"),
    "append new": appending("d", "new"),
    "append in": appending("d", "in"),
    "look hard": lambda disk: disk.look(("d", "hard")),
    "look new": lambda disk: disk.look(("d", "new")),
    "list d": lambda disk: disk.names(("d",)),
    "list root": lambda disk: disk.names(()),
    "make e": lambda disk: disk.make_dirs(("d", "e")),
    "make d/new": lambda disk: disk.make_dirs(("d", "new")),
    "remove a": lambda disk: disk.remove(("a",)),
    "remove in": lambda disk: disk.remove(("d", "in")),
    "remove empty": lambda disk: disk.remove(("empty",)),
    "remove tree d": lambda disk: disk.remove_tree(("d",)),
    "move in": lambda disk: disk.move(("d", "in"), ("empty", "out")),
    "move d": lambda disk: disk.move(("d",), ("moved",)),
    "move a": lambda disk: disk.move(("a",), ("d", "new")),
}


def told(value: Any) -> Any:
    """An answer without numbers that depend on what else was made."""
    if isinstance(value, Snapshot):
        return (value.content, value.stat.links)
    if isinstance(value, Revision):
        return (told(value.before), told(value.after))
    if isinstance(value, list):
        return [(name, stat.kind.name, stat.size, stat.links) for name, stat in value]
    return value if value is None else (value.kind.name, value.size, value.links)


def endings(names: tuple[str, ...], *, all_depend: bool, **options: Any) -> set[str]:
    """Every ending that a complete exploration finds; with `all_depend`, of every interleaving there is."""

    async def program() -> str:
        content = {"a": "one", "d/in": "two", "d/hard": HardLink("a"), "empty": Directory()}
        # A cell that every effect writes makes each of them depend on all others.
        cell = sim.Cell(0, name="all")
        touch = (lambda effect, path: cell.set(cell.get() + 1)) if all_depend else None
        disk = MemoryDisk(content, fault=touch, **options)
        answers: list[Any] = [None] * len(names)

        async def work(number: int) -> None:
            try:
                answers[number] = told(await OPERATIONS[names[number]](disk))
            except OSError as error:
                answers[number] = error.errno

        async with trio.open_nursery() as nursery:
            for number in range(len(names)):
                nursery.start_soon(work, number)
        return repr((answers, Workspace(disk).snapshot()))

    # Steps without an effect touch nothing that matters here; counted as touching everything, they would hide a gap.
    report = sim.explore(program, strategy=sim.DPOR(accesses="declared", samples=1))
    assert report.complete
    assert not report.failures
    return set(report.outcomes)


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "folding": {"fold": Folding(case=True)},
    "small": {"capacity": 12_288},
}

PAIRS = list(itertools.combinations_with_replacement(OPERATIONS, 2))


@pytest.mark.drawn(19)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("first", OPERATIONS)
def test_reduced_exploration_of_two_operations_finds_every_ending(first: str, options: dict[str, Any]) -> None:
    """Each pair, under every interleaving, and under one for each class of those that the accesses say are equal.

    Each pair is tried with all options in the full run, else with one of them.
    """
    turn = list(OPTIONS.values()).index(options)
    for number, pair in enumerate(PAIRS):
        if pair[0] == first and (FULL or number % len(OPTIONS) == turn):
            assert endings(pair, all_depend=False, **options) == endings(pair, all_depend=True, **options), pair
