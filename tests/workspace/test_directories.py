"""A directory and what is in it are ordered with each other: listing, making, moving and deleting, by every name.

Each batch has one ending, that of the oracle, on a real directory with real threads and on the twin under many
schedules.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.workspace._everywhere import everywhere
from toolrt.workspace import Directory, HardLink, Symlink


def write(path: str, content: str) -> Any:
    return "write_file", {"path": path, "content": content}


def edit(path: str, old: str, new: str) -> Any:
    return "edit_file", {"path": path, "old": old, "new": new}


def read(path: str) -> Any:
    return "read_file", {"path": path}


def move(source: str, target: str) -> Any:
    return "move_path", {"source": source, "target": target}


def delete(path: str, recursive: bool = False) -> Any:
    return "delete_path", {"path": path, "recursive": recursive}


def make(path: str) -> Any:
    return "make_dir", {"path": path}


def list_dir(path: str) -> Any:
    return "list_dir", {"path": path}


@pytest.mark.seldom
def test_move_takes_along_what_was_written_before_it() -> None:
    """What siblings wrote before the move is at the new place, what they wrote after it where they said."""
    ending = everywhere(
        {"d/a.txt": "one"},
        write("d/b.txt", "before"),
        edit("d/a.txt", "one", "1"),
        move("d", "e"),
        write("d/c.txt", "after"),
        read("e/a.txt"),
        edit("e/b.txt", "before", "behind"),
    )
    assert ending.outcomes == ["ok"] * 6
    assert ending.files == {"e/a.txt": b"1", "e/b.txt": b"behind", "d/c.txt": b"after"}


def test_move_claims_both_ends() -> None:
    """Who reads or writes at the target is ordered with the move too."""
    ending = everywhere(
        {"a.txt": "one"}, read("b.txt"), move("a.txt", "b.txt"), read("b.txt"), read("a.txt"), write("a.txt", "new")
    )
    assert ending.outcomes == ["error", "ok", "ok", "error", "ok"]
    assert ending.files == {"a.txt": b"new", "b.txt": b"one"}


def test_moves_in_a_ring_end_as_their_order_says() -> None:
    """Three moves that use each other's names."""
    ending = everywhere({"a": "A", "b": "B"}, move("a", "c"), move("b", "a"), move("c", "b"), move("a", "b"))
    assert ending.outcomes == ["ok", "ok", "ok", "error"]
    assert ending.files == {"a": b"B", "b": b"A"}


@pytest.mark.seldom
def test_delete_sees_what_was_written_before_it() -> None:
    """A directory is deleted with what siblings wrote into it before, and not with what they write after."""
    ending = everywhere(
        {"d/a.txt": "one"},
        write("d/deep/b.txt", "two"),
        delete("d", True),
        read("d/a.txt"),
        write("d/deep/c.txt", "three"),
    )
    assert ending.outcomes == ["ok", "ok", "error", "ok"]
    assert ending.files == {"d/deep/c.txt": b"three"}


def test_empty_directory_is_one_when_its_turn_comes() -> None:
    """Whether a directory is empty is looked at in its turn."""
    ending = everywhere({"d/a.txt": "one"}, delete("d"), delete("d/a.txt"), delete("d"), list_dir("."))
    assert ending.outcomes == ["error", "ok", "ok", "ok"]
    assert ending.files == {}


@pytest.mark.seldom
def test_made_directory_may_be_moved_and_deleted_in_one_batch() -> None:
    """What was not there when the batch began has the same claims as when it is."""
    ending = everywhere({}, make("d"), write("d/a", "one"), move("d", "e/f"), make("d"), delete("d"), list_dir("e"))
    assert ending.outcomes == ["ok"] * 6
    assert ending.files == {"e/f/a": b"one"}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", ["d", "way", "e/..//d", "{root}/d"])
