"""`check_tool` of the file tools that a workspace brings."""

from __future__ import annotations

from typing import Any

import pytest

from toolrt.testing import check_tool
from toolrt.workspace import Directory, MemoryDisk, Workspace

TREE = {"a.txt": "one", "b.txt": "two\nthree\n", "d/c.txt": "one\ntwo\n", "d/e/f.py": "x = 1\n", "empty": Directory()}


PATCH = "--- a/b.txt\n+++ b/b.txt\n@@ -1,2 +1,2 @@\n two\n-three\n+3\n"


#: What each file tool of the workspace is asked: what works and what it refuses.
OF_FILE_TOOLS: dict[str, list[Any]] = {
    "read_file": [{"path": "a.txt"}, {"path": "./a.txt"}, {"path": "missing.txt"}, {"path": "d"}],
    "write_file": [
        {"path": "a.txt", "content": "x"},
        {"path": "new/c.txt", "content": "y"},
        {"path": "new/d.txt", "content": "z"},
    ],
    "edit_file": [
        {"path": "a.txt", "old": "one", "new": "1"},
        {"path": "d/c.txt", "old": "one", "new": "1"},
        {"path": "a.txt", "old": "gone", "new": "x"},
    ],
    "multi_edit": [
        {"path": "b.txt", "edits": [{"old": "two", "new": "2"}, {"old": "three", "new": "3"}]},
        {"path": "d/c.txt", "edits": [{"old": "gone", "new": "x"}]},
    ],
    "apply_patch": [{"patch": PATCH}, {"patch": PATCH.replace("b.txt", "missing.txt")}, {"patch": "no patch"}],
    "list_dir": [{"path": "."}, {"path": "d"}, {"path": "a.txt"}, {"path": "empty"}],
    "glob": [{"pattern": "**/*.txt"}, {"pattern": "*.py", "path": "d"}],
    "search": [{"pattern": "one"}, {"pattern": "t.o", "path": "d"}, {"pattern": "("}],
    "make_dir": [{"path": "made"}, {"path": "made/deep/er"}, {"path": "d"}],
    "move_path": [
        {"source": "a.txt", "target": "z.txt"},
        {"source": "d/e", "target": "moved"},
        {"source": "missing", "target": "y"},
    ],
    "delete_path": [{"path": "b.txt"}, {"path": "empty"}, {"path": "missing"}],
    "change_dir": [{"path": "d"}, {"path": "missing"}],
}


@pytest.mark.parametrize("name", sorted(OF_FILE_TOOLS))
def test_file_tools_of_the_workspace_keep_their_promises(name: str) -> None:
    """The tools that toolrt brings are the first to be checked."""
    index = next(at for at, made in enumerate(Workspace(MemoryDisk({})).tools()) if made.name == name)
    broken = check_tool(lambda workspace: workspace.tools()[index], OF_FILE_TOOLS[name], workspace=TREE, executions=8)
    assert broken == [], "\n".join(map(str, broken))


def test_every_file_tool_of_the_workspace_is_checked() -> None:
    """A tool that is added to the workspace is added here."""
    assert sorted(OF_FILE_TOOLS) == sorted(made.name for made in Workspace(MemoryDisk({})).tools())
