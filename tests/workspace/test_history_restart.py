"""History in a state directory: over restarts, crashes, several processes, and without a place to write to."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from tests.workspace._hand import context, ended, entry, killed, write
from toolrt.workspace import FileProblem, RealDisk, Symlink, Workspace
from toolrt.workspace.change._mutation import digest_of
from toolrt.workspace.change._version import ChangeRow, EntryState
from toolrt.workspace.disk._disk import Kind
from toolrt.workspace.journal._history_store import HistoryStore
from toolrt.workspace.journal._segment import Segment


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def row(path: str, before: bytes | None, after: bytes | None, **more: Any) -> ChangeRow:
    standing = [None if one is None else EntryState(Kind.FILE, digest_of(one)) for one in (before, after)]
    key = tuple(path.split("/"))
    return ChangeRow("batch", 0, None, key, key, *standing, **more)


def begin(workspace: Workspace, *rows: ChangeRow, **contents: bytes) -> Any:
    return workspace.history.store.begin(rows, {digest_of(content): content for content in contents.values()})


async def test_nothing_is_written_before_the_first_mutation(opened, state, root):
    """Reading leaves no trace; the workspace's own directory never has one."""
    (root / "a").write_text("one")
    workspace = opened()
    await workspace.files.read(context(), workspace.identify("a"))
    assert await workspace.history.versions("a") == []
    assert not state.exists()
    await write(workspace, "a", b"two")
    assert workspace.history.persistent
    assert state.exists()
    assert workspace.snapshot() == {"a": b"two"}


async def test_state_is_for_the_user_alone(opened, state):
    """It has the contents of files."""
    await write(workspace := opened(), "a", b"one")
    await workspace.history.versions("a")
    [directory] = state.iterdir()
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o77 for path in directory.iterdir()} == {0}


async def test_versions_survive_a_restart(opened):
    """And can be restored and undone."""
    workspace = opened()
    await write(workspace, "a", b"one", "first")
    await write(workspace, "a", b"two", "second")
    ended(workspace)
    workspace = opened()
    assert [one.action for one in await workspace.history.versions("a")] == ["created", "changed"]
    await workspace.history.undo("second")
    assert workspace.snapshot() == {"a": b"one"}
    ended(workspace)
    workspace = opened()
    await workspace.history.restore("a", 2)
    assert workspace.snapshot() == {"a": b"two"}
    assert len(await workspace.history.versions("a")) == 4


async def test_batches_of_one_name_are_told_apart_by_session(opened):
    """A counter that begins anew: the last one is meant."""
    for path in "ab":
        workspace = opened()
        await write(workspace, path, b"one", "batch-1")
        ended(workspace)
    workspace = opened()
    await workspace.history.undo("batch-1")
    assert workspace.snapshot() == {"a": b"one"}


async def test_a_workspace_that_is_dropped_says_what_happened(opened):
    """Without being closed."""
    workspace = opened()
    await write(workspace, "a", b"one")
    del workspace
    import gc

    gc.collect()
    decided = []
    HistoryStore.start(opened().history.store, lambda pending, store: decided.extend(pending) or [])
    assert decided == []


async def test_two_workspaces_share_one_history(opened):
    """Each sees what the other did, in the order it happened."""
    first, second = opened(), opened()
    await write(first, "a", b"one", "first")
    await write(second, "a", b"two", "second")
    await write(second, "b", b"two", "second")
    found = await first.history.versions("a")
    assert [one.batch_id for one in found] == ["first", "second"]
    await first.history.undo("second")
    assert first.snapshot() == {"a": b"one"}


CHILD = """
import sys, trio
from types import SimpleNamespace
from toolrt.model import EVERYTHING, State
from toolrt.workspace import Workspace

async def main(root, state, name, count):
    workspace = Workspace(root, state_dir=state)
    for number in range(count):
        context = SimpleNamespace(batch_id=name, call_index=number, state=State(), claims=(EVERYTHING,))
        identity = workspace.identify(f"{name}-{number % 3}")
        await workspace.files.revise(context, identity, lambda found: b"%d" % number)
        if number % 10 == 0:
            assert len(await workspace.history.versions(f"{name}-0")) == number // 3 + 1
    assert workspace.history.problem is None, workspace.history.problem

trio.run(main, *sys.argv[1:4], int(sys.argv[4]))
"""


