"""``toolrt purge``: journals and histories give up what they keep."""

from __future__ import annotations

import gc
import json
import sqlite3
from pathlib import Path
from typing import Any

import toolrt
from toolrt import Registry, Runtime, ToolCall, ToolContext, run_sync


@toolrt.tool(claims=[], schema=None)
async def secret(ctx: ToolContext) -> str:
    """Answers what is to be forgotten."""
    return "a-private-answer"


def test_purge_removes_batches_that_are_over(toolrt: Any, tmp_path: Path) -> None:
    """Nothing of their answers is left in the file; what is younger than asked for stays."""
    path = tmp_path / "journal.db"
    journal = _journal(path)
    run_sync(Runtime(Registry([secret]), journal=journal), [ToolCall("1", "secret", {})])
    journal.close()
    assert b"a-private-answer" in _bytes(path)
    assert json.loads(toolrt("purge", "--journal", path, "--days", 1, "--json").out)["batches"] == 0
    ended = toolrt("purge", "--journal", path)
    assert (ended.code, ended.out) == (0, f"1 batch removed from {path}\n")
    assert b"a-private-answer" not in _bytes(path)
    with sqlite3.connect(path) as left:
        assert left.execute("SELECT count(*) FROM batch").fetchone() == (0,)
    left.close()


def test_purge_removes_the_history_of_a_directory(toolrt: Any, response: Path, shop: Path) -> None:
    """What was changed cannot be undone after it."""
    toolrt("run", response, "--workspace", shop)
    assert "shop/cart.py" in toolrt("undo", "--list", "--workspace", shop).out
    gc.collect()  # the commands above ran in this process, which holds what it wrote until then
    ended = toolrt("purge", "--workspace", shop)
    assert (ended.code, "1 part of the history" in ended.out) == (0, True), ended.out
    assert "shop/cart.py" not in toolrt("undo", "--list", "--workspace", shop).out


def test_purge_refuses_what_it_cannot_do(toolrt: Any, tmp_path: Path) -> None:
    """Nothing named, no such journal, and a file that is none."""
    assert toolrt("purge").code == 2
    assert "there is no journal" in toolrt("purge", "--journal", tmp_path / "none").err
    (tmp_path / "text").write_text("no journal" * 100)
    assert "it is no journal" in toolrt("purge", "--journal", tmp_path / "text").err
    assert (tmp_path / "text").read_text() == "no journal" * 100


def _journal(path: Path) -> toolrt.Journal:
    return toolrt.Journal(path)


def _bytes(path: Path) -> bytes:
    return b"".join(found.read_bytes() for found in sorted(path.parent.glob(f"{path.name}*")))
