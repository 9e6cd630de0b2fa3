"""History where the state directory refuses: it is full, locked, damaged, gone, or never was there."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.workspace._hand import context, ended, killed, store_of, write
from toolrt.workspace import FileProblem, RealDisk, Workspace, is_own
from toolrt.workspace.change._mutation import digest_of
from toolrt.workspace.change._version import ChangeRow, EntryState
from toolrt.workspace.disk import _real_write
from toolrt.workspace.disk._disk import Kind
from toolrt.workspace.journal._history_store import HistoryStore
from toolrt.workspace.journal._memory_store import MemoryStore
from toolrt.workspace.journal._segment import Segment, records_of

OLD, NEW = b"old " * 3_000, b"new!" * 3_000

Opened = Callable[..., Workspace]


async def patch(workspace: Workspace, content: bytes, batch: str = "group") -> None:
    """One change of two files, each of which gets a content of its own."""
    revisions = [(workspace.identify(path), lambda found, path=path: content + path.encode()) for path in "ab"]
    await workspace.files.revise_all(context(batch), revisions)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    for name in "ab":
        (tmp_path / "work" / name).write_bytes(b"old")
    return tmp_path / "work"


@contextmanager
def room_for(room: int) -> Iterator[None]:
    """Files of the state directory can have `room` bytes more; as the system does, byte by byte.

    What is given back is gone: on a full disk somebody else has it at once.
    """
    write_at = os.pwrite
    left = room

    def pwrite(descriptor: int, content: Any, at: int) -> int:
        nonlocal left
        size = os.fstat(descriptor).st_size
        given = memoryview(content)[: max(0, size + left - at)]
        if not given and len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left -= max(0, at + len(given) - size)
        return write_at(descriptor, given, at)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "pwrite", pwrite)
        patched.setattr(os, "pwritev", lambda descriptor, blocks, at: pwrite(descriptor, b"".join(blocks), at))
        yield


# A full disk


@pytest.mark.parametrize("leave", [ended, killed])
@pytest.mark.parametrize("content", [b"new", NEW], ids=["small", "large"])
async def test_group_is_as_it_was_answered_whatever_room_there_is(
    tmp_path: Path, root: Path, content: bytes, leave: Callable[[Workspace], None]
) -> None:
    """All of it or nothing, and what was said of it still holds after the next start."""
    answers = set()
    for room in [*range(0, 1_200, 75), 13_000, 27_000]:
        for name in "ab":
            (root / name).write_bytes(b"old")
        workspace = Workspace(root, state_dir=tmp_path / f"state {room}")
        await write(workspace, "first", b"1", "first")
        try:
            with room_for(room):
                await patch(workspace, content)
                answers.add((True, workspace.history.problem is None))
                expected = {"a": content + b"a", "b": content + b"b", "first": b"1"}
        except FileProblem:
            answers.add((False, workspace.history.problem is None))
            expected = {"a": b"old", "b": b"old", "first": b"1"}
        assert workspace.snapshot() == expected, room
        leave(workspace)
        workspace = Workspace(root, state_dir=tmp_path / f"state {room}")
        assert workspace.snapshot() == expected, room
        ended(workspace)
    # Not even begun on the disk, cut short there, and with room for all.
    assert answers == {(True, False), (False, False), (True, True)}


async def test_refused_group_that_is_sent_again_stays(opened: Opened) -> None:
    """It is in memory by then, and the next start knows that the first try was taken back."""
    workspace = opened()
    await write(workspace, "first", b"1", "first")
    with room_for(13_000):
        with pytest.raises(FileProblem, match="history: expected all changes of one call written down") as refused:
            await patch(workspace, NEW)
        assert refused.value.retryable
        await patch(workspace, NEW)
        killed(workspace)
    assert opened().snapshot() == {"a": NEW + b"a", "b": NEW + b"b", "first": b"1"}


async def test_settling_that_fails_takes_a_group_back(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even what there was room for may fail: then the call says so."""
    workspace = opened()
    await write(workspace, "first", b"1", "first")
    log = store_of(workspace)._log
    say = log.say

    def refusing(landed: Any = (), **_: Any) -> None:
        if landed:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        say()

    monkeypatch.setattr(log, "say", refusing)
    with pytest.raises(FileProblem, match="What was changed is put back"):
        await patch(workspace, NEW)
    assert workspace.snapshot() == {"a": b"old", "b": b"old", "first": b"1"}
    monkeypatch.undo()
    killed(workspace)
    assert opened().snapshot() == {"a": b"old", "b": b"old", "first": b"1"}


