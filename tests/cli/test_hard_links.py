"""Hard links that lead out of the directory, from the command line."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A directory with a file that has another name outside."""
    (tmp_path / "work").mkdir()
    (tmp_path / "outside.txt").write_text("shared\n")
    os.link(tmp_path / "outside.txt", tmp_path / "work/a.txt")
    (tmp_path / "calls.json").write_text(
        json.dumps([{"id": "0", "name": "write_file", "input": {"path": "a.txt", "content": "mine\n"}}])
    )
    return tmp_path / "work"


def batch_of(out: str) -> str:
    found = re.search(r"toolrt undo (\S+) --workspace", out)
    assert found is not None, out
    return found[1]


def test_run_leaves_the_name_outside_alone_and_says_so(toolrt: Any, work: Path) -> None:
    """The results tell of the link."""
    ran = toolrt("run", work.parent / "calls.json", "--workspace", work, "--format", "json")
    assert ran.code == 0
    assert "outside the workspace" in ran.out
    assert (work.parent / "outside.txt").read_text() == "shared\n"
    assert (work / "a.txt").read_text() == "mine\n"


def test_run_and_undo_keep_hard_links_where_asked(toolrt: Any, work: Path) -> None:
    """With the option the file stays one, through the change and through its undo."""
    ran = toolrt("run", work.parent / "calls.json", "--workspace", work, "--keep-hard-links")
    assert (work.parent / "outside.txt").read_text() == "mine\n"
    undone = toolrt("undo", batch_of(ran.out), "--workspace", work, "--keep-hard-links")
    assert undone.code == 0, undone
    assert (work.parent / "outside.txt").read_text() == "shared\n"
    assert (work / "a.txt").stat().st_nlink == 2


@pytest.mark.parametrize("way", ["undo", "restore"])
def test_the_way_back_leaves_the_name_outside_alone(toolrt: Any, work: Path, way: str) -> None:
    """A link out of the directory that was made since the change keeps what it has, and the command says so."""
    ran = toolrt("run", work.parent / "calls.json", "--workspace", work)
    os.link(work / "a.txt", work.parent / "later.txt")
    arguments = ("undo", batch_of(ran.out)) if way == "undo" else ("restore", "a.txt", 0)
    back = toolrt(*arguments, "--workspace", work)
    assert back.code == 0, back
    assert "a.txt had names elsewhere" in back.out
    assert ((work / "a.txt").read_text(), (work.parent / "later.txt").read_text()) == ("shared\n", "mine\n")