@pytest.mark.seldom
async def test_several_processes_write_one_history(opened, root, state):
    """At once; nobody loses a version."""
    async with trio.open_nursery() as nursery:
        for name in ("x", "y"):
            nursery.start_soon(trio.run_process, [sys.executable, "-c", CHILD, str(root), str(state), name, "40"])
    workspace = opened()
    for name in ("x", "y"):
        assert [len(await workspace.history.versions(f"{name}-{number}")) for number in range(3)] == [14, 13, 13]


# What a killed writer leaves


async def test_change_that_landed_is_a_version(opened, root):
    """Nobody said so, but the disk does."""
    workspace = opened()
    await write(workspace, "a", b"one")
    killed(workspace)
    assert [one.action for one in await opened().history.versions("a")] == ["created"]


async def test_change_that_did_not_land_is_none(opened, root):
    """It was written down, and then the process died."""
    workspace = opened()
    (root / "a").write_text("old")
    begin(workspace, row("a", b"old", b"new"), old=b"old", new=b"new")
    killed(workspace)
    workspace = opened()
    assert await workspace.history.versions("a") == []
    assert workspace.snapshot() == {"a": b"old"}


async def test_what_somebody_found_tells_what_happened(opened, root):
    """Where the file is neither old nor new, the next change of it knows."""
    for found, versions in ((b"old", 1), (b"new", 2)):
        workspace, other = opened(), opened()
        (root / "a").write_text("old")
        begin(workspace, row("a", b"old", b"new"), old=b"old", new=b"new")
        (root / "a").write_bytes(found)
        await write(other, "a", b"theirs")
        killed(workspace)
        ended(other)
        assert len(await opened().history.versions("a")) == versions
        for path in root.parent.glob("state/*/*"):
            path.unlink()


async def test_living_writers_are_left_alone(opened, root):
    """What another process is about to do is shown as done until it says otherwise, and decided by nobody else."""
    workspace = opened()
    (root / "a").write_text("old")
    token = begin(workspace, row("a", b"old", b"new"), old=b"old", new=b"new")
    other = opened()
    assert await workspace.history.versions("a") == []
    assert len(await other.history.versions("a")) == 1
    workspace.history.store.end(token, False)
    assert await workspace.history.versions("a") == []
    assert await other.history.versions("a") == []


async def test_unfinished_group_is_taken_back(opened, root):
    """Whatever part of it had been done; what somebody else has changed since stays."""
    group = {"group": "unfinished"}
    rows = [
        attrs.evolve(row("d", None, None, **group), after=EntryState(Kind.DIRECTORY)),
        row("d/a", None, b"new", **group),
        row("b", b"old", b"new", **group),
        row("c", b"old", b"new", **group),
        row("e", b"old", None, **group),
        row("f", b"old", b"new", **group),
    ]
    workspace = opened()
    for name in "bcef":
        (root / name).write_text("old")
    for one in rows:
        begin(workspace, one, old=b"old", new=b"new")
    (root / "d").mkdir()
    (root / "d" / "a").write_text("new")
    (root / "b").write_text("new")
    (root / "c").write_text("theirs")
    (root / "e").unlink()
    killed(workspace)
    workspace = opened()
    assert workspace.history.problem is None
    assert workspace.snapshot() == {"b": b"old", "c": b"theirs", "e": b"old", "f": b"old"}
    for path in ("d/a", "b", "c", "e", "f"):
        assert await workspace.history.versions(path) == []


class Crash(BaseException):
    """The process is gone: nothing that comes after happens."""


