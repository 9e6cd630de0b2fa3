"""``toolrt run --telemetry``: lines of JSON, and nothing private in them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_run_writes_what_happened_as_lines(toolrt: Any, response: Path, shop: Path, tmp_path: Path) -> None:
    """Every call from its submission to its end; files by their names in the workspace, and no content."""
    target = tmp_path / "calls.jsonl"
    ended = toolrt("run", response, "--workspace", shop, "--telemetry", target, "--format", "json")
    results, lines = json.loads(ended.out), lines_of(target)
    settled = {line["call"]: line["outcome"] for line in lines if line["kind"] == "call.settled"}
    assert settled == {index: result["outcome"] for index, result in enumerate(results)}
    assert lines[0]["kind"] == "batch.opened"
    assert lines[-1]["kind"] == "batch.ended"
    changed = [line["path"] for line in lines if line["kind"] == "file.changed"]
    assert changed
    assert not any(os.path.isabs(path) for path in changed)
    text = target.read_text()
    assert str(shop) not in text
    contents = [line for file in shop.rglob("*.py") for line in file.read_text().splitlines() if len(line) > 20]
    assert contents
    assert not any(line.strip() in text for line in contents)


def test_run_adds_to_the_file(toolrt: Any, response: Path, shop: Path, tmp_path: Path) -> None:
    """Two runs, two batches in one file, each with an id of its own."""
    target = tmp_path / "calls.jsonl"
    for _ in range(2):
        toolrt("run", response, "--workspace", shop, "--telemetry", target)
    assert len({line["batch"] for line in lines_of(target)}) == 2


def test_dry_run_writes_no_lines(toolrt: Any, response: Path, shop: Path, tmp_path: Path) -> None:
    """Nothing happens, so there is nothing to tell."""
    target = tmp_path / "calls.jsonl"
    assert toolrt("run", response, "--workspace", shop, "--telemetry", target, "--dry-run").code == 0
    assert not target.exists()


def test_file_that_cannot_be_written_is_refused_before_anything_runs(
    toolrt: Any, response: Path, shop: Path, tmp_path: Path, tree: Any
) -> None:
    """A directory, a directory that is not there, the file of the trace."""
    before = tree(shop)
    for options in (
        ("--telemetry", tmp_path),
        ("--telemetry", tmp_path / "no" / "where"),
        ("--telemetry", tmp_path / "same", "--trace", tmp_path / "same"),
    ):
        ended = toolrt("run", response, "--workspace", shop, *options)
        assert ended.code == 2
        assert "--telemetry" in ended.err
    assert tree(shop) == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_full_disk_is_said_and_changes_no_exit_code(toolrt: Any, response: Path, shop: Path) -> None:
    """The calls have been executed all the same."""
    ended = toolrt("run", response, "--workspace", shop, "--telemetry", "/dev/full")
    assert ended.code == 1
    assert "lines could not be written" in ended.out
