"""History where real directories and disks in memory stand side by side: each has it where it would be alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

import toolrt
from tests.workspace._hand import killed
from toolrt import ToolCall
from toolrt.invariants import require
from toolrt.workspace import FileProblem, MemoryDisk, Workspace
from toolrt.workspace.change._mutation import digest_of
from toolrt.workspace.change._version import ChangeRow, EntryState
from toolrt.workspace.disk._disk import Kind


@attrs.frozen
class World:
    """A workspace with a real part and one in memory; `open` is the next process's, whose memory is new."""

    open: Callable[[], Workspace]
    #: The real directory, and the two parts' names in the workspace.
    root: Path
    real: str
    passing: str


@pytest.fixture(params=["memory is mounted", "memory is the root"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    root = tmp_path.resolve() / "files"
    root.mkdir()
    (root / "a.txt").write_text("one\n")

    def opened() -> Workspace:
        memory = MemoryDisk({"n.txt": "one\n"}, root="/memory")
        if request.param == "memory is the root":
            return Workspace(memory, mounts={"real": root}, state_dir=tmp_path / "state")
        return Workspace(root, mounts={"memory": memory}, state_dir=tmp_path / "state")

    if request.param == "memory is the root":
        return World(opened, root, "real/", "")
    return World(opened, root, "", "memory/")


def change(workspace: Workspace, batch: str, *calls: tuple[str, dict[str, Any]]) -> None:
    """One batch, all of whose calls succeed."""

    async def run() -> Any:
        runtime = toolrt.Runtime(toolrt.Registry(workspace.tools()))
        async with runtime.open_batch(batch_id=batch) as opened:
            for number, (name, given) in enumerate(calls):
                opened.submit(ToolCall(f"id{number}", name, given))
        return opened.outcome

    with toolrt.record() as recorder:
        outcome = trio.run(run)
    require(recorder.trace())
    assert [result.error for result in outcome.results] == [None] * len(calls)


def edit_both(world: World, workspace: Workspace, batch: str) -> None:
    patch = "".join(
        f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-one\n+two\n"
        for name in (f"{world.real}a.txt", f"{world.passing}n.txt")
    )
    change(
        workspace,
        batch,
        ("apply_patch", {"patch": patch}),
        ("write_file", {"path": f"{world.real}new/b.txt", "content": "b"}),
        ("write_file", {"path": f"{world.passing}new/b.txt", "content": "b"}),
    )


def test_one_process_undoes_a_batch_of_both(world: World) -> None:
    """All of it, or nothing: also where only one of the two was changed by somebody else."""
    workspace = world.open()
    before = workspace.snapshot()
    assert (workspace.history.persistent, workspace.history.problem) == (True, None)
    edit_both(world, workspace, "mine")
    changed = workspace.snapshot()
    (world.root / "a.txt").write_text("somebody else\n")
    with pytest.raises(FileProblem, match=f"{world.real}a.txt"):
        trio.run(workspace.history.undo, "mine")
    (world.root / "a.txt").write_text("two\n")
    assert workspace.snapshot() == changed
    undone = trio.run(workspace.history.undo, "mine")
    names = ("a.txt", "new", "new/b.txt")
    assert undone.paths == tuple(
        sorted(
            [f"{world.real}{name}" for name in names] + [f"{world.passing}{name.replace('a.', 'n.')}" for name in names]
        )
    )
    assert workspace.snapshot() == before
    for name in (f"{world.real}a.txt", f"{world.passing}n.txt"):
        assert [version.action for version in trio.run(workspace.history.versions, name)] == ["changed"] * 2
        assert trio.run(workspace.history.restore, name, 1).paths == (name,)
    assert workspace.history.statistics() == {"versions": 14, "bytes": 2 * (4 + 4 + 1)}


def test_a_later_process_undoes_what_was_real(world: World) -> None:
    """What was in memory is gone, and so are its versions; the rest is as it would be without it."""
    first = world.open()
    edit_both(world, first, "mine")
    killed(first)
    again = world.open()
    assert (world.root / "a.txt").read_text() == "two\n"
    assert trio.run(again.history.versions, f"{world.passing}n.txt") == []
    [version] = trio.run(again.history.versions, f"{world.real}a.txt")
    assert version.batch_id == "mine"
    undone = trio.run(again.history.undo, "mine")
    assert undone.paths == tuple(f"{world.real}{name}" for name in ("a.txt", "new", "new/b.txt"))
    assert (world.root / "a.txt").read_text() == "one\n"
    assert not (world.root / "new").exists()


def test_batches_of_one_name_are_told_apart_by_session(world: World) -> None:
    """A batch that changed only what is in memory is not taken for an earlier session's of the same id."""
    edit_both(world, world.open(), "batch")
    again = world.open()
    change(again, "batch", ("edit_file", {"path": f"{world.passing}n.txt", "old": "one", "new": "three"}))
    assert trio.run(again.history.changed_by, "batch") == (f"{world.passing}n.txt",)
    assert trio.run(again.history.undo, "batch").paths == (f"{world.passing}n.txt",)
    assert (world.root / "a.txt").read_text() == "two\n"


def test_an_unfinished_group_is_taken_back_where_it_was_real(world: World, tmp_path: Path) -> None:
    """As its writer was killed in the middle of a patch: by the next start, which has another memory."""
    first = world.open()
    rows = []
    for name, after in ((f"{world.real}a.txt", b"two\n"), (f"{world.passing}n.txt", b"in memory only\n")):
        key = tuple(name.split("/"))
        standing = [EntryState(Kind.FILE, digest_of(content)) for content in (b"one\n", after)]
        rows.append(ChangeRow("mine", 0, None, key, key, *standing, group="unfinished"))
    contents = (b"one\n", b"two\n", b"in memory only\n")
    first.history.store.begin(rows, {digest_of(content): content for content in contents})
    (world.root / "a.txt").write_text("two\n")
    killed(first)
    again = world.open()
    assert again.history.problem is None
    assert (world.root / "a.txt").read_text() == "one\n"
    assert trio.run(again.history.versions, f"{world.real}a.txt") == []
    assert b"in memory only" not in kept_in(tmp_path / "state")


def kept_in(state: Path) -> bytes:
    return b"".join(path.read_bytes() for path in state.rglob("*") if path.is_file())


def test_contents_of_memory_are_not_written_to_the_state_directory(world: World, tmp_path: Path) -> None:
    """Not one of them: whoever mounts a disk in memory may want that nothing of it stays."""
    workspace = world.open()
    write = {"path": f"{world.passing}n.txt", "content": "in memory only\n"}
    change(workspace, "mine", ("write_file", write), ("write_file", {"path": f"{world.real}b.txt", "content": "b\n"}))
    patch = "".join(
        f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-{old}\n+{new}\n"
        for name, old, new in (
            (f"{world.real}a.txt", "one", "real"),
            (f"{world.passing}n.txt", "in memory only", "this too"),
        )
    )
    change(workspace, "more", ("apply_patch", {"patch": patch}))
    assert len(trio.run(workspace.history.versions, f"{world.passing}n.txt")) == 2
    kept = kept_in(tmp_path / "state")
    assert b"real\n" in kept
    assert b"in memory only" not in kept
    assert b"this too" not in kept


def test_the_path_of_a_disk_in_memory_is_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's state directory is not inside of it, though its path begins so."""
    monkeypatch.delenv("TOOLRT_STATE_DIR", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path.resolve() / "memory/state"))
    (tmp_path / "files").mkdir()
    memory = MemoryDisk(root=str(tmp_path.resolve() / "memory"))
    assert Workspace(tmp_path / "files", mounts={"memory": memory}).history.persistent
