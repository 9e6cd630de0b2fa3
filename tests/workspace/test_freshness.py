"""What this workspace last saw: what moves, what is forgotten, and what that costs."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrt.workspace import FileProblem, Identity, Kind, MemoryDisk, Stat, Workspace
from toolrt.workspace.change._cache import Cache, CachedEntry
from toolrt.workspace.change._freshness import Freshness
from toolrt.workspace.disk._below import NameIndex

OLD, NEW = b"old", b"new"


class NeverScanned(OrderedDict[Any, Any]):
    """Who goes through all of it is refused."""

    def __iter__(self) -> Any:
        raise AssertionError("scanned")


def identity(path: str, inode: int = 1, links: int = 1) -> Identity:
    """A file's, with this number and so many names."""
    workspace = Workspace(MemoryDisk({path: ""}))
    found = Stat(Kind.FILE, 0o644, 0, 0, 0, inode, 1, links)
    return attrs.evolve(workspace.identify(path), found=found)


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
    first, last = identity("a", links=2), identity("b", links=1)
    seen.saw(first, OLD)
    seen.saw(attrs.evolve(first, key=("a",)), None, own=True)
    assert seen.expected_at(("c",), first.found) == (OLD,)
    seen.saw(last, None, own=True)
    assert seen.expected_at(("c",), first.found) is None


def test_number_of_a_file_that_was_replaced_is_anybodys() -> None:
    """Its name has another one since."""
    seen = Freshness(10)
    seen.saw(identity("a", links=2), OLD)
    seen.saw(identity("a", links=1), NEW, own=True)
    assert seen.expected_at(("c",), identity("c", links=2).found) is None
    assert seen.expected_at(("a",), identity("a", inode=2).found) == (NEW,)


def test_a_move_costs_what_moves() -> None:
    """Nobody goes through all that is remembered."""
    seen, cache = Freshness(10_000), Cache[bytes]("stored", 10_000, 10_000)
    seen._seen = NeverScanned()
    seen._below._held = seen._seen
    cache._parts = NeverScanned()
    cache._below._held = cache._parts
    for name in ("d/x", "d/y", "e"):
        seen.saw(identity(name), OLD)
        cache.keep(tuple(name.split("/")), CachedEntry((1, 1, 1, 1), OLD, b"", 1))
    seen.moved(("d",), ("f",))
    cache.drop_below(("d",))
    assert [seen.expected_at(("f", name), None) for name in "xyz"] == [(OLD,), (OLD,), None]
    assert seen.expected_at(("d", "x"), None) == (None,)
    assert cache.statistics()["entries"] == 1


names = st.lists(st.sampled_from("ab"), min_size=1, max_size=4).map(tuple)


@given(st.lists(st.tuples(st.booleans(), names), max_size=30), names)
def test_below_finds_what_a_scan_finds(steps: list[tuple[bool, tuple[str, ...]]], wanted: tuple[str, ...]) -> None:
    """Whatever came and went; and nothing is left when all has gone."""
    held: dict[tuple[str, ...], None] = {}
    below = NameIndex(held)
    for comes, name in steps:
        if comes:
            held[name] = None
            below.add(name)
        elif name in held:
            del held[name]
            below.drop(name)
        for directory in (wanted, ()):
            assert sorted(below.at(directory)) == sorted(one for one in held if one[: len(directory)] == directory)
    for name in list(held):
        del held[name]
        below.drop(name)
    assert not below._in


def test_forgotten_files_leave_no_directories_behind() -> None:
    """What is remembered is bounded, and so is what finds it."""
    seen = Freshness(2)
    for number in range(10):
        seen.saw(identity(f"d{number}/x"), OLD)
    assert len(seen._below._in) <= 3
