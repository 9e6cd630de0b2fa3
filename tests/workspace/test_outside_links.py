"""Hard links that lead out of the workspace: a change stays inside, and the answer says what became of the link."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from toolrt import Outcome, Registry, Runtime, ToolCall, ToolResult, run_sync
from toolrt.workspace import FileProblem, HardLink, MemoryDisk, RealDisk, User, Workspace

CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"path": "a.txt", "content": "mine\n"}),
    ("edit_file", {"path": "a.txt", "old": "shared", "new": "mine"}),
    ("multi_edit", {"path": "a.txt", "edits": [{"old": "shared", "new": "mine"}]}),
    ("apply_patch", {"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-shared\n+mine\n"}),
]

WORDS = "hard links) outside the workspace"


@attrs.frozen
class Two:
    """A workspace, and a place beside it that shares its files."""

    disk: Any
    base: str

    def put(self, path: str, what: str) -> None:
        """A file, named from the base."""
        if isinstance(self.disk, MemoryDisk):
            self.disk.put(f"{self.base}/{path}", what)
        else:
            Path(self.base, path).parent.mkdir(parents=True, exist_ok=True)
            Path(self.base, path).write_text(what)

    def link(self, path: str, other: str) -> None:
        """`path` is another name of `other`."""
        if isinstance(self.disk, MemoryDisk):
            self.disk.put(f"{self.base}/{path}", HardLink(f"{self.base}/{other}"))
        else:
            Path(self.base, path).parent.mkdir(parents=True, exist_ok=True)
            os.link(Path(self.base, other), Path(self.base, path))

    def text(self, path: str) -> str:
        """What a file has, named from the base."""
        if isinstance(self.disk, MemoryDisk):
            return _twin_text(self.disk, f"{self.base}/{path}")
        return Path(self.base, path).read_text()

    def links(self, path: str) -> int:
        """How many names it has."""
        return self.disk.lstat(f"{self.base}/{path}").links


def _twin_text(disk: MemoryDisk, path: str) -> str:
    probe = disk.copy()
    probe.put("peeked", HardLink(path))
    return probe.peek(("peeked",)).decode()


@pytest.fixture(params=["real", "twin"])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Two:
    """On the real disk and on the twin."""
    if request.param == "real":
        (tmp_path / "tree").mkdir()
        return Two(RealDisk(tmp_path / "tree"), str(tmp_path))
    return Two(MemoryDisk(root="/base/tree"), "/base")


def change_in_a_batch(workspace: Workspace, change: tuple[str, dict[str, Any]]) -> tuple[str, str]:
    """Make one change of a.txt; gives the answer and the batch."""
    [result] = run(workspace, change)
    versions = trio.run(workspace.history.versions, "a.txt")
    return str(result.content), versions[-1].batch_id


def run(workspace: Workspace, *calls: tuple[str, dict[str, Any]]) -> list[ToolResult]:
    """One batch."""
    runtime = Runtime(Registry(workspace.tools()))
    return list(run_sync(runtime, [ToolCall(str(at), *call) for at, call in enumerate(calls)]).results)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change[0])
@pytest.mark.parametrize("seen", [False, True], ids=["unread", "read"])
def test_a_change_does_not_reach_a_name_outside(two: Two, change: tuple[str, dict[str, Any]], seen: bool) -> None:
    """The name in the workspace has a file of its own, the other keeps the content, and the answer says so."""
    two.put("outside.txt", "shared\n")
    two.link("tree/a.txt", "outside.txt")
    workspace = Workspace(two.disk)
    if seen:
        run(workspace, ("read_file", {"path": "a.txt"}))
    [result] = run(workspace, change)
    assert result.outcome is Outcome.OK, result
    assert WORDS in str(result.content)
    assert (two.text("tree/a.txt"), two.text("outside.txt")) == ("mine\n", "shared\n")
    assert (two.links("tree/a.txt"), two.links("outside.txt")) == (1, 1)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change[0])
def test_a_file_with_all_its_names_inside_stays_one(two: Two, change: tuple[str, dict[str, Any]]) -> None:
    """Both names show the change, deep below as well, and the answer has no more to say than before."""
    two.put("tree/a.txt", "shared\n")
    two.link("tree/deep/er/b.txt", "tree/a.txt")
    [result] = run(Workspace(two.disk), change)
    assert WORDS not in str(result.content)
    assert two.text("tree/deep/er/b.txt") == "mine\n"
    assert two.links("tree/a.txt") == 2


def test_of_three_names_only_the_changed_one_parts(two: Two) -> None:
    """The other name inside keeps what the one outside has; each is changed by its own call."""
    two.put("outside.txt", "shared\n")
    two.link("tree/a.txt", "outside.txt")
    two.link("tree/b.txt", "outside.txt")
    workspace = Workspace(two.disk)
    run(workspace, ("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"}))
    results = run(
        workspace, CHANGES[0], ("read_file", {"path": "b.txt"}), ("edit_file", {**CHANGES[1][1], "path": "b.txt"})
    )
    assert [result.outcome for result in results] == [Outcome.OK] * 3, results
    assert results[1].content == "shared\n"
    assert WORDS in str(results[2].content)
    assert two.text("outside.txt") == "shared\n"


def test_names_in_two_roots_are_all_inside(tmp_path: Path) -> None:
    """A file with a name in each of two mounted directories stays one file."""
    for name in ("tree", "docs"):
        (tmp_path / name).mkdir()
    (tmp_path / "tree/a.txt").write_text("shared\n")
    os.link(tmp_path / "tree/a.txt", tmp_path / "docs/b.txt")
    workspace = Workspace(tmp_path / "tree", mounts={"docs": tmp_path / "docs"})
    assert WORDS not in str(run(workspace, CHANGES[0])[0].content)
    assert (tmp_path / "docs/b.txt").read_text() == "mine\n"
    alone = Workspace(tmp_path / "docs")
    assert WORDS in str(run(alone, ("write_file", {"path": "b.txt", "content": "docs\n"}))[0].content)
    assert (tmp_path / "tree/a.txt").read_text() == "mine\n"


def test_an_option_keeps_hard_links(two: Two) -> None:
    """Where the workspace was asked to, the name outside shows the change, and so it does after the undo."""
    two.put("outside.txt", "shared\n")
    two.link("tree/a.txt", "outside.txt")
    workspace = Workspace(two.disk, keep_hard_links=True)
    for change in CHANGES:
        answer, batch = change_in_a_batch(workspace, change)
        assert WORDS not in answer
        assert two.text("outside.txt") == "mine\n"
        assert trio.run(workspace.history.undo, batch).parted == ()
        assert (two.text("outside.txt"), two.links("outside.txt")) == ("shared\n", 2)


def test_undo_and_restore_do_not_reach_outside(two: Two) -> None:
    """A file that has got a name outside since is put back under its own name only, and the answer says so."""
    two.put("tree/a.txt", "first\n")
    workspace = Workspace(two.disk)
    batch = change_in_a_batch(workspace, CHANGES[0])[1]
    two.link("outside.txt", "tree/a.txt")
    undone = trio.run(workspace.history.undo, batch)
    assert (undone.paths, undone.parted) == (("a.txt",), ("a.txt",))
    assert (two.text("tree/a.txt"), two.text("outside.txt")) == ("first\n", "mine\n")
    two.link("again.txt", "tree/a.txt")
    restored = trio.run(workspace.history.restore, "a.txt", 1)
    assert (restored.paths, restored.parted) == (("a.txt",), ("a.txt",))
    assert (two.text("tree/a.txt"), two.text("again.txt")) == ("mine\n", "first\n")


def test_undo_of_a_parting_leaves_the_name_outside(two: Two) -> None:
    """The content is back; the link is not, and the file outside is not touched."""
    two.put("outside.txt", "shared\n")
    two.link("tree/a.txt", "outside.txt")
    workspace = Workspace(two.disk)
    batch = change_in_a_batch(workspace, CHANGES[0])[1]
    two.put("outside.txt", "theirs\n")
    assert trio.run(workspace.history.undo, batch).paths == ("a.txt",)
    assert (two.text("tree/a.txt"), two.text("outside.txt")) == ("shared\n", "theirs\n")


def test_undo_is_refused_where_it_would_split_what_was_one(two: Two) -> None:
    """A file was changed by all its names, and one of them stands outside by now: nothing is changed."""
    two.put("tree/a.txt", "shared\n")
    two.link("tree/b.txt", "tree/a.txt")
    workspace = Workspace(two.disk)
    batch = change_in_a_batch(workspace, CHANGES[0])[1]
    two.link("outside.txt", "tree/a.txt")
    with pytest.raises(FileProblem, match="Nothing was changed"):
        trio.run(workspace.history.undo, batch)
    assert {two.text(name) for name in ("tree/a.txt", "tree/b.txt", "outside.txt")} == {"mine\n"}


@pytest.mark.seldom
def test_names_that_are_not_found_count_as_outside(tmp_path: Path) -> None:
    """Beyond ten thousand directories the search ends, and the file is not written in place."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/a.txt").write_text("shared\n")
    for number in range(10_010):
        (tmp_path / f"tree/d{number:05}").mkdir()
    (tmp_path / "tree/d00000/e").mkdir()
    os.link(tmp_path / "tree/a.txt", tmp_path / "tree/d00000/e/b.txt")
    [result] = run(Workspace(tmp_path / "tree"), CHANGES[0])
    assert WORDS in str(result.content)
    assert (tmp_path / "tree/d00000/e/b.txt").read_text() == "shared\n"


