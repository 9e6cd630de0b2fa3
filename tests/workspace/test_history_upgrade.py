"""A history that an earlier version wrote is read, and its killed writer's changes are decided as before."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import trio

from toolrt.workspace import Limits, RealDisk, Workspace, state_directory
from toolrt.workspace.journal import _index

#: Two sessions in one segment, as written before decision 058: three batches of changes, a change that did not happen,
#: and a session that was killed with two changes and a group of two under way.
RECORDED = Path(__file__).parent / "recorded" / "history-1.segment"

#: The tree when the writer was killed: of the two changes one had happened, of the group the first.
TREE = {"a": "half", "d/b": "three", "e/c": "three", "l": "last", "new": "new"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    for name, content in TREE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    directory = Path(state_directory(RealDisk(root), tmp_path / "state") or "")
    directory.mkdir(parents=True)
    (directory / "segment-00000001.log").write_bytes(RECORDED.read_bytes())
    return root


async def test_recorded_history_is_read_settled_and_undone(root: Path, tmp_path: Path) -> None:
    """Versions, restore and undo are as they were in the version that wrote it."""
    workspace = Workspace(root, state_dir=tmp_path / "state")
    assert workspace.history.problem is None
    found = {"a": b"two", "d/b": b"three", "e/c": b"three", "l": b"last", "new": b"new"}
    assert workspace.snapshot() == found
    listed = {}
    for path in ("a", "d/b", "c", "e/c", "l", "new", "never"):
        versions = await workspace.history.versions(path)
        listed[path] = [(version.number, version.batch_id, version.action) for version in versions]
    assert listed == {
        "a": [(1, "first", "created"), (2, "second", "changed")],
        "d/b": [(1, "first", "created"), (2, "second", "changed")],
        "c": [(1, "second", "created"), (2, "third", "moved to e/c")],
        "e/c": [(1, "third", "moved from c")],
        "l": [(1, "fourth", "created")],
        "new": [(1, "killed", "created")],
        "never": [],
    }
    for batch in ("killed", "fourth", "third", "second"):
        await workspace.history.undo(batch)
    assert workspace.snapshot() == {"a": b"one", "d/b": b"one"}
    await workspace.history.restore("a", 2)
    assert workspace.snapshot() == {"a": b"two", "d/b": b"one"}
    assert (await workspace.history.versions("a"))[-1].number == 4
    workspace.history.store.close()  # type: ignore[attr-defined]
    workspace = Workspace(root, state_dir=tmp_path / "state")
    assert [version.number for version in await workspace.history.versions("a")] == [1, 2, 3, 4]


@pytest.mark.parametrize("what", ["damaged", "locked", "a directory"])
def test_index_of_an_earlier_version_changes_no_answer(root: Path, tmp_path: Path, what: str) -> None:
    """Earlier versions kept an index in SQLite beside the segments; whatever its state, it is not needed."""
    index = next(tmp_path.rglob("segment-*.log")).parent / "index.db"
    other = None
    if what == "damaged":
        index.write_bytes(b"no database at all" * 1000)
    elif what == "locked":
        other = sqlite3.connect(index, isolation_level=None)
        other.execute("CREATE TABLE rows (number INTEGER)")
        other.execute("BEGIN EXCLUSIVE")
    else:
        index.mkdir()
    workspace = Workspace(root, state_dir=tmp_path / "state")
    assert len(trio.run(workspace.history.versions, "a")) == 2
    assert workspace.history.persistent
    assert index.exists() == (what == "a directory")
    if other is not None:
        other.close()


def test_start_reads_no_segment_that_an_earlier_start_settled(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what was written since may have a change to decide; the settled segment is read when history is asked."""
    state, small = tmp_path / "state", Limits(history_bytes=8 * 5_000)
    for _ in range(2):
        workspace = Workspace(root, state_dir=state, limits=small)
        workspace.history.store.close()  # type: ignore[attr-defined]
    monkeypatch.setattr(_index, "records_of", None)
    workspace = Workspace(root, state_dir=state, limits=small)
    assert workspace.history.problem is None
    monkeypatch.undo()
    assert len(trio.run(workspace.history.versions, "a")) == 2
