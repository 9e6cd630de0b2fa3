"""``toolrt run --shell`` and ``--context-budget``: commands, and long files shown in part."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from toolrt.processes import sandbox_lacks
from toolrt.services import _sandbox

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash to run")


@pytest.fixture
def calls(tmp_path: Path) -> Any:
    """A file of calls."""

    def write(*named: tuple[str, dict[str, Any]]) -> Path:
        path = tmp_path / "calls.json"
        path.write_text(json.dumps([{"name": name, "input": input} for name, input in named]))
        return path

    return write


def command(text: str) -> tuple[str, dict[str, Any]]:
    return "run_command", {"command": text}


def test_shell_is_there_when_it_is_asked_for(toolrt: Any, calls: Any, shop: Path) -> None:
    """A command's output is shown as it comes, and answered; without the option there is no such tool."""
    response = calls(command("printf 'one\\ntwo\\n'; false"), ("write_file", {"path": "a", "content": "b"}))
    ended = toolrt("run", response, "--workspace", shop, "--shell")
    assert ended.code == 0
    assert "[exit status 1]" in ended.out
    assert "{'offset'" not in ended.out
    ended = toolrt("run", response, "--workspace", shop)
    assert (ended.code, "invalid call of tool 'run_command'" in ended.out) == (1, True)


@pytest.mark.seldom
@pytest.mark.process
def test_shell_asks_before_what_no_rule_allows(toolrt: Any, calls: Any, shop: Path) -> None:
    """A command may touch anything, so a rule for some paths does not allow it."""
    response = calls(command("touch made"), ("write_file", {"path": "src/made", "content": ""}))
    ended = toolrt.spawned("run", response, "--workspace", shop, "--shell", "--allow", "src/**", "--format", "json")
    assert [result["outcome"] for result in json.loads(ended.out)] == ["denied", "ok"]
    assert not (shop / "made").exists()


def test_context_budget_cuts_long_files(toolrt: Any, calls: Any, shop: Path) -> None:
    """The share is that of the reads in the response."""
    (shop / "long.txt").write_text("".join(f"line {number}\n" for number in range(10_000)))
    read = ("read_file", {"path": "long.txt"})
    response = calls(read, read, ("read_file", {"path": "long.txt", "offset": 9_999}), command("true"))
    ended = toolrt("run", response, "--workspace", shop, "--shell", "--context-budget", "60000", "--format", "json")
    first, second, third, _ = (result["content"] for result in json.loads(ended.out))
    assert first == second
    assert "this read may answer 4000" in first
    assert third == "line 9998\nline 9999\n"
    whole = toolrt("run", calls(read), "--workspace", shop, "--format", "json")
    assert json.loads(whole.out)[0]["content"].count("\n") == 10_000


def test_sandbox_keeps_commands_in_the_directory(
    toolrt: Any, calls: Any, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option offers the shell; where the kernel has no sandbox it is refused before anything runs."""
    response = calls(command(f"echo 1 > {shop.parent}/outside"))
    if sandbox_lacks() is None:
        assert "sandbox: files" in toolrt("run", response, "--workspace", shop, "--sandbox").out
    monkeypatch.setattr(_sandbox, "sandbox_lacks", lambda: "Landlock, and this kernel has none")
    ended = toolrt("run", response, "--workspace", shop, "--sandbox")
    assert (ended.code, "this kernel has none" in ended.err) == (2, True)
    assert not (shop.parent / "outside").exists()
