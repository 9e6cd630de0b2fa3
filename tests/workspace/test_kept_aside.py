"""A removal that is too large for history is kept aside whole: every batch can be undone, or the call refuses first."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from tests._profile import FULL
from tests.workspace._hand import Hand, results
from tests.workspace._killed_call import LIMITS, killed_at
from toolrt import Registry, Runtime, ToolCall, Workspace
from toolrt.model import Outcome
from toolrt.workspace import (
    Directory,
    Disk,
    FileProblem,
    HardLink,
    Limits,
    MemoryDisk,
    RealDisk,
    Special,
    Symlink,
    User,
    is_own,
)

BIG = b"0123456789abcdef" * (11 * 1024 * 1024 // 16)


def outcomes(workspace: Workspace, *calls: tuple[str, dict[str, Any]], batch: str = "batch") -> list[Outcome]:
    """What came of these calls, made as one batch, one after the other."""
    return [result.outcome for result in results(workspace, *calls, batch=batch)]


DELETE = ("delete_path", {"path": "d", "recursive": True})


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory ``d`` that history cannot hold with `LIMITS`, and a file beside it."""
    monkeypatch.setenv("TOOLRT_STATE_DIR", str(tmp_path / "state"))
    root = tmp_path / "repo"
    (root / "d" / "sub").mkdir(parents=True)
    (root / "d" / "large").write_bytes(b"large" * 20_000)
    (root / "d" / "sub" / "run").write_text("#!/bin/sh\n")
    (root / "d" / "sub" / "run").chmod(0o755)
    (root / "d" / "link").symlink_to("sub/run")
    (root / "beside").write_text("beside")
    return root


def tree_of(root: Path) -> dict[str, Any]:
    """Every name below `root`, whatever it is called, with kind, permission bits and content."""
    found: dict[str, Any] = {}
    for path in sorted(root.rglob("*")):
        if ".git" in path.relative_to(root).parts:
            continue
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(root))] = (path.lstat().st_mode, content)
    return found


@pytest.mark.parametrize(
    "content",
    [
        {"d/one": BIG},
        {f"d/{number}": bytes([number]) * 1024 * 1024 for number in range(70)},
        {"d/pipe": Special(), "d/a": "a"},
    ],
    ids=["one file of 11 MiB", "70 files of 1 MiB", "a pipe"],
)
def test_deleted_directory_comes_back_with_the_rest_of_its_batch(tree: Any, content: dict[str, Any]) -> None:
    """With the limits that a workspace has by default; the other calls of the batch are undone, too."""
    for path, what in content.items():
        tree.put(path, what)
    tree.put("edited", "old")
    before = tree.workspace.snapshot()
    calls = [DELETE, ("write_file", {"path": "new", "content": "n"}), ("write_file", {"path": "d", "content": "file"})]
    calls.append(("edit_file", {"path": "edited", "old": "old", "new": "new"}))
    assert outcomes(tree.workspace, *calls) == [Outcome.OK] * 4
    assert sorted(tree.workspace.snapshot()) == ["d", "edited", "new"]
    undone = trio.run(tree.workspace.history.undo, "batch")
    assert undone.paths == ("d", "edited", "new")
    assert tree.workspace.snapshot() == before
    assert [name for name in tree.listing() if is_own(name)] == []
    redone = trio.run(tree.workspace.history.undo, undone.batch_id)
    assert sorted(tree.workspace.snapshot()) == ["d", "edited", "new"]
    trio.run(tree.workspace.history.undo, redone.batch_id)
    assert tree.workspace.snapshot() == before


def test_single_file_that_is_too_large_comes_back(tree: Any) -> None:
    """A file of 11 MiB, which no history holds, deleted by its own name."""
    tree.put("big", BIG)
    before = tree.workspace.snapshot()
    assert outcomes(tree.workspace, ("delete_path", {"path": "big"})) == [Outcome.OK]
    assert tree.workspace.snapshot() == {}
    (version,) = trio.run(tree.workspace.history.versions, "big")
    assert (version.action, version.path) == ("removed", "big")
    trio.run(tree.workspace.history.undo, "batch")
    assert tree.workspace.snapshot() == before