async def test_how_it_ended_is_said_on_a_full_disk(opened: Opened, root: Path) -> None:
    """Room for it was kept: the next start has nothing to decide."""
    workspace = opened()
    await write(workspace, "a", b"new")
    row = ChangeRow("batch", 0, None, ("b",), ("b",), None, EntryState(Kind.FILE, digest_of(b"new")))
    void = workspace.history.store.begin([row], {})
    with room_for(0):
        workspace.history.store.end(void, False)
        await write(workspace, "c", b"new")
        assert not workspace.history.persistent
        killed(workspace)
    pending: list[Any] = []
    other = HistoryStore(store_of(workspace)._directory, 100, 10_000)

    def decide(undecided: Any, store: HistoryStore) -> list[Any]:
        pending.extend(undecided)
        return []

    other.start(decide)
    assert pending == []
    assert [row.path for row in other.rows_of_batch("batch")] == ["a"]
    other.close()


def test_append_that_is_refused_leaves_nothing_but_the_room(tmp_path: Path) -> None:
    """A record that fitted into the room kept for others is none."""
    segment = Segment.made(str(tmp_path))
    segment.append({"begun": 1}, keep=1_000)
    with room_for(0):
        with pytest.raises(OSError, match="No space"):
            segment.append({"begun": 2}, keep=1_000)
        assert [record.said for record in records_of(segment.descriptor, 0)] == [{"begun": 1}]
        segment.append({"landed": [1]}, keep=900)
    assert [record.said for record in records_of(segment.descriptor, 0)] == [{"begun": 1}, {"landed": [1]}]
    segment.close()
    [left] = tmp_path.iterdir()
    assert left.stat().st_size == segment.size


async def test_undo_of_a_batch_that_the_fall_back_is_in_the_midst_of_is_whole(opened: Opened) -> None:
    """What was written down before can still be read, and its versions keep their numbers."""
    workspace = opened()
    await write(workspace, "a", b"earlier", "earlier")
    await write(workspace, "a", b"new", index=0)
    with room_for(0):
        await write(workspace, "b", b"new", index=1)
        await write(workspace, "a", b"newer", index=2)
        assert workspace.history.problem == "history is kept in memory: No space left on device"
        assert [one.number for one in await workspace.history.versions("a")] == [1, 2, 3]
        assert await workspace.history.changed_by("batch") == ("a", "b")
        await workspace.history.undo("batch")
        assert workspace.snapshot() == {"a": b"earlier", "b": b"old"}
        await workspace.history.undo("earlier")
        assert workspace.snapshot() == {"a": b"old", "b": b"old"}


