"""The example that uses all twelve file tools."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolrt.workspace import MemoryDisk, Workspace

OUTCOMES = ["ok"] * 9 + ["error"] + ["ok"] * 6


@pytest.fixture
def refactor(response: Path) -> Path:
    """The recorded calls."""
    return response.with_name("calls-refactor.json")


def test_refactor_uses_every_tool_of_a_workspace(refactor: Path) -> None:
    """A tool that is added wants a call here."""
    used = {call["name"] for call in json.loads(refactor.read_bytes())}
    assert used == {tool.name for tool in Workspace(MemoryDisk()).tools()}


@pytest.mark.process
@pytest.mark.parametrize("lanes", ["by_claims", "by_safety", "serial"])
def test_refactor_moves_the_module_and_the_program_still_runs(
    toolrt: Any, refactor: Path, shop: Path, lanes: str
) -> None:
    """The example's README says what comes of it."""
    ended = toolrt("run", refactor, "--workspace", shop, "--lanes", lanes, "--format", "json")
    assert [result["outcome"] for result in json.loads(ended.out)] == OUTCOMES
    command = [sys.executable, "-m", "shop", "tea=2", "mug=1"]
    printed = subprocess.run(command, cwd=shop, capture_output=True, check=True)
    assert printed.stdout == b"25.70 EUR\n"


def test_refactor_by_claims_leaves_the_files_that_serial_leaves(
    toolrt: Any, refactor: Path, shop: Path, tmp_path: Path, tree: Callable[[Path], dict[str, str]]
) -> None:
    """One directory, whatever overlaps."""
    other = tmp_path / "other"
    shutil.copytree(shop, other, symlinks=True)
    toolrt("run", refactor, "--workspace", shop)
    toolrt("run", refactor, "--workspace", other, "--lanes", "serial")
    assert tree(shop) == tree(other)


def test_refactor_is_undone_to_the_last_byte(
    toolrt: Any, refactor: Path, shop: Path, tree: Callable[[Path], dict[str, str]]
) -> None:
    """Files, links and directories that were made, changed, moved and deleted."""
    before = tree(shop)
    ran = toolrt("run", refactor, "--workspace", shop)
    batch = re.search(r"toolrt undo (\S+)", ran.out)
    assert batch is not None
    assert tree(shop) != before
    assert toolrt("undo", batch[1], "--workspace", shop).code == 0
    assert tree(shop) == before


@pytest.mark.seldom
def test_refactor_ends_one_way_under_every_schedule(toolrt: Any, refactor: Path, shop: Path) -> None:
    """All laws hold, and there is one ending."""
    ended = toolrt("explore", refactor, "--workspace", shop, "--executions", 60, "--json")
    shown = json.loads(ended.out)
    assert (ended.code, shown["verdict"]) == (0, "pass")
    assert len(shown["outcomes"]) == 1