def test_what_was_changed_before_it_was_deleted_is_as_before_the_batch(tree: Any) -> None:
    """The batch edited a file in the directory, moved the directory, deleted it and made another."""
    tree.put("d/big", BIG)
    tree.put("d/small", "old")
    before = tree.workspace.snapshot()
    calls = [
        ("edit_file", {"path": "d/small", "old": "old", "new": "new"}),
        ("move_path", {"source": "d", "target": "e"}),
        ("delete_path", {"path": "e", "recursive": True}),
        ("write_file", {"path": "d/small", "content": "another"}),
    ]
    assert outcomes(tree.workspace, *calls) == [Outcome.OK] * 4
    trio.run(tree.workspace.history.undo, "batch")
    assert tree.workspace.snapshot() == before


@pytest.mark.process
def test_nothing_shows_what_is_kept(root: Path) -> None:
    """Neither git nor ripgrep nor a walk of ours, while it is there; and none of it is left once it is back."""
    git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *arguments], cwd=root, check=True)
    before = tree_of(root)
    workspace = Workspace(root, limits=LIMITS)
    assert outcomes(workspace, DELETE) == [Outcome.OK]
    assert [name for name in os.listdir(root) if is_own(name)]
    said = subprocess.run([*git, "status", "--porcelain"], cwd=root, capture_output=True, text=True, check=True).stdout
    assert {line[:2] for line in said.splitlines()} == {" D"}
    added = subprocess.run([*git, "add", "--dry-run", "-A"], cwd=root, capture_output=True, text=True, check=True)
    assert "toolrt" not in added.stdout
    if rg := shutil.which("rg"):
        for more in ([], ["--hidden", "--glob", "!.git"]):
            files = subprocess.run([rg, "--files", *more], cwd=root, capture_output=True, text=True, check=False).stdout
            assert files.split() == ["beside"]
    assert list(workspace.snapshot()) == [name for name in workspace.snapshot() if "toolrt" not in name]

    async def told() -> list[str]:
        calls = [
            ToolCall("1", "list_dir", {"path": "."}),
            ToolCall("2", "glob", {"pattern": "**/*"}),
            ToolCall("3", "search", {"pattern": "bin/sh"}),
        ]
        return [str(one.content) for one in (await Runtime(Registry(workspace.tools())).run(calls)).results]

    assert not any("toolrt" in text or "bin/sh" in text for text in trio.run(told))
    assert Workspace(root, limits=LIMITS).left_alone == ()
    trio.run(workspace.history.undo, "batch")
    assert tree_of(root) == before