async def test_endings_that_cannot_be_written_are_known_all_the_same(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that became read-only: what happened there before is taken back with the rest."""
    workspace = opened()
    await write(workspace, "a", b"new", index=0)

    def refusing(*given: Any) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for name in ("pwrite", "pwritev", "ftruncate"):
        monkeypatch.setattr(os, name, refusing)
    await write(workspace, "b", b"new", index=1)
    assert not workspace.history.persistent
    await workspace.history.undo("batch")
    assert workspace.snapshot() == {"a": b"old", "b": b"old"}


async def test_undo_of_what_cannot_be_read_any_more_is_refused(opened: Opened, state: Path) -> None:
    """Half a batch is not taken back; a later one is."""
    workspace = opened()
    await write(workspace, "a", b"new", index=0)
    shutil.rmtree(state)
    assert await workspace.history.versions("a") == []
    await write(workspace, "b", b"new", index=1)
    with pytest.raises(FileProblem, match="batch batch: expected all that it changed, got a part"):
        await workspace.history.undo("batch")
    assert workspace.snapshot() == {"a": b"new", "b": b"new"}
    await write(workspace, "b", b"newer", "later")
    await workspace.history.undo("later")
    assert workspace.snapshot() == {"a": b"new", "b": b"new"}


def test_history_in_memory_is_one_threads_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups are settled in worker threads, and other calls end in Trio's."""
    (tmp_path / "file").write_text("")
    history = HistoryStore(str(tmp_path / "file"), 100, 10_000)
    add = MemoryStore._add
    free: list[bool] = []

    def added(store: MemoryStore, *given: Any) -> None:
        free.append(history._memory_lock.acquire(blocking=False))
        add(store, *given)

    monkeypatch.setattr(MemoryStore, "_add", added)
    row = ChangeRow("batch", 0, None, ("b",), ("b",), None, EntryState(Kind.FILE, digest_of(b"new")))
    history.end(history.begin([row], {}), True)
    history.settle([history.begin([row], {})])
    assert free == [False, False]


# What a start decided


async def test_later_start_knows_what_a_start_decided(opened: Opened, root: Path) -> None:
    """A group that was taken back is not taken back again from under a later writer of the same content."""
    workspace = opened()
    store = workspace.history.store
    contents = {digest_of(content): content for content in (b"old", b"new")}
    before, after = [EntryState(Kind.FILE, digest_of(content)) for content in (b"old", b"new")]
    store.begin([ChangeRow("batch", 0, None, ("a",), ("a",), before, after, group="unfinished")], contents)
    (root / "a").write_bytes(b"new")
    killed(workspace)
    workspace = opened()
    assert workspace.snapshot() == {"a": b"old", "b": b"old"}
    await write(workspace, "a", b"new", "later")
    ended(workspace)
    workspace = opened()
    assert workspace.snapshot() == {"a": b"new", "b": b"old"}
    assert [one.batch_id for one in await workspace.history.versions("a")] == ["later"]


# Bounds


async def test_version_that_is_listed_has_its_content(opened: Opened) -> None:
    """A content that an older segment had as well does not go with it."""
    workspace = opened(versions=80)
    await write(workspace, "first", b"X", "first")
    for number in range(30):
        await write(workspace, f"f{number}", b"f%d" % number)
    await write(workspace, "second", b"X", "second")
    await write(workspace, "second", b"Y", "later")
    lasted = 0
    for number in range(100):
        await write(workspace, f"g{number}", b"g%d" % number, f"g{number}")
        versions = await workspace.history.versions("second")
        for version in versions:
            assert workspace.history.store.content(bytes.fromhex(version.after or "")) is not None, number
        lasted += len(versions) == 2
    assert 20 < lasted < 100


# What a crash left


def killed_in_the_midst(root: Path, state: str, linked: bool, *, full: bool = False) -> None:
    """A process that dies while it writes ``d/a``; its state directory may have become full before."""
    shutil.rmtree(root)
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "a").write_bytes(OLD)
    if linked:
        (root / "h").hardlink_to(root / "d" / "a")
    child = os.fork()
    if child:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        return
    try:

        def half(descriptor: int, content: bytes) -> None:
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.write(descriptor, content[:5_000])
            os._exit(9)

        def died(*given: Any, **more: Any) -> None:
            os._exit(9)

        async def main() -> None:
            workspace = Workspace(root, state_dir=state)
            if full:
                await write(workspace, "first", b"1")
                with room_for(0):
                    await write(workspace, "second", b"2")
                    assert not workspace.history.persistent
            if linked:
                _real_write.overwrite = half
            else:
                os.replace = died
                _real_write._exchanging_rename = None
            await write(workspace, "d/a", NEW)

        trio.run(main)
    finally:
        os._exit(1)


@pytest.mark.process
@pytest.mark.parametrize("linked", [True, False], ids=["in place", "replaced"])
@pytest.mark.parametrize("case", ["no state directory", "another state directory", "full state directory"])
def test_what_a_crash_left_is_mended_by_a_start_without_its_history(
    tmp_path: Path, root: Path, case: str, linked: bool
) -> None:
    """A file that was written in place is whole, and no temporary file stays."""
    (tmp_path / "file").write_text("")
    before = str(tmp_path / ("file" if case == "no state directory" else "state"))
    after = str(tmp_path / "other") if case == "another state directory" else before
    killed_in_the_midst(root, before, linked, full=case == "full state directory")
    left = [name for name in os.listdir(root / "d") if is_own(name)]
    assert left
    assert not linked or (root / "h").read_bytes() not in (OLD, NEW)
    workspace = Workspace(root, state_dir=after)
    assert sorted(os.listdir(root / "d")) == ["a", "e"]
    assert (root / "d" / "a").read_bytes() == OLD
    assert not linked or (root / "h").stat().st_ino == (root / "d" / "a").stat().st_ino
    assert (workspace.history.problem is None) == (case != "no state directory")


@pytest.mark.process
def test_start_that_cannot_mend_all_tries_again(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that refuses ends no history; the next start finds it again, and then no more."""
    state = str(tmp_path / "state")
    killed_in_the_midst(root, state, True, full=True)
    mended: list[Any] = []
    recover = RealDisk.recover

    def refusing(disk: RealDisk, directories: Any = None) -> list[str]:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def counted(disk: RealDisk, directories: Any = None) -> list[str]:
        mended.append(list(directories))
        return recover(disk, mended[-1])

    monkeypatch.setattr(RealDisk, "recover", refusing)
    workspace = Workspace(root, state_dir=state)
    assert workspace.history.problem is None
    ended(workspace)
    monkeypatch.setattr(RealDisk, "recover", counted)
    for _ in range(2):
        ended(Workspace(root, state_dir=state))
    assert mended == [[("d",)]]
    assert (root / "d" / "a").read_bytes() == OLD
