"""The index of code and a change that shows the old size and the old time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.plugins.code._code_index import ask
from tests.workspace._later import LaterDisk
from toolrt.plugins.code import CodeIndex
from toolrt.workspace import RealDisk, Workspace

pytest.importorskip("tree_sitter", reason="the code extra is not installed")


@pytest.mark.parametrize("kind", [RealDisk, LaterDisk], ids=["young", "settled"])
def test_the_index_of_code_sees_a_change_that_kept_size_and_mtime(tmp_path: Path, kind: type[RealDisk]) -> None:
    """A function that was renamed is found by its new name, and not by its old one."""
    root, state = tmp_path / "work", tmp_path / "state"
    root.mkdir()
    code = CodeIndex(Workspace(kind(root), state_dir=state), state_dir=state)
    for name, other in (("old_name", "new_name"), ("new_name", "old_name")):
        (root / "a.py").write_text(f"def {name}(): pass\n")
        os.utime(root / "a.py", (1_000_000_000, 1_000_000_000))
        assert "a.py" in ask(code, "search_code", query=name)
        assert "a.py" not in ask(code, "search_code", query=other)
