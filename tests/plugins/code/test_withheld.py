"""The code tools under a rule that denies some files: the rest is known, and of what is denied nothing is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from tests.plugins.code._code_index import index_of, write
from toolrt import Outcome, Registry, Runtime, ToolCall, ToolResult
from toolrt.plugins.code import CodeIndex
from toolrt.workspace import Permissions, Rule

QUESTIONS = [
    ("search_code", {"query": "shared word"}),
    ("find_references", {"name": "shared"}),
    ("find_callers", {"symbol": "shared"}),
    ("find_callees", {"symbol": "use"}),
    ("find_call_path", {"source": "use", "target": "shared"}),
    ("file_dependencies", {"path": "app.py"}),
    ("blast_radius", {"symbol": "shared"}),
    ("read_symbol", {"symbol": "shared"}),
]


def asked(code: CodeIndex, rules: list[Rule], tool: str, input: Any) -> ToolResult:
    approve = Permissions(code.workspace, rules, default="allow")
    runtime = Runtime(Registry([*code.workspace.tools(), *code.tools()]), approve=approve)
    [result] = trio.run(runtime.run, [ToolCall("id", tool, input)]).results
    return result


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "work"
    root.mkdir()
    write(root / "lib.py", "def shared():\n    return 'shared word'\n")
    write(root / "app.py", "from lib import shared\n\n\ndef use():\n    shared()\n")
    return root


@pytest.mark.parametrize(("tool", "input"), QUESTIONS)
def test_a_rule_about_other_files_changes_no_answer_about_code(root: Path, tool: str, input: Any) -> None:
    """No file is denied, so each answer is that of a session without rules."""
    code = index_of(root)
    free, ruled = asked(code, [], tool, input), asked(code, [Rule("*", "**/.env", "deny")], tool, input)
    assert (ruled.outcome, ruled.content) == (Outcome.OK, free.content)
    code.close()


@pytest.mark.parametrize(("tool", "input"), QUESTIONS)
def test_code_that_is_denied_is_not_known(root: Path, tool: str, input: Any) -> None:
    """Neither its symbols nor its lines, and the answer says how many files are left out."""
    write(root / "keys/secret.py", "from lib import shared\n\n\ndef hidden():\n    shared()  # shared word\n")
    code = index_of(root)
    result = asked(code, [Rule("*", "keys/**", "deny")], tool, input)
    assert result.outcome is Outcome.OK, result.error
    assert "hidden" not in str(result.content)
    assert "secret" not in str(result.content)
    if tool != "read_symbol":
        assert "(1 entry is left out" in str(result.content)
    code.close()
