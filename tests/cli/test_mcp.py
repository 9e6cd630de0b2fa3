"""``toolrt run --mcp``: tools of MCP servers beside the workspace's."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the mcp extra is not installed")

SERVER = Path(__file__).parents[1] / "plugins" / "mcp" / "servers" / "rough.py"
ROUGH = shlex.join([sys.executable, "-I", "-S", str(SERVER)])

pytestmark = pytest.mark.skipif(os.name != "posix", reason="servers are started on POSIX systems")


def test_run_takes_tools_of_mcp_servers(toolrt: Any, shop: Path, written: Callable[..., Path]) -> None:
    """By their names, beside the file tools; the programs start in the workspace."""
    (shop / "note.txt").write_text("here")
    given = written(("a__echo", {"text": "hi"}), ("read_file", {"path": "note.txt"}), ("b__echo", {"text": "ho"}))
    servers = ["--mcp", f"a={ROUGH}", "--mcp", f"b={ROUGH}"]
    ended = toolrt("run", given, "--workspace", shop, *servers, "--format", "json")
    assert ended.code == 0, ended
    contents = [result["content"] for result in json.loads(ended.out)]
    assert (contents[0], contents[2]) == ("hi", "ho")
    assert "here" in contents[1]


def test_run_believes_only_trusted_servers(toolrt: Any, shop: Path, written: Callable[..., Path]) -> None:
    """The plan says which calls may overlap; nothing is called for it."""
    given = written(*[("a__echo", {})] * 2)
    arguments = ["run", given, "--workspace", shop, "--mcp", f"a={ROUGH}", "--dry-run", "--format", "json"]
    alone = json.loads(toolrt(*arguments).out)
    assert [lane["shared"] for lane in alone["lanes"]] == [False, False]
    together = json.loads(toolrt(*arguments, "--mcp-trust", "a").out)
    assert [lane["shared"] for lane in together["lanes"]] == [True]


def test_run_names_a_server_by_its_program(
    toolrt: Any, shop: Path, written: Callable[..., Path], tmp_path: Path
) -> None:
    """Where no name is given."""
    program = tmp_path / "my.server"
    program.write_text(f"#!/bin/sh\nexec {ROUGH}\n")
    program.chmod(0o755)
    given = written(("my_server__echo", {"text": "hi"}))
    assert toolrt("run", given, "--workspace", shop, "--mcp", program).code == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--mcp", "a=no-such-program"], "MCP server 'a': there is no program 'no-such-program'"),
        (["--mcp", "a='open"], "it cannot be read: No closing quotation"),
        (["--mcp", "a="], "expected a program, got nothing"),
        (["--mcp", f"{'a' * 40}=x"], "1 to 32 letters"),
        (["--mcp", "x", "--mcp", "y/x"], "two servers named 'x'. Write NAME=COMMAND."),
        (["--mcp", "x", "--mcp-trust", "y"], "--mcp-trust y: expected the name of a server: x"),
        (["--mcp", "a=false"], "MCP server 'a': it ended with exit status 1"),
    ],
)
def test_run_refuses_a_server_that_cannot_be_used(
    toolrt: Any, shop: Path, written: Callable[..., Path], options: list[str], said: str
) -> None:
    """In one line, with exit code 2, and no call is run."""
    given = written(("write_file", {"path": "made.txt", "content": "x"}))
    ended = toolrt("run", given, "--workspace", shop, *options)
    assert ended.code == 2
    assert said in ended.err
    assert not (shop / "made.txt").exists()


@pytest.mark.parametrize(
    ("options", "code"),
    [(["--deny", "a__*:"], 1), (["--deny", "b__*:"], 0), (["--allow", "a__echo:"], 0), (["--allow", "read_file:"], 1)],
)
def test_run_rules_speak_of_tools_without_paths(
    toolrt: Any,
    shop: Path,
    written: Callable[..., Path],
    options: list[str],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rule with nothing behind its colon is about every call of a tool."""
    monkeypatch.setattr("sys.stdin", io.StringIO())
    given = written(("a__echo", {"text": "hi"}))
    ended = toolrt("run", given, "--workspace", shop, "--mcp", f"a={ROUGH}", *options)
    assert ended.code == code, ended


@pytest.mark.seldom
@pytest.mark.process
def test_interrupted_run_leaves_no_server(shop: Path, written: Callable[..., Path], tmp_path: Path) -> None:
    """Ctrl-C while a call of a server runs: its result is printed, and the server is gone when the command is."""
    progress = {"method": "notifications/progress", "params": {"progressToken": "$token", "message": "ready"}}
    given = written(("a__say", {"messages": [progress]}))
    mark = f"TOOLRT_TEST_CLI={tmp_path.name}{os.getpid()}"
    server = f"env {mark} {ROUGH}"
    command = [sys.executable, "-m", "toolrt", "run", str(given), "--workspace", str(shop), "--mcp", f"a={server}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert any("ready" in line for line in process.stdout)
            process.send_signal(signal.SIGINT)
            rest = process.stdout.read()
        finally:
            process.kill()
    assert process.returncode == 130
    assert "interrupted" in rest
    assert not _marked(mark)


def _marked(mark: str) -> list[str]:
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        try:
            if mark.encode() in Path(f"/proc/{name}/environ").read_bytes():
                found.append(name)
        except OSError:
            continue
    return found
