"""What this workspace last saw: what moves, what is forgotten, and what that costs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrt.workspace import FileProblem, Kind, Stat
from toolrt.workspace.change._cache import Cache, CachedEntry
from toolrt.workspace.change._freshness import Freshness
from toolrt.workspace.disk._below import NameMemory

OLD, NEW = b"old", b"new"


class NeverScanned(NameMemory[Any]):
    """Who goes through all of it is refused."""

    def __iter__(self) -> Any:
        raise AssertionError("scanned")


def look(inode: int = 1, links: int = 1) -> Stat:
    """At a file with this number and so many names."""
    return Stat(Kind.FILE, 0o644, 0, 0, 0, inode, 1, links)


async def do(call: Any, tree: Any, *steps: tuple[str, dict[str, Any]]) -> None:
    for name, input in steps:
        await call(tree, name, **input)


async def test_what_was_moved_to_a_known_name_is_what_it_was(tree, call):
    """That nothing was seen there, or that it was removed, says nothing of what was moved there since."""
    for path in ("a", "b", "c"):
        tree.put(path, path)
    with pytest.raises(FileProblem):
        await call(tree, "read_file", path="new")
    await do(
        call,
        tree,
        ("move_path", {"source": "a", "target": "new"}),
        ("edit_file", {"path": "new", "old": "a", "new": "x"}),
        ("delete_path", {"path": "b"}),
        ("move_path", {"source": "c", "target": "b"}),
        ("edit_file", {"path": "b", "old": "c", "new": "y"}),
    )
    assert tree.workspace.snapshot() == {"b": b"y", "new": b"x"}


async def test_what_was_moved_below_a_known_directory_is_what_it_was(tree, call):
    """The names below it, too."""
    tree.put("d/x", "one")
    tree.put("e/x", "two")
    await do(
        call,
        tree,
        ("read_file", {"path": "d/x"}),
        ("delete_path", {"path": "d", "recursive": True}),
        ("move_path", {"source": "e", "target": "d"}),
        ("edit_file", {"path": "d/x", "old": "two", "new": "three"}),
    )
    assert tree.workspace.snapshot() == {"d/x": b"three"}


async def test_what_was_seen_and_moved_is_still_compared(tree, call):
    """Somebody else's change after the move is a conflict."""
    tree.put("a", "a")
    tree.put("b", "b")
    await do(
        call,
        tree,
        ("read_file", {"path": "a"}),
        ("delete_path", {"path": "b"}),
        ("move_path", {"source": "a", "target": "b"}),
    )
    tree.put("b", "theirs")
    with pytest.raises(FileProblem, match="another writer"):
        await call(tree, "write_file", path="b", content="mine")


def test_number_of_a_file_whose_last_name_went_is_anybodys() -> None:
    """The system gives it to another file, which was never seen."""
    seen = Freshness(10)
    seen.saw(("a",), look(links=2), OLD)
    seen.saw(("a",), look(links=2), None, own=True)
    assert seen.expected(("c",), look(links=2)) == (OLD,)
    seen.saw(("b",), look(), None, own=True)
    assert seen.expected(("c",), look(links=2)) is None


def test_number_of_a_file_that_was_replaced_is_anybodys() -> None:
    """Its name has another one since."""
    seen = Freshness(10)
    seen.saw(("a",), look(links=2), OLD)
    seen.saw(("a",), look(), NEW, own=True)
    assert seen.expected(("c",), look(links=2)) is None
    assert seen.expected(("a",), look(inode=2)) == (NEW,)


def test_a_move_costs_what_moves() -> None:
    """Nobody goes through all that is remembered."""
    seen, cache = Freshness(10_000), Cache[bytes]("stored", 10_000, 10_000)
    seen._seen, cache._kept = NeverScanned(), NeverScanned()
    for path in ("d/x", "d/y", "e"):
        name = tuple(path.split("/"))
        seen.saw(name, look(), OLD)
        cache.keep(name, CachedEntry((1, 1, 1, 1, 1), OLD, b"", 1))
    seen.moved(("d",), ("f",))
    cache.drop(("d",))
    assert [seen.expected(("f", name), None) for name in "xyz"] == [(OLD,), (OLD,), None]
    assert seen.expected(("d", "x"), None) == (None,)
    assert cache.statistics()["entries"] == 1


names = st.lists(st.sampled_from("ab"), min_size=1, max_size=4).map(tuple)


@given(st.lists(st.tuples(st.booleans(), names), max_size=30), names)
def test_below_finds_what_a_scan_finds(steps: list[tuple[bool, tuple[str, ...]]], wanted: tuple[str, ...]) -> None:
    """Whatever came and went; and nothing is left when all has gone."""
    memory: NameMemory[int] = NameMemory()
    for value, (comes, name) in enumerate(steps):
        if comes:
            memory.use(name, value)
            assert next(reversed(memory)) == name
        elif name in memory:
            memory.forget(name)
        for directory in (wanted, ()):
            assert sorted(memory.below(directory)) == sorted(
                one for one in memory if one[: len(directory)] == directory
            )
    for name in list(memory):
        memory.forget(name)
    assert not memory._in


def test_forgotten_files_leave_no_directories_behind() -> None:
    """What is remembered is bounded, and so is what finds it."""
    seen = Freshness(2)
    for number in range(10):
        seen.saw((f"d{number}", "x"), look(), OLD)
    assert len(seen._seen._in) <= 3