def test_listing_sees_the_writes_before_it_and_none_after(name: str) -> None:
    """A directory that is listed by any name holds what the calls before it wrote, by any name."""
    ending = everywhere(
        {"d": Directory(), "e": Directory(), "way": Symlink("d")},
        list_dir(name),
        write("way/a.txt", ""),
        list_dir(name),
        delete("d/a.txt"),
        write("d/b.txt", ""),
        list_dir(name),
    )
    assert ending.outcomes == ["ok"] * 6
    listed = [str(ending.results[place][1]) for place in (0, 2, 5)]
    assert [("a.txt" in text, "b.txt" in text) for text in listed] == [(False, False), (True, False), (False, True)]


def test_link_is_moved_and_deleted_itself() -> None:
    """What it leads to stays; who goes through it afterwards is told, or finds it at its new place."""
    ending = everywhere(
        {"d/a.txt": "one", "way": Symlink("d")},
        edit("way/a.txt", "one", "two"),
        delete("way"),
        edit("d/a.txt", "two", "three"),
    )
    assert ending.outcomes == ["ok"] * 3
    assert ending.files == {"d/a.txt": b"three"}


def test_name_through_a_link_that_was_deleted_means_what_it_does_in_series() -> None:
    """An earlier call of the batch took the link away: the name is that of a new file, not of one beyond it."""
    ending = everywhere(
        {"d/a.txt": "one", "way": Symlink("d")}, delete("way"), write("way/a.txt", "stray"), read("d/a.txt")
    )
    assert ending.outcomes == ["ok", "ok", "ok"]
    assert ending.results[2][1] == "one"
    assert ending.files == {"d/a.txt": b"one", "way/a.txt": b"stray"}


def test_name_through_a_directory_that_became_a_link_is_looked_up_again() -> None:
    """A directory moved away and a link moved in its place: the next call by that name is refused, not misled."""
    ending = everywhere(
        {"d/a.txt": "one", "link": Symlink("e"), "e/a.txt": "other"},
        move("d", "old"),
        move("link", "d"),
        edit("d/a.txt", "one", "stray"),
        read("e/a.txt"),
    )
    assert ending.outcomes == ["ok", "ok", "error", "ok"]
    assert ending.results[3][1] == "other"


@pytest.mark.parametrize("last", [delete("hard.txt"), move("hard.txt", "moved.txt"), write("hard.txt", "new")])
def test_siblings_by_another_hard_link_trip_no_freshness(last: Any) -> None:
    """A file with two names was read by one and changed by the other, all in this session: that is no conflict."""
    ending = everywhere(
        {"a.txt": "one", "hard.txt": HardLink("a.txt")}, read("hard.txt"), edit("a.txt", "one", "two"), last
    )
    assert ending.outcomes == ["ok"] * 3


def test_search_is_ordered_with_a_write_by_another_hard_link() -> None:
    """A file below may be changed by a name that is not below."""
    ending = everywhere(
        {"d/a.txt": "needle\n", "hard.txt": HardLink("d/a.txt")},
        ("search", {"pattern": "needle", "path": "d"}),
        write("hard.txt", "hay\n"),
        ("search", {"pattern": "needle", "path": "d"}),
    )
    assert ["a.txt" in str(content) for _, content, _ in ending.results] == [True, False, False]


def test_change_of_the_working_directory_counts_from_the_next_call() -> None:
    """The same name means another file before and after it; both are ordered with who spells them out."""
    ending = everywhere(
        {"a.txt": "<0>", "d/a.txt": "<9>"},
        edit("a.txt", "<0>", "<1>"),
        ("change_dir", {"path": "d"}),
        edit("a.txt", "<9>", "<8>"),
        edit("../a.txt", "<1>", "<2>"),
        edit("{root}/d/a.txt", "<8>", "<7>"),
    )
    assert ending.outcomes == ["ok"] * 5
    assert ending.files == {"a.txt": b"<2>", "d/a.txt": b"<7>"}
    assert str(ending.state.working_dir) == "d"
