"""What a second process knows of a batch while the process that ran it is alive and idle."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolrt.workspace import Workspace

pytestmark = pytest.mark.process

#: Runs one batch of the calls it is given, says how each ended, and waits.
IDLE = """
import json, sys
import toolrt, trio

async def main(root, calls):
    workspace = toolrt.Workspace(root)
    runtime = toolrt.Runtime(toolrt.Registry(workspace.tools()))
    calls = [toolrt.ToolCall(str(number), name, input) for number, (name, input) in enumerate(calls)]
    async with runtime.open_batch(batch_id="the-batch") as batch:
        for call in calls:
            batch.submit(call)
    print(json.dumps([result.outcome.value for result in batch.outcome.results]), flush=True)
    sys.stdin.read()

trio.run(main, sys.argv[1], json.loads(sys.argv[2]))
"""

FAILED_MOVE = ("move_path", {"source": "a", "target": "taken"})
WRITE = ("write_file", {"path": "b", "content": "new"})
PATCH = "--- a/b\n+++ b/b\n@@ -1 +1 @@\n-old\n+new\n--- a/c\n+++ b/c\n@@ -1 +1 @@\n-old\n+new\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLRT_STATE_DIR", str(tmp_path / "state"))
    root = tmp_path / "work"
    root.mkdir()
    for name, content in (("a", "one"), ("taken", "two"), ("b", "old"), ("c", "old")):
        (root / name).write_text(content)
    return root


@contextlib.contextmanager
def idle(root: Path, *calls: Any) -> Iterator[list[str]]:
    """A process that ran `calls` as one batch and is idle; gives their outcomes."""
    command = [sys.executable, "-c", IDLE, str(root), json.dumps(calls)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            yield json.loads(child.stdout.readline())
        finally:
            child.send_signal(signal.SIGKILL)


def contents(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(root.iterdir())}


def command(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "toolrt", *map(str, words)], capture_output=True, text=True, check=False
    )


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("calls", "outcomes"),
    [
        ([WRITE, FAILED_MOVE], ["ok", "error"]),
        ([FAILED_MOVE, WRITE], ["error", "ok"]),
        ([WRITE, ("move_path", {"source": "b", "target": "taken"})], ["ok", "error"]),
        ([WRITE, ("move_path", {"source": "b", "target": "b/c"})], ["ok", "error"]),
        ([("apply_patch", {"patch": PATCH}), FAILED_MOVE], ["ok", "error"]),
    ],
)
def test_undo_from_a_second_terminal_while_the_first_process_idles(root: Path, calls: Any, outcomes: list[str]) -> None:
    """What failed in a batch is known not to have happened, so the rest is put back and no other program is named."""
    before = contents(root)
    with idle(root, *calls) as ended:
        assert ended == outcomes
        assert contents(root) != before
        undone = command("undo", "the-batch", "--workspace", root)
        assert (undone.returncode, undone.stderr) == (0, "")
        assert contents(root) == before


@pytest.mark.seldom
def test_history_from_a_second_terminal_has_only_what_happened(root: Path) -> None:
    """A move that failed is no version of either file."""
    with idle(root, WRITE, FAILED_MOVE):
        for name, count in (("a", 0), ("taken", 0), ("b", 1)):
            listed = command("history", name, "--workspace", root, "--json")
            assert len(json.loads(listed.stdout)) == count, name


async def test_what_a_killed_idle_process_did_is_known_and_not_guessed(root: Path) -> None:
    """The batch has ended, so a later start need not judge by what other programs made of the file since."""
    with idle(root, WRITE):
        pass
    (root / "b").write_text("old")
    assert await Workspace(root).history.changed_by("the-batch") == ("b",)


async def test_a_process_that_works_on_knows_the_same(root: Path) -> None:
    """In the process that ran it a failed change is none either, before and after it says so."""
    with idle(root, WRITE, FAILED_MOVE):
        files = Workspace(root)
        assert await files.history.changed_by("the-batch") == ("b",)
        assert (await files.history.undo("the-batch")).paths == ("b",)
