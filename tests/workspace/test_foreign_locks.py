"""No tool waits for a lock that another program holds: it goes on without, or gives up when its deadline comes."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from toolrt import Registry, Runtime, ToolCall, Workspace
from toolrt.model import Outcome
from toolrt.workspace import RealDisk

#: Wall seconds after which a lock is given back, so that a test that would wait for ever fails instead.
_LONGEST = 8


@contextmanager
def locked(path: Path) -> Iterator[threading.Event]:
    """Another open file holds a lock on `path`; gives what is set once it does not any more."""
    descriptor = os.open(path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    released = threading.Event()

    def release() -> None:
        released.set()
        fcntl.flock(descriptor, fcntl.LOCK_UN)

    timer = threading.Timer(_LONGEST, release)
    timer.start()
    try:
        yield released
    finally:
        timer.cancel()
        timer.join()
        os.close(descriptor)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLRT_STATE_DIR", str(tmp_path / "state"))
    for name in ("d/one", "d/sub/two", "e/three"):
        (tmp_path / "repo" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "repo" / name).write_text(name)
    return tmp_path / "repo"


def run(workspace: Workspace, *calls: tuple[str, dict[str, Any]]) -> list[Outcome]:
    asked = [ToolCall(str(at), name, input) for at, (name, input) in enumerate(calls)]
    return [one.outcome for one in trio.run(Runtime(Registry(workspace.tools())).run, asked).results]


@pytest.mark.parametrize("where", [".", "d", "d/sub", "d/one"])
def test_tools_do_not_wait_for_a_lock_on_what_is_the_users(root: Path, where: str) -> None:
    """A directory or a file that another program has locked is read, changed, moved and deleted all the same."""
    workspace = Workspace(root)
    with locked(root / where) as released:
        outcomes = run(
            workspace,
            ("read_file", {"path": "d/one"}),
            ("edit_file", {"path": "d/one", "old": "one", "new": "1"}),
            ("move_path", {"source": "d/sub", "target": "d/moved"}),
            ("delete_path", {"path": "d", "recursive": True}),
        )
        assert not released.is_set()
    assert outcomes == [Outcome.OK] * 4
    assert sorted(workspace.snapshot()) == ["e/three"]
    assert [name for name in os.listdir(root) if name.endswith(".tmp")] == []


def test_every_lock_is_asked_for_without_waiting(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes, history, undo, a new start and a damaged index: none of their locks may wait."""
    asked: list[int] = []
    really = fcntl.flock

    def flock(descriptor: int, operation: int) -> None:
        asked.append(operation)
        really(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    for _ in range(2):
        workspace = Workspace(root)
        run(
            workspace,
            ("write_file", {"path": "d/new", "content": "x"}),
            ("edit_file", {"path": "d/one", "old": "one", "new": "1"}),
            ("delete_path", {"path": "d", "recursive": True}),
        )
        trio.run(workspace.history.undo, trio.run(workspace.history.versions, "d/new")[-1].batch_id)
        RealDisk(root).recover()
        workspace.history.store.close()  # type: ignore[attr-defined]
    assert len(asked) > 10
    assert all(operation & (fcntl.LOCK_NB | fcntl.LOCK_UN) for operation in asked)


def test_new_segment_that_another_start_took_is_left_to_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start of another process may take a segment before its maker has locked it, and keep it for its whole life."""
    really = fcntl.flock
    taken: list[int] = []

    def flock(descriptor: int, operation: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if "segment-" in path and not taken:
            taken.append(os.open(path, os.O_RDWR))
            really(taken[0], fcntl.LOCK_EX)
        assert operation & fcntl.LOCK_NB, "a wait that may never end"
        really(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    workspace = Workspace(root)
    assert run(workspace, ("write_file", {"path": "a", "content": "x"})) == [Outcome.OK]
    assert taken
    assert workspace.history.problem is None
    assert len(trio.run(workspace.history.versions, "a")) == 1
    os.close(taken[0])


def test_history_does_not_wait_for_an_index_that_is_locked(root: Path) -> None:
    """Undo and versions answer while another program has the index of an earlier version for itself."""
    workspace = Workspace(root)
    run(workspace, ("write_file", {"path": "a", "content": "x"}))
    trio.run(workspace.history.versions, "a")
    (directory,) = {path.parent for path in (root.parent / "state").rglob("segment-*.log")}
    index = directory / "index.db"
    other = sqlite3.connect(index, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    released = threading.Event()

    def release() -> None:
        released.set()
        other.rollback()

    timer = threading.Timer(_LONGEST, release)
    timer.start()
    (version,) = trio.run(workspace.history.versions, "a")
    trio.run(workspace.history.undo, version.batch_id)
    assert not released.is_set()
    timer.cancel()
    timer.join()
    other.close()
    assert not (root / "a").exists()


def test_file_of_ours_that_a_program_locks_at_once_ends_in_an_error(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that locks whatever is new makes a write fail after some tries, and leaves the tree as it was."""
    really = fcntl.flock
    held: list[int] = []

    def flock(descriptor: int, operation: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if ".toolrt-" in path:
            held.append(os.open(path, os.O_RDONLY))
            really(held[-1], fcntl.LOCK_EX)
        really(descriptor, operation)

    workspace = Workspace(root)
    before = workspace.snapshot()
    monkeypatch.setattr(fcntl, "flock", flock)
    assert run(workspace, ("write_file", {"path": "d/one", "content": "x"})) == [Outcome.ERROR]
    for descriptor in held:
        os.close(descriptor)
    assert workspace.snapshot() == before