def test_links_and_mounts_do_not_make_a_name_inside(tmp_path: Path) -> None:
    """A symbolic link in the workspace to the directory outside does not bring the name in."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/b.txt").write_text("shared\n")
    os.link(tmp_path / "out/b.txt", tmp_path / "tree/a.txt")
    (tmp_path / "tree/link").symlink_to(tmp_path / "out")
    assert WORDS in str(run(Workspace(tmp_path / "tree"), CHANGES[0])[0].content)
    assert (tmp_path / "out/b.txt").read_text() == "shared\n"


def test_a_file_that_cannot_part_is_refused() -> None:
    """A copy could not have the owner of the file: the call is an error, and both names are as they were."""
    disk = MemoryDisk(root="/base/tree", user=User(7, (7,)))
    disk.put("/base/outside.txt", "shared\n", mode=0o666, owner=(8, 8))
    disk.put("/base/tree/a.txt", HardLink("/base/outside.txt"))
    [result] = run(Workspace(disk), CHANGES[0])
    assert result.outcome is Outcome.ERROR
    assert "names elsewhere" in str(result.error)
    assert "Nothing was changed" in str(result.error)
    assert _twin_text(disk, "/base/outside.txt") == "shared\n"
    kept = Workspace(disk, keep_hard_links=True)
    assert run(kept, CHANGES[0])[0].outcome is Outcome.OK


def test_mode_and_times_of_the_name_outside_stay(tmp_path: Path) -> None:
    """The mode goes along; nothing of the file outside moves but its count of names."""
    (tmp_path / "tree").mkdir()
    outside = tmp_path / "outside.sh"
    outside.write_text("shared\n")
    outside.chmod(0o750)
    os.utime(outside, (1_000_000_000, 1_000_000_000))
    os.link(outside, tmp_path / "tree/a.txt")
    run(Workspace(tmp_path / "tree"), CHANGES[0])
    assert (tmp_path / "tree/a.txt").stat().st_mode & 0o777 == 0o750
    found = outside.stat()
    assert (found.st_mode & 0o777, found.st_mtime, found.st_nlink) == (0o750, 1_000_000_000, 1)