class Crashes:
    """Ends everything at one operation of the disk or of the journal below `state`, before it or after it.

    Other journals, of tests before, may say their last words at any time: when they are collected.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, state: Path) -> None:
        self.count = 0
        self.at = at
        for name in ("revise", "make_dirs", "remove", "remove_tree", "move"):
            monkeypatch.setattr(RealDisk, name, self.wrapped(getattr(RealDisk, name)))
        append = Segment.append

        def appended(segment: Segment, *args: Any, **options: Any) -> None:
            ours = Path(segment.directory).is_relative_to(state)
            if ours:
                self.step()
            append(segment, *args, **options)
            if ours:
                self.step()

        monkeypatch.setattr(Segment, "append", appended)

    def wrapped(self, operation: Any) -> Any:
        async def run(*args: Any) -> Any:
            self.step()
            done = await operation(*args)
            self.step()
            return done

        return run

    def step(self) -> None:
        self.count += 1
        if 0 <= self.at < self.count:
            raise Crash


GROUP = {"a": b"new", "d/b": b"new", "c": None}


async def change_group(workspace: Workspace) -> None:
    revisions = [(workspace.identify(path), lambda found, new=new: new) for path, new in GROUP.items()]
    await workspace.files.revise_all(context(), revisions)


async def undo_group(workspace: Workspace) -> None:
    await workspace.history.undo("batch")


@pytest.mark.parametrize("what", [change_group, undo_group])
async def test_group_is_whole_after_a_crash_at_every_operation(tmp_path, monkeypatch, what):
    """Before or after any of them: all or nothing, and history knows which."""
    at, ended_well = 0, False
    outcomes = []
    while not ended_well:
        base = tmp_path / f"{at}"
        (base / "work").mkdir(parents=True)
        (base / "work" / "a").write_text("old")
        (base / "work" / "c").write_text("old")
        workspace = Workspace(base / "work", state_dir=base / "state")
        await write(workspace, "first", b"", "before")
        if what is undo_group:
            await change_group(workspace)
        with monkeypatch.context() as patch:
            Crashes(patch, at, base / "state")
            try:
                await what(workspace)
                ended_well = True
            except Crash:
                pass
        killed(workspace)
        workspace = Workspace(base / "work", state_dir=base / "state")
        assert workspace.history.problem is None
        found = workspace.snapshot()
        del found["first"]
        assert found in ({"a": b"old", "c": b"old"}, {"a": b"new", "d/b": b"new"}), at
        done = (found["a"] == b"new") == (what is change_group)
        expected = (what is undo_group) + done
        assert [len(await workspace.history.versions(path)) for path in GROUP] == [expected] * 3, at
        outcomes.append(done)
        ended(workspace)
        at += 1
    # Nothing happened up to one operation, and everything from there on.
    assert outcomes == sorted(outcomes)
    assert outcomes[-1]
    assert len(outcomes) > 10


async def test_finished_group_stays(opened, root):
    """That it was complete is written down before it is said."""
    workspace = opened()
    revisions = [(workspace.identify(path), lambda found: b"new") for path in ("a", "d/b")]
    await workspace.files.revise_all(context(), revisions)
    killed(workspace)
    workspace = opened()
    assert workspace.snapshot() == {"a": b"new", "d/b": b"new"}
    assert len(await workspace.history.versions("a")) == 1


async def test_undone_batch_survives_a_kill(opened, root):
    """An undo is a group too; so is the move in it."""
    workspace = opened()
    (root / "m").write_text("old")
    ends = [entry(workspace, path) for path in ("m", "d/m")]
    await workspace.files.move(context(), *ends)
    await write(workspace, "a", b"new")
    await workspace.history.undo("batch")
    killed(workspace)
    workspace = opened()
    assert workspace.snapshot() == {"m": b"old"}
    assert [one.action for one in await workspace.history.versions("a")] == ["created", "removed"]


async def test_record_that_was_cut_off_was_never_written(opened, root, state):
    """What comes after it can be read."""
    workspace = opened()
    await write(workspace, "a", b"one")
    ended(workspace)
    [segment] = state.glob("*/segment-*.log")
    whole = segment.read_bytes()
    segment.write_bytes(whole + whole[-30:] + b"trt1")
    workspace = opened()
    await write(workspace, "a", b"two")
    ended(workspace)
    assert len(await opened().history.versions("a")) == 2


# Without a place to write to


async def test_state_that_cannot_be_written_fails_no_call(root, tmp_path):
    """History goes on in memory, and says so without a path."""
    (tmp_path / "file").write_text("")
    workspace = Workspace(root, state_dir=tmp_path / "file")
    assert not workspace.history.persistent
    await write(workspace, "a", b"one")
    assert len(await workspace.history.versions("a")) == 1
    await workspace.history.undo("batch")
    assert workspace.snapshot() == {}
    assert workspace.history.problem == "history is kept in memory: the state directory cannot be written"


async def test_state_that_fails_later_fails_no_call(opened, monkeypatch):
    """A full disk, say: what comes after is in memory, and what was before can still be read."""
    workspace = opened()
    await write(workspace, "a", b"one")

    def full(*args: Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", full)
        await write(workspace, "a", b"two")
    await write(workspace, "a", b"three")
    assert not workspace.history.persistent
    assert workspace.history.problem == "history is kept in memory: No space left on device"
    assert [one.action for one in await workspace.history.versions("a")] == ["created", "changed", "changed"]
    assert workspace.snapshot() == {"a": b"three"}


async def test_state_inside_the_workspace_is_asked_for(tmp_path, monkeypatch):
    """Where the user's state directory is inside the workspace, history is in memory unless a place is named."""
    monkeypatch.delenv("TOOLRT_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    workspace = Workspace(tmp_path)
    await write(workspace, "a", b"one")
    assert workspace.snapshot() == {"a": b"one"}
    assert "inside the workspace" in workspace.history.problem
    workspace = Workspace(tmp_path, state_dir=tmp_path / "state")
    await write(workspace, "a", b"two")
    assert workspace.history.persistent


@pytest.mark.parametrize("variable", ["TOOLRT_STATE_DIR", "XDG_STATE_HOME", "HOME"])
async def test_state_directory_is_the_users(root, tmp_path, monkeypatch, variable):
    """The most specific variable that is set says where."""
    for name in ("TOOLRT_STATE_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "there"))
    await write(Workspace(root), "a", b"one")
    below = {"TOOLRT_STATE_DIR": "*", "XDG_STATE_HOME": "toolrt/*", "HOME": ".local/state/toolrt/*"}[variable]
    assert len(list((tmp_path / "there").glob(f"{below}/segment-*.log"))) == 1


# Bounds


async def test_history_on_disk_is_bounded(opened, state):
    """By bytes, over several sessions; the newest versions are there, and numbers stay."""
    limit = 400_000
    for session in range(4):
        workspace = opened(history_bytes=limit)
        for number in range(30):
            await write(workspace, "a", b"%d %d " % (session, number) + os.urandom(10_000))
        ended(workspace)
    size = sum(path.stat().st_size for path in state.glob("*/segment-*.log"))
    assert limit * 6 // 8 < size < limit * 10 // 8
    workspace = opened(history_bytes=limit)
    found = await workspace.history.versions("a")
    assert [one.number for one in found] == list(range(121 - len(found), 121))
    await workspace.history.restore("a", found[0].number)
    with pytest.raises(FileProblem, match="a version from"):
        await workspace.history.restore("a", 1)


async def test_versions_on_disk_are_bounded(opened, state):
    """By their number, too."""
    workspace = opened(versions=80)
    for number in range(300):
        await write(workspace, "a", b"%d" % number, f"{number}")
    assert 60 <= len(await workspace.history.versions("a")) <= 100
    assert workspace.history.statistics()["versions"] <= 100


async def test_contents_are_kept_once(opened, state):
    """What a recent segment has is not written again."""
    workspace = opened()
    contents = [os.urandom(100_000) for _ in range(2)]
    for number in range(20):
        await write(workspace, "a", contents[number % 2])
    assert sum(path.stat().st_size for path in state.glob("*/segment-*.log")) < 250_000


@pytest.mark.process
async def test_forked_child_has_a_session_of_its_own(opened, root):
    """Two processes never write one segment."""
    workspace = opened()
    await write(workspace, "a", b"one")
    child = os.fork()
    if not child:
        begin(workspace, row("a", b"one", b"two", time_ns=workspace.disk.now_ns()), two=b"two")
        os._exit(0)
    os.waitpid(child, 0)  # noqa: ASYNC222  it does nothing else
    ended(opened())
    await write(workspace, "a", b"three")
    assert [one.action for one in await workspace.history.versions("a")] == ["created", "changed"]
    ended(workspace)
    assert [one.action for one in await opened().history.versions("a")] == ["created", "changed"]


async def test_removed_link_is_in_history(opened, root):
    """With its text."""
    workspace = opened()
    (root / "l").symlink_to("a")
    await workspace.files.remove(context(), entry(workspace, "l"))
    ended(workspace)
    [version] = await opened().history.versions("l")
    assert (version.action, version.before) == ("removed", digest_of(b"a").hex())
    assert Symlink("a").target == "a"
