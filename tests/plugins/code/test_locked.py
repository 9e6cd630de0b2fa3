"""The index of code while another program has its database."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
import trio

from toolrt import Registry, Runtime, ToolCall, Workspace
from toolrt.model import Outcome
from toolrt.plugins.code import CodeIndex

#: Wall seconds after which the database is given back, so that a test that would wait for ever fails instead.
_LONGEST = 8


def test_code_tools_end_at_their_deadline_while_their_database_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that has to write what it read is timed out while the lock is still held; then it answers."""
    monkeypatch.setenv("TOOLRT_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_text("def one():\n    return 1\n")
    workspace = Workspace(tmp_path / "repo")
    tools = CodeIndex(workspace).tools()
    find = next(tool for tool in tools if tool.name == "find_references")
    runtime = Runtime(Registry(tools), timeout=1.0)
    calls = [ToolCall("1", find.name, {"name": "one"})]
    assert trio.run(Runtime(Registry(tools)).run, calls).results[0].outcome is Outcome.OK
    (tmp_path / "repo" / "a.py").write_text("def one():\n    return 1\n\ndef two():\n    return one()\n")
    (database,) = (tmp_path / "state").rglob("code.db")
    other = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    released = threading.Event()

    def release() -> None:
        released.set()
        other.rollback()

    timer = threading.Timer(_LONGEST, release)
    timer.start()
    outcome = trio.run(runtime.run, calls).results[0].outcome
    assert not released.is_set()
    timer.cancel()
    timer.join()
    assert outcome is Outcome.TIMED_OUT
    other.close()
    result = trio.run(Runtime(Registry(tools)).run, calls).results[0]
    assert "a.py" in str(result.content)