@pytest.mark.seldom
@pytest.mark.process
def test_undone_from_another_process(root: Path) -> None:
    """``toolrt undo`` in a second terminal, while the first process lives."""
    before = tree_of(root)
    workspace = Workspace(root, limits=LIMITS)
    assert outcomes(workspace, DELETE) == [Outcome.OK]
    command = [sys.executable, "-m", "toolrt", "undo", "batch", "--workspace", str(root)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert "toolrt-" not in ended.stdout
    assert tree_of(root) == before


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("shared", [False, True], ids=["plain", "with a hard link"])
def test_killed_at_any_call_it_is_there_or_can_be_undone(root: Path, tmp_path: Path, shared: bool) -> None:
    """After a kill of the deleting process all of it stands there, or none; and then an undo puts all of it back."""
    if shared:
        os.link(root / "d" / "large", root / "other")
    before = tree_of(root)
    ends = set()
    number = 0
    killed = True
    while killed:
        killed = killed_at(root, tmp_path / "state", "delete", f"b{number}", number)
        workspace = Workspace(root, limits=LIMITS)
        standing = (root / "d").exists()
        ends.add(standing)
        left = {path: what for path, what in tree_of(root).items() if not is_own(path.split("/")[0])}
        left.pop("first", None)
        assert left == {path: what for path, what in before.items() if standing or not path.startswith("d")}, number
        if shared and not standing:
            (root / "other").write_bytes(b"written in place" * 9)
        if trio.run(workspace.history.changed_by, f"b{number}"):
            trio.run(workspace.history.undo, f"b{number}")
        assert {path: what for path, what in tree_of(root).items() if path.startswith("d")} == {
            path: what for path, what in before.items() if path.startswith("d")
        }, number
        if shared:
            (root / "other").unlink()
            os.link(root / "d" / "large", root / "other")
        number += 7 if FULL else 19
    assert ends == {True, False}
    workspace = Workspace(root, limits=LIMITS)
    outcomes(workspace, DELETE, batch="last")
    assert len([name for name in os.listdir(root) if is_own(name)]) == 1


@pytest.mark.slow
@pytest.mark.process
def test_killed_at_any_call_of_an_undo_it_can_be_undone_again(root: Path, tmp_path: Path) -> None:
    """A kill in the midst of an undo leaves the batch undone, or to be undone."""
    before = tree_of(root)
    number = 0
    killed = True
    while killed:
        outcomes(Workspace(root, limits=LIMITS), DELETE, batch=f"b{number}")
        killed = killed_at(root, tmp_path / "state", "undo", f"b{number}", number)
        workspace = Workspace(root, limits=LIMITS)
        if not (root / "d").exists():
            trio.run(workspace.history.undo, f"b{number}")
        assert {path: what for path, what in tree_of(root).items() if not is_own(path.split("/")[0])} == before
        number += 11 if FULL else 29


@pytest.mark.parametrize("how", ["changed", "more", "mode", "copied", "link", "gone", "forged box"])
def test_only_what_is_listed_and_matches_is_put_back(root: Path, tmp_path: Path, how: str) -> None:
    """A thing that was changed, exchanged or taken away since it was kept is refused, and nothing is changed."""
    workspace = Workspace(root, limits=LIMITS)
    assert outcomes(workspace, ("write_file", {"path": "beside", "content": "new"}), DELETE) == [Outcome.OK] * 2
    (box,) = [root / name for name in os.listdir(root) if is_own(name)]
    (kept,) = [path for path in box.iterdir() if path.is_dir()]
    if how == "changed":
        (kept / "sub" / "run").write_text("#!/bin/no\n")
    elif how == "more":
        (kept / "sub" / "more").write_text("")
    elif how == "mode":
        (kept / "sub" / "run").chmod(0o4755)
    elif how == "copied":
        shutil.copytree(kept, tmp_path / "copy", symlinks=True)
        shutil.rmtree(kept)
        (tmp_path / "copy").rename(kept)
    elif how == "link":
        kept.rename(tmp_path / "copy")
        kept.symlink_to(tmp_path / "copy")
    elif how == "gone":
        shutil.rmtree(box)
    else:
        box.rename(root / box.name.replace(".kept", "0.kept"))
    before = tree_of(root)
    for again in (workspace, Workspace(root, limits=LIMITS)):
        with pytest.raises(FileProblem, match=r"^d: .*Nothing was changed|^d: "):
            trio.run(again.history.undo, "batch")
        assert tree_of(root) == before
    assert (root / "beside").read_text() == "new"


@pytest.mark.parametrize("disk", ["real", "twin"])
def test_hard_link_is_not_a_copy(root: Path, tmp_path: Path, disk: str) -> None:
    """What a program writes in place by another name of a file does not change what comes back."""
    twin = MemoryDisk({"d/large": b"large" * 20_000, "d/sub/b": "b", "other": HardLink("d/large")})
    os.link(root / "d" / "large", root / "other")
    used: Disk = RealDisk(root) if disk == "real" else twin
    workspace = Workspace(used, limits=LIMITS)
    before = workspace.snapshot()
    assert outcomes(workspace, DELETE) == [Outcome.OK]
    assert used.lstat(f"{used.root}/other").links == 1
    if disk == "real":
        with open(root / "other", "r+b") as file:
            file.write(b"WRITTEN")
    else:
        trio.run(used.revise, ("other",), 1_000_000, lambda found: b"WRITTEN")
    trio.run(workspace.history.undo, "batch")
    after = workspace.snapshot()
    assert str(after.pop("other"))[2:9] == "WRITTEN"
    before.pop("other")
    assert after == before


def test_refused_before_anything_is_removed_where_it_cannot_be_kept(tree: Any) -> None:
    """More than may be kept: the call says so, and all is there; the batch before it can still be undone."""
    tree.put("d/a", b"x" * 3000)
    tree.put("e/a", b"y" * 3000)
    workspace = Workspace(tree.disk, limits=Limits(history_bytes=100, kept_bytes=4000))
    before = workspace.snapshot()
    assert outcomes(workspace, DELETE, ("delete_path", {"path": "e", "recursive": True})) == [
        Outcome.OK,
        Outcome.ERROR,
    ]
    assert "e/a" in workspace.snapshot()
    trio.run(workspace.history.undo, "batch")
    assert workspace.snapshot() == before
    small = Workspace(tree.disk, limits=Limits(history_bytes=100, kept_bytes=2000))
    assert outcomes(small, DELETE, batch="small") == [Outcome.ERROR]
    assert small.snapshot() == before


def test_twin_refuses_where_its_root_may_not_be_written_or_is_full() -> None:
    """Neither way is possible: there is no room for the copy of a shared file, or no right to keep anything."""
    shared = {"d/a": b"x" * 8000, "other": HardLink("d/a")}
    full = MemoryDisk(shared, capacity=8192)
    limits = Limits(history_bytes=100)
    before = Workspace(full).snapshot()
    assert outcomes(Workspace(full, limits=limits), DELETE) == [Outcome.ERROR]
    assert Workspace(full).snapshot() == before
    bound = MemoryDisk(user=User(1, (1,)))
    bound.put("sub", Directory())
    bound.put("sub/d/a", b"x" * 8000)
    bound.chmod("/workspace", 0o555)
    call = ("delete_path", {"path": "sub/d", "recursive": True})
    assert outcomes(Workspace(bound, limits=limits), call) == [Outcome.ERROR]
    assert bound.peek(("sub", "d", "a")) == b"x" * 8000


def test_what_is_kept_is_bounded_and_the_oldest_goes(root: Path) -> None:
    """Of five removals with room for two the last two can be undone; the others are refused, and gone from the disk."""
    shutil.rmtree(root / "d")
    workspace = Workspace(root, limits=Limits(history_bytes=1000, kept_bytes=25_000))
    for number in range(5):
        (root / "d").mkdir()
        (root / "d" / "a").write_bytes(bytes([number]) * 10_000)
        assert outcomes(workspace, DELETE, batch=f"b{number}") == [Outcome.OK]
    assert len([name for name in os.listdir(root) if is_own(name)]) == 2
    for number in range(3):
        with pytest.raises(FileProblem):
            trio.run(workspace.history.undo, f"b{number}")
    trio.run(workspace.history.undo, "b4")
    assert (root / "d" / "a").read_bytes() == b"\4" * 10_000


def test_what_history_will_not_list_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """History would list two of the 50 files in a directory: the removal sets all aside and reads few of them."""
    workspace = Workspace(MemoryDisk({f"d/{number}": str(number) for number in range(50)}), limits=Limits(versions=32))
    read, seen = MemoryDisk.read, []

    async def noted(disk: MemoryDisk, entry: tuple[str, ...], limit: int) -> Any:
        seen.append(entry)
        return await read(disk, entry, limit)

    monkeypatch.setattr(MemoryDisk, "read", noted)
    before = workspace.snapshot()
    assert outcomes(workspace, DELETE) == [Outcome.OK]
    assert len(seen) < 10
    trio.run(workspace.history.undo, "batch")
    assert workspace.snapshot() == before


def test_undo_says_that_what_was_kept_has_gone(tree: Any) -> None:
    """No other program is blamed for it."""
    workspace = Workspace(tree.workspace.disk, limits=Limits(history_bytes=40_000, kept_bytes=25_000))
    for number in range(3):
        tree.put(f"d{number}", b"d" * 20_000)
        assert outcomes(workspace, ("delete_path", {"path": f"d{number}"}), batch=f"b{number}") == [Outcome.OK]
    with pytest.raises(FileProblem, match=r"^d0: expected what was removed.*got none any more.*kept_bytes="):
        trio.run(workspace.history.undo, "b0")
    trio.run(workspace.history.undo, "b2")
    assert sorted(workspace.snapshot()) == ["d2"]


@pytest.mark.parametrize(("seconds", "left"), [(None, 2), (3600.0, 2), (0.0, 1)])
def test_what_is_kept_goes_when_it_is_older_than_it_may_be(root: Path, seconds: float | None, left: int) -> None:
    """It goes with the next removal that is kept, however much room there is; without an age it stays."""
    shutil.rmtree(root / "d")
    workspace = Workspace(root, limits=Limits(history_bytes=1000, kept_seconds=seconds))
    for number in range(2):
        (root / "d").mkdir()
        (root / "d" / "a").write_bytes(bytes([number]) * 3_000)
        assert outcomes(workspace, DELETE, batch=f"b{number}") == [Outcome.OK]
    assert len([name for name in os.listdir(root) if is_own(name)]) == left


def test_what_history_has_forgotten_goes_and_what_is_not_ours_stays(root: Path, tmp_path: Path) -> None:
    """A box whose history was deleted is gone with the next one that is kept; a planted one is left alone."""
    (root / ".toolrt-planted.kept" / "it").mkdir(parents=True)
    outcomes(Workspace(root, limits=LIMITS), DELETE, batch="first")
    (first,) = [name for name in os.listdir(root) if is_own(name) and "planted" not in name]
    for directory in (tmp_path / "state").iterdir():
        if directory.is_dir():
            shutil.rmtree(directory)
    workspace = Workspace(root, limits=LIMITS)
    assert workspace.left_alone == (".toolrt-planted.kept",)
    (root / "d").mkdir()
    (root / "d" / "large").write_bytes(b"large" * 20_000)
    outcomes(workspace, DELETE, batch="second")
    assert not (root / first).exists()
    assert (root / ".toolrt-planted.kept" / "it").is_dir()
    trio.run(workspace.history.undo, "second")
    assert (root / "d" / "large").exists()


def test_undo_is_refused_where_something_stands_by_now(tree: Any) -> None:
    """It replaces nothing; a directory that another program has changed since it came back is not kept again."""
    tree.put("d/a", b"x" * 3000)
    workspace = Workspace(tree.disk, limits=Limits(history_bytes=100))
    outcomes(workspace, DELETE)
    tree.put("d", "theirs")
    with pytest.raises(FileProblem):
        trio.run(workspace.history.undo, "batch")
    assert workspace.snapshot() == {"d": b"theirs"}
    trio.run(Hand(Workspace(tree.disk)).remove, "d")
    undone = trio.run(workspace.history.undo, "batch")
    tree.put("d/b", "theirs")
    with pytest.raises(FileProblem, match=r"^d: "):
        trio.run(workspace.history.undo, undone.batch_id)
    assert workspace.snapshot() == {"d/a": b"x" * 3000, "d/b": b"theirs"}


def test_both_disks_give_one_digest(tmp_path: Path) -> None:
    """A survey of the twin of a directory is that of the directory, but for the numbers."""
    content = {"d/a": "a", "d/sub/b": b"\0" * 9000, "d/l": Symlink("a"), "d/p": Special(), "d/e": Directory()}
    twin = MemoryDisk(content)
    (tmp_path / "d" / "sub").mkdir(parents=True)
    (tmp_path / "d" / "e").mkdir()
    (tmp_path / "d" / "a").write_text("a")
    (tmp_path / "d" / "sub" / "b").write_bytes(b"\0" * 9000)
    (tmp_path / "d" / "l").symlink_to("a")
    os.mkfifo(tmp_path / "d" / "p", 0o644)
    for disk in (twin, RealDisk(tmp_path)):
        found = trio.run(disk.survey, ("d",))
        assert (found.digest.hex(), found.size) == (trio.run(twin.survey, ("d",)).digest.hex(), 9001)


@pytest.mark.parametrize("recursive", [False, True])
def test_deletion_of_what_cannot_be_kept_reads_no_large_file(root: Path, recursive: bool) -> None:
    """Sparse files of more than may be kept are refused by their size: in the time of a look, whatever they hold."""
    read: list[int] = []

    def count(descriptor: int, size: int) -> bytes:
        content = plain(descriptor, size)
        read.append(len(content))
        return content

    plain = os.read
    path = "d/huge" if recursive else "huge"
    with open(root / path, "wb") as file:
        file.truncate(64 * 1024 * 1024)
    workspace = Workspace(root, limits=Limits(history_bytes=100, kept_bytes=32 * 1024 * 1024))
    call = DELETE if recursive else ("delete_path", {"path": path})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "read", count)
        assert outcomes(workspace, call) == [Outcome.ERROR]
    assert sum(read) < 1024 * 1024
    assert (root / path).stat().st_size == 64 * 1024 * 1024
