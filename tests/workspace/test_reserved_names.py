"""Names that the disk keeps for itself are refused by every file tool, before anything is touched."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import trio

from toolrt import Registry, Runtime, ToolCall, Workspace
from toolrt.model import Outcome
from toolrt.services import parallel_edit_tool
from toolrt.workspace import FileProblem, Folding, MemoryDisk, Symlink, is_own

RESERVED = [
    ".toolrt-notes.tmp",
    ".toolrt-notes.undo",
    ".toolrt-notes.kept",
    ".toolrt-.tmp",
    ".TOOLRT-Notes.TMP",
    "./d/../.toolrt-notes.tmp",
    ".toolrt-dir.tmp/new.txt",
    "d/.toolrt-dir.kept/sub/new.txt",
    ".toolrt-dir.tmp/../new.txt",
]

FREE = [".toolrt-notes.txt", ".toolrt.tmp", "toolrt-notes.tmp", "a.toolrt-notes.tmp", ".toolrt-notes.tmp.txt", "d/.tmp"]

PATCH = "--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+new\n"

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"path": None, "content": "mine"}),
    ("read_file", {"path": None}),
    ("edit_file", {"path": None, "old": "a", "new": "b"}),
    ("multi_edit", {"path": None, "edits": [{"old": "a", "new": "b"}]}),
    ("list_dir", {"path": None}),
    ("make_dir", {"path": None}),
    ("change_dir", {"path": None}),
    ("delete_path", {"path": None, "recursive": True}),
    ("move_path", {"source": None, "target": "moved"}),
    ("move_path", {"source": "a", "target": None}),
    ("glob", {"pattern": "*", "path": None}),
    ("search", {"pattern": "mine", "path": None}),
]


def everything(tree: Any) -> list[str]:
    return sorted(tree.workspace.snapshot())


@pytest.mark.parametrize("there", [False, True], ids=["nothing there", "something there"])
@pytest.mark.parametrize("path", RESERVED)
async def test_every_tool_refuses_a_reserved_name(tree: Any, call: Any, path: str, there: bool) -> None:
    """Also as a directory on the way, whatever stands there; nothing is made, changed or deleted."""
    tree.put("a", "a")
    tree.put("d/b", "b")
    if there:
        for name in (".toolrt-notes.tmp", ".toolrt-notes.undo", ".toolrt-dir.tmp/new.txt", "d/.toolrt-dir.kept/sub/x"):
            tree.put(name, "mine")
    before = everything(tree)
    for name, input in CALLS:
        with pytest.raises(FileProblem, match=r"reserved.*toolrt"):
            await call(tree, name, **{key: path if value is None else value for key, value in input.items()})
    with pytest.raises(FileProblem, match=r"reserved.*toolrt"):
        await call(tree, "apply_patch", patch="--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n" + PATCH.format(path=path))
    with pytest.raises(FileProblem, match=r"reserved.*toolrt"):
        renamed = f"diff --git a/a b/{path}\nsimilarity index 100%\nrename from a\nrename to {path}\n"
        await call(tree, "apply_patch", patch=renamed)
    assert everything(tree) == before
    assert tree.workspace.snapshot()["a"] == b"a"


@pytest.mark.parametrize("path", FREE)
async def test_other_names_are_free(tree: Any, call: Any, path: str) -> None:
    """A name that only begins or only ends so is a name like any other: written, shown and there after a start."""
    assert not is_own(path.rpartition("/")[2])
    await call(tree, "write_file", path=path, content="mine")
    await call(tree, "edit_file", path=path, old="mine", new="yours")
    await call(tree, "apply_patch", patch=PATCH.format(path=path.replace("d/", "e/") + "2"))
    assert "yours" in await call(tree, "read_file", path=path)
    Workspace(tree.disk)
    tree.disk.recover()
    assert tree.workspace.snapshot()[path] == b"yours"


async def test_links_do_not_lead_to_reserved_names(tree: Any, call: Any) -> None:
    """Neither a link to such a name nor one that has it leads anywhere."""
    tree.put("d/a", "a")
    tree.put(".toolrt-x.kept/it/a", "mine")
    tree.put("link", Symlink(".toolrt-x.kept/it"))
    tree.put(".toolrt-l.tmp", Symlink("d"))
    for path in ("link/a", "link/b", ".toolrt-l.tmp/a"):
        with pytest.raises(FileProblem, match="reserved"):
            await call(tree, "write_file", path=path, content="other")
        with pytest.raises(FileProblem, match="reserved"):
            await call(tree, "read_file", path=path)
    await call(tree, "delete_path", path="link")
    assert tree.workspace.snapshot()["d/a"] == b"a"


def test_reserved_names_are_refused_by_any_spelling_where_the_disk_folds() -> None:
    """On a disk that folds letters another spelling is the same name."""
    disk = MemoryDisk({".toolrt-x.kept/it": "mine"}, fold=Folding(case=True, unicode=True))
    workspace = Workspace(disk)
    calls = [
        ToolCall(str(at), "write_file", {"path": path, "content": "other"})
        for at, path in enumerate((".TOOLRT-X.KEPT/it", ".Toolrt-x.Kept/it", ".toolrt-x.\u212aept/it"))
    ]
    done = trio.run(Runtime(Registry(workspace.tools())).run, calls)
    assert {result.outcome for result in done.results} == {Outcome.ERROR}
    assert all("reserved" in str(result.error) for result in done.results)
    assert disk.peek((".toolrt-x.kept", "it")) == b"mine"


def test_batch_and_parallel_edit_refuse_before_anything(tmp_path: Path) -> None:
    """The other parts of one call are not made either; the other calls of the batch are."""
    (tmp_path / "repo").mkdir()
    workspace = Workspace(tmp_path / "repo", state_dir=tmp_path / "state")
    for name in ("a", "b"):
        (tmp_path / "repo" / name).write_text("one\n")
    edits = [{"old": "one", "new": "two"}]
    parts = [{"path": "a", "edits": edits}, {"path": ".toolrt-b.tmp", "edits": edits}]
    calls = [
        ToolCall("1", "parallel_edit_files", {"parts": parts}),
        ToolCall("2", "write_file", {"path": ".toolrt-notes.tmp", "content": "mine"}),
        ToolCall("3", "write_file", {"path": "b", "content": "two\n"}),
    ]
    registry = Registry([*workspace.tools(), parallel_edit_tool(workspace)])
    done = trio.run(Runtime(registry).run, calls)
    assert [result.outcome for result in done.results][1:] == [Outcome.ERROR, Outcome.OK]
    assert "reserved" in str(done.results[1].error)
    assert "reserved" in f"{done.results[0].error} {done.results[0].content}"
    assert sorted(os.listdir(tmp_path / "repo")) == ["a", "b"]
    assert (tmp_path / "repo" / "b").read_text() == "two\n"


@pytest.mark.seldom
@pytest.mark.process
def test_command_line_says_what_is_reserved(tmp_path: Path) -> None:
    """``toolrt run`` shows the refusal, and the name is not there afterwards."""
    (tmp_path / "repo").mkdir()
    calls = '[{"id": "1", "name": "write_file", "input": {"path": ".toolrt-notes.tmp", "content": "mine"}}]'
    command = ["toolrt", "run", "-", "--workspace", str(tmp_path / "repo")]
    ended = subprocess.run(command, input=calls, capture_output=True, text=True, check=False, timeout=120)
    assert "reserved" in ended.stdout
    assert os.listdir(tmp_path / "repo") == []
