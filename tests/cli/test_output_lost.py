"""Output that cannot be written: a full disk is said, a reader who has gone is not; calls end as they would have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process

FULL = Path("/dev/full")

needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")


def command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    # As a user's shell has it: Python keeps what is printed until there is enough of it.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    whole = [sys.executable, "-m", "toolrt", *map(str, arguments)]
    return subprocess.run(whole, text=True, timeout=100, check=False, env=env, **options)


@pytest.fixture
def calls(written: Callable[..., Path]) -> Path:
    return written(("write_file", {"path": "new", "content": "x"}))


@pytest.mark.seldom
@needs_full
@pytest.mark.parametrize("arguments", [("litmus",), ("litmus", "lost_update_2x1", "--play"), ("--help",)])
def test_other_commands_say_that_the_disk_is_full(arguments: tuple[object, ...]) -> None:
    """Whatever they print."""
    with FULL.open("w") as full:
        ended = command(*arguments, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE)
    assert ended.returncode == 2
    assert "No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.seldom
@needs_full
@pytest.mark.parametrize("option", ["--trace", "--telemetry"])
def test_run_keeps_its_answers_where_a_file_is_full(shop: Path, calls: Path, option: str) -> None:
    """What was to be written beside them is told to be missing; the answers are printed."""
    ended = command("run", calls, "--workspace", shop, option, FULL, capture_output=True)
    assert "[0] ok write_file new" in ended.stdout
    assert "could not be written" in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr


def test_call_that_cannot_be_meant_is_answered_and_the_others_are_run(toolrt: Any, shop: Path, tmp_path: Path) -> None:
    """An unknown tool, wrong types, a missing field: each says what was expected, and nothing else is lost."""
    path = tmp_path / "calls.json"
    named = [
        ("no_such_tool", {}),
        ("read_file", {"path": 7}),
        ("edit_file", {"path": "README.md"}),
        ("read_file", {"path": "README.md", "colour": "red"}),
        ("write_file", {"path": "new", "content": "x"}),
        ("parallel_edit_files", {"parts": []}),
    ]
    path.write_text(json.dumps([{"name": name, "input": given} for name, given in named]))
    ended = toolrt("run", path, "--workspace", shop, "--format", "json")
    assert ended.code == 1
    results = json.loads(ended.out)
    assert [result["outcome"] for result in results] == ["invalid"] * 4 + ["ok", "invalid"]
    assert all("expected" in result["error"] for result in results if result["outcome"] == "invalid")


@pytest.mark.seldom
def test_play_with_answers_that_are_none_goes_on(toolrt: Any) -> None:
    """Words, numbers out of range, bytes that are no text, escapes: each is told, none is obeyed."""
    given = b"banana\n99\n-1\n\xff\xfe\n\x1b[2J\n\nq\n"
    ended = toolrt.spawned("litmus", "lost_update_2x1", "--play", given=given)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("is no answer") == 5
    assert "\x1b" not in ended.out
