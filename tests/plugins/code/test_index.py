"""Keeping up with a tree: what is read again, and what is kept where."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.plugins.code._code_index import LONG_AGO, ask, asked, index_of, tree_in, write
from toolrt import MemoryDisk, Registry, Runtime, State, ToolCall, Workspace
from toolrt.errors import DefinitionRefused, InputRefused, MissingExtra
from toolrt.model import LaneChanges, Services
from toolrt.plugins.code import Building, CodeIndex, _store

pytest.importorskip("tree_sitter", reason="the code extra is not installed")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tree_in(tmp_path)


def test_only_what_changed_is_read_again(root):
    """By another process as well; what was removed is gone."""
    code = index_of(root)
    assert trio.run(code.build) == 2
    assert trio.run(code.build) == 0
    write(root / "b.py", "def g():\n    return 2\n\n\ndef h():\n    g()\n")
    os.utime(root / "b.py", (LONG_AGO + 10, LONG_AGO + 10))
    assert trio.run(code.build) == 1
    assert "b.py:6 in h: g" in ask(code, "find_callers", symbol="g")
    (root / "a.py").unlink()
    assert "a.py" not in ask(code, "find_callers", symbol="g")


def test_a_change_that_no_look_shows_is_seen_while_it_is_young(root):
    """The same size and time: a file that was changed just now is read again, as its stamp tells nothing."""
    now = time.time() + 1
    (root / "b.py").write_text("def g():\n    return 1\n")
    os.utime(root / "b.py", (now, now))
    code = index_of(root)
    trio.run(code.build)
    with (root / "b.py").open("r+") as file:
        file.write("def k():\n    return 1\n")
    os.utime(root / "b.py", (now, now))
    assert ask(code, "read_symbol", symbol="k").startswith("b.py:1-2 function k")


def test_what_is_known_outlives_the_process(root):
    """In the state directory, not in the tree; and a broken store is made anew."""
    trio.run(index_of(root).build)
    assert sorted(os.listdir(root)) == ["a.py", "b.py"]
    [store] = (root.parent / "state").glob("*/code.db")
    again = index_of(root)
    assert trio.run(again.build) == 0
    assert "a.py:5 in f: g" in ask(again, "find_callers", symbol="g")
    again.close()
    store.write_bytes(b"no database" * 1000)
    for suffix in ("-wal", "-shm"):
        Path(f"{store}{suffix}").unlink(missing_ok=True)
    assert trio.run(index_of(root).build) == 2


def test_another_format_is_made_anew(root):
    trio.run(index_of(root).build)
    [store] = (root.parent / "state").glob("*/code.db")
    connection = sqlite3.connect(store)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    assert trio.run(index_of(root).build) == 2


def test_a_state_directory_that_cannot_be_made_is_no_failure(root):
    """Then it is in memory, and says so."""
    (root.parent / "state").write_text("a file")
    code = CodeIndex(Workspace(root, state_dir=root.parent / "other"), state_dir=root.parent / "state")
    assert "a.py:5 in f: g" in ask(code, "find_callers", symbol="g")
    assert str(code.problem).startswith("the state directory cannot be written")


def test_two_indexes_share_one_store(root):
    """What one has read the other need not."""
    one, other = index_of(root), index_of(root)
    assert (trio.run(one.build), trio.run(other.build)) == (2, 0)
    write(root / "c.py", "from b import g\ng()\n")
    assert trio.run(other.build) == 1
    assert "c.py:2 in the file itself: g" in ask(one, "find_callers", symbol="g")


def test_a_build_tells_how_far_it_is(root):
    told: list[Building] = []
    trio.run(index_of(root).build, told.append)
    assert [str(one) for one in told] == ["code: 0 of 2 files read", "code: 2 of 2 files read"]


def test_a_question_waits_for_a_build_in_the_background(root):
    """However many ask at once, each file is read once, and each gets the whole answer."""
    code = index_of(root)
    runtime = Runtime(Registry(code.tools()))
    calls = [ToolCall(f"id{index}", "find_callers", {"symbol": "g"}) for index in range(5)]

    async def run() -> list[Any]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(code.build)
            done = await runtime.run(calls, State())
        return [result.content for result in done.results]

    answers = trio.run(run)
    assert len(set(answers)) == 1
    assert "a.py:5 in f: g" in answers[0]


def test_a_build_that_is_cancelled_keeps_what_it_has_read(root, monkeypatch):
    """And the next one goes on from there."""
    monkeypatch.setattr("toolrt.plugins.code._index._FILES_AT_ONCE", 1)
    code = index_of(root)

    async def run() -> None:
        with trio.CancelScope() as scope:
            await code.build(lambda building: scope.cancel() if building.done else None)
        assert scope.cancelled_caught
        assert await code.build() == 1

    trio.run(run)


def test_between_lanes_it_reads_what_a_lane_changed(root):
    """So the next question finds nothing to read."""
    code = index_of(root)
    runtime = Runtime(Registry([*code.workspace.tools()]), services=Services(after_lane=[code.after_lane]))

    async def run() -> int:
        await code.build()
        await runtime.run([ToolCall("id", "write_file", {"path": "c.py", "content": "def c(): ...\n"})], State())
        assert "c.py" in code._index.files
        await code.after_lane(LaneChanges("batch", 0))
        (root / "d.py").write_text("")
        assert "d.py" not in code._index.files
        await code.after_lane(LaneChanges("batch", 0, paths=("d.py",)))
        return len(code._index.files)

    assert trio.run(run) == 4


def test_what_git_ignores_is_not_known(root):
    write(root / ".gitignore", "vendor/\n")
    write(root / "vendor" / "v.py", "def vendored(): ...\n")
    assert "which nothing is called" in str(asked(index_of(root), "find_callers", symbol="vendored").error)


def test_fts5_is_asked_for(monkeypatch):
    """A SQLite without it is refused in words."""

    class Connection(sqlite3.Connection):
        def execute(self, statement: str, *parameters: Any) -> Any:
            if "fts5" in statement:
                raise sqlite3.OperationalError("no such module: fts5")
            return super().execute(statement, *parameters)

    real = sqlite3.connect
    monkeypatch.setattr(_store.sqlite3, "connect", lambda *args, **more: real(*args, **more, factory=Connection))
    with pytest.raises(InputRefused, match="expected one with FTS5, got one that was built without it"):
        _store.FactStore(None)


def test_the_extra_is_asked_for(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    with pytest.raises(MissingExtra, match=r'"code" extra: pip install "toolrt\[code\]"'):
        CodeIndex(Workspace(MemoryDisk({})))


@pytest.mark.parametrize(("workspace", "embed"), [("no", None), (Workspace(MemoryDisk({})), 3)])
def test_what_is_no_workspace_or_function_is_refused(workspace, embed):
    with pytest.raises(DefinitionRefused):
        CodeIndex(workspace, embed=embed)


def test_no_file_is_left_open(root):
    """After `close`, not even the store's."""
    before = _open_files()
    code = index_of(root)
    trio.run(code.build)
    code.close()
    assert _open_files() <= before


def _open_files():
    """What the process has open; other tests' garbage may close its own meanwhile."""
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("looked up in /proc")
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the listing's own
            found.add(os.readlink(f"/proc/self/fd/{number}"))
    return found
