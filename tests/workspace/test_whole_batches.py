"""A batch that is larger than history: it is refused further changes, and no part of a batch is undone alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.workspace._hand import results
from toolrt import Workspace
from toolrt.model import Outcome
from toolrt.workspace import FileProblem, Limits, MemoryDisk

ROWS = Limits(versions=40)
BYTES = Limits(history_bytes=400_000)


def write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    """A call that writes a file."""
    return "write_file", {"path": path, "content": content}


@pytest.fixture(params=["memory", "real", "mounted"])
def opened(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a workspace with those limits."""
    monkeypatch.setenv("TOOLRT_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "repo").mkdir()

    def make(limits: Limits) -> Workspace:
        if request.param == "memory":
            return Workspace(MemoryDisk(), limits=limits)
        mounts = {"m": MemoryDisk()} if request.param == "mounted" else None
        return Workspace(tmp_path / "repo", limits=limits, mounts=mounts)

    return make


@pytest.mark.parametrize("limits", [ROWS, BYTES], ids=["versions", "bytes"])
def test_batch_that_fills_history_is_refused_and_undone_whole(opened: Any, limits: Limits) -> None:
    """Its own first rows are never pushed out: the calls beyond the bound are refused, and the undo takes all back."""
    workspace = opened(limits)
    results(workspace, write("a", "before"), batch="earlier")
    before = workspace.snapshot()
    size = 1 if limits is ROWS else 40_000
    calls = [write(f"f{number}", f"{number:02}" * size) for number in range(100)]
    done = results(workspace, write("a", "changed"), *calls)
    outcomes = [result.outcome for result in done]
    assert outcomes[:4] == [Outcome.OK] * 4
    assert outcomes[-1] is Outcome.ERROR
    assert "at most" in (done[-1].error or "")
    assert "batch batch" in (done[-1].error or "")
    assert f"f{len(calls) - 1}" not in workspace.snapshot()
    undone = trio.run(workspace.history.undo, "batch")
    assert workspace.snapshot() == before
    trio.run(workspace.history.undo, undone.batch_id)
    assert workspace.snapshot()["a"] == b"changed"
    assert results(workspace, write("z", "z"), batch="next")[0].outcome is Outcome.OK


@pytest.mark.parametrize("tool", ["edit_file", "delete_path", "move_path", "make_dir", "apply_patch"])
def test_each_tool_that_changes_files_is_refused_first(opened: Any, tool: str) -> None:
    """Whatever the call would do, nothing of it is done."""
    workspace = opened(ROWS)
    inputs: dict[str, dict[str, Any]] = {
        "edit_file": {"path": "a", "old": "0", "new": "1"},
        "delete_path": {"path": "a"},
        "move_path": {"source": "a", "target": "b"},
        "make_dir": {"path": "d"},
        "apply_patch": {"patch": "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n"},
    }
    done = results(workspace, *(write("a", f"{number:03}") for number in range(60)), (tool, inputs[tool]))
    assert done[-1].outcome is Outcome.ERROR
    assert "history" in (done[-1].error or "")
    assert {*workspace.snapshot()} - {"m/"} == {"a"}


def test_call_that_has_begun_is_made_whole(opened: Any) -> None:
    """It began below the bound: its later files are beyond it, and the next call is refused."""
    workspace = opened(Limits(versions=2))
    patch = "".join(f"--- /dev/null\n+++ b/f{number}\n@@ -0,0 +1 @@\n+text\n" for number in range(5))
    done = results(workspace, ("apply_patch", {"patch": patch}), write("next", "text"))
    assert [result.outcome for result in done] == [Outcome.OK, Outcome.ERROR]
    assert {*workspace.snapshot()} - {"m/"} == {f"f{number}" for number in range(5)}


def test_batch_that_lost_its_first_rows_is_not_undone_in_part(opened: Any, tmp_path: Path) -> None:
    """Later batches have pushed out a part of it; the undo says so and changes nothing, also with a new index."""
    workspace = opened(ROWS)
    results(workspace, *(write(f"f{number}", "mine") for number in range(20)))
    for number in range(60):
        results(workspace, write("other", f"{number}"), batch=f"later-{number}")
        if len(trio.run(workspace.history.changed_by, "batch")) < 20:
            break
    before = workspace.snapshot()
    for path in (tmp_path / "state").rglob("index.db*"):
        os.unlink(path)
    assert 0 < len(trio.run(workspace.history.changed_by, "batch")) < 20
    with pytest.raises(FileProblem, match="a part"):
        trio.run(workspace.history.undo, "batch")
    assert workspace.snapshot() == before
    assert trio.run(workspace.history.undo, f"later-{number}").paths == ("other",)
