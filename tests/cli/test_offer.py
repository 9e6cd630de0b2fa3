"""What ``toolrt run`` offers beside the file tools: edits of many files, code intelligence, language servers."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

needs_code = pytest.mark.skipif(importlib.util.find_spec("tree_sitter") is None, reason="the code extra is missing")
needs_lsp = pytest.mark.skipif(importlib.util.find_spec("lsprotocol") is None, reason="the lsp extra is missing")

PARTS = [
    {"path": "README.md", "edits": [{"old": "# shop", "new": "# Shop"}]},
    {"path": "shop/cart.py", "edits": [{"old": "SHIPPING = 4.90", "new": "SHIPPING = 5.90"}]},
]


def contents(ended: Any) -> list[str]:
    assert ended.code == 0, ended
    return [result["content"] for result in json.loads(ended.out)]


@pytest.fixture(autouse=True)
def own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is known of code is kept there."""
    monkeypatch.setenv("TOOLRT_STATE_DIR", str(tmp_path / "state"))


def test_many_files_can_be_edited_by_one_call(toolrt: Any, shop: Path, written: Callable[..., Path]) -> None:
    """Without an option; the call is told by the files it is about, and undo knows it."""
    calls = written(("parallel_edit_files", {"parts": PARTS}))
    ended = toolrt("run", calls, "--workspace", shop)
    assert ended.code == 0, ended
    assert "[0] parallel_edit_files README.md, shop/cart.py: ok" in ended.out
    assert (shop / "README.md").read_text().startswith("# Shop")
    assert "changed README.md, shop/cart.py; toolrt undo run-" in ended.out


@pytest.mark.seldom
def test_edits_of_many_files_can_be_explored(toolrt: Any, shop: Path, written: Callable[..., Path]) -> None:
    """Its parts and its neighbours keep all laws."""
    edit = ("edit_file", {"path": "shop/cart.py", "old": "SHIPPING = 5.90", "new": "SHIPPING = 6"})
    calls = written(("parallel_edit_files", {"parts": PARTS}), edit, ("read_file", {"path": "shop/cart.py"}))
    ended = toolrt("explore", calls, "--workspace", shop, "--executions", 20)
    assert ended.code == 0, ended
    assert "20 x 3 ok" in ended.out


@needs_code
def test_code_tools_are_there_when_they_are_asked_for(toolrt: Any, shop: Path, written: Callable[..., Path]) -> None:
    """They see what calls before them changed; without the option there are none, and nothing is left in the tree."""
    edit = ("edit_file", {"path": "shop/cart.py", "old": "def total(", "new": "def in_all("})
    calls = written(("find_callers", {"symbol": "total"}), edit, ("list_symbols", {"path": "shop/cart.py"}))
    before = sorted(path.name for path in shop.rglob("*"))
    callers, _, symbols = contents(toolrt("run", calls, "--workspace", shop, "--code", "--format", "json"))
    assert "shop/__main__.py" in callers
    assert "def in_all(" in symbols
    assert sorted(path.name for path in shop.rglob("*")) == before
    ended = toolrt("run", calls, "--workspace", shop)
    assert (ended.code, "invalid call of tool 'find_callers'" in ended.out) == (1, True)


@needs_code
def test_code_gives_long_files_by_their_signatures(toolrt: Any, shop: Path, written: Callable[..., Path]) -> None:
    """Where a budget cuts them."""
    body = "    a += 1\n" * 40
    text = "".join(f"def name_{number}(a: int) -> int:\n{body}    return a\n" for number in range(60))
    (shop / "long.py").write_text(text)
    options = ("--code", "--context-budget", "0", "--format", "json")
    (content,) = contents(toolrt("run", written(("read_file", {"path": "long.py"})), "--workspace", shop, *options))
    assert "python signatures" in content.splitlines()[0]


@pytest.mark.seldom
@needs_lsp
def test_language_server_is_asked(toolrt: Any, shop: Path, written: Callable[..., Path]) -> None:
    """A known one by its name; what it says follows the edits."""
    ask = ("diagnostics", {"path": "new.py"})
    write = ("write_file", {"path": "new.py", "content": "import os\n"})
    mend = ("edit_file", {"path": "new.py", "old": "import os\n", "new": "x = 1\n"})
    calls = written(write, ask, mend, ask)
    found = contents(toolrt("run", calls, "--workspace", shop, "--lsp", "ruff", "--format", "json"))
    assert "F401" in found[1]
    assert found[3] == "new.py: nothing found by ruff"


@needs_lsp
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--lsp", "gopls"], "expected a known server, or the ends of names and a program"),
        (["--lsp", ".py=no-such-program"], "there is no program 'no-such-program'"),
        (["--lsp", ".py='open"], "it cannot be read: No closing quotation"),
        (["--lsp", ".py="], "expected a program, got nothing"),
        (["--lsp", "ruff", "--lsp", "ruff"], "two named 'ruff'"),
    ],
)
def test_language_server_that_cannot_be_used_is_refused(
    toolrt: Any, shop: Path, written: Callable[..., Path], options: list[str], said: str
) -> None:
    """In one line, with exit code 2, and no call is run."""
    calls = written(("write_file", {"path": "made.txt", "content": "x"}))
    ended = toolrt("run", calls, "--workspace", shop, *options)
    assert ended.code == 2
    assert said in " ".join(ended.err.split())
    assert not (shop / "made.txt").exists()


@needs_lsp
def test_language_server_that_ends_at_once_fails_no_call(toolrt: Any, shop: Path, written: Callable[..., Path]) -> None:
    """The answer says that nothing is known from it."""
    server = shlex.join([sys.executable, "-c", "raise SystemExit(3)"])
    calls = written(("diagnostics", {"path": "shop/cart.py"}))
    (found,) = contents(toolrt("run", calls, "--workspace", shop, "--lsp", f".py={server}", "--format", "json"))
    assert "[not known from python" in found


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.parametrize(
    ("option", "module", "extra"), [("--code", "tree_sitter", "code"), ("--lsp=ruff", "lsprotocol", "lsp")]
)
def test_missing_extra_is_named(shop: Path, written: Callable[..., Path], option: str, module: str, extra: str) -> None:
    """Exit 2, no traceback, what to install; and nothing was run."""
    calls = written(("write_file", {"path": "made.txt", "content": "x"}))
    hide = f"u.find_spec = lambda name, *rest: None if name == {module!r} else find(name, *rest)"
    start = f"sys.modules[{module!r}] = None; from toolrt.cli import main; sys.exit(main())"
    program = f"import sys, importlib.util as u; find = u.find_spec; {hide}; {start}"
    ended = subprocess.run(
        [sys.executable, "-c", program, "run", str(calls), "--workspace", str(shop), option],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ},
    )
    assert ended.returncode == 2, ended
    assert f'pip install "toolrt[{extra}]"' in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (shop / "made.txt").exists()
