"""The small files of docs/changes/ are found, named by their kind, and put together into the changelog."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("towncrier", reason="it is not installed: pip install towncrier")

CHANGES = "docs/changes"


def _kinds(root: Path) -> list[str]:
    table = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
    return [kind["directory"] for kind in table["type"]]


def test_names_of_changes_say_their_kind(root: Path) -> None:
    """`+<subject>.<kind>.md`: another name would be left out of the changelog in silence."""
    name = re.compile(rf"\+[a-z0-9-]+\.({'|'.join(_kinds(root))})\.md")
    files = [path.name for path in (root / CHANGES).iterdir() if path.name != "README.md"]
    assert [file for file in files if not name.fullmatch(file)] == []
    told = (root / CHANGES / "README.md").read_text(encoding="utf-8")
    assert [kind for kind in _kinds(root) if f"`{kind}`" not in told] == []


def test_changes_begin_with_their_subject(root: Path) -> None:
    """In bold, as the rows of the changelog do."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in (root / CHANGES).glob("+*.md")}
    assert [name for name, text in texts.items() if not text.startswith("**")] == []


@pytest.mark.process
def test_changes_are_put_together_into_the_changelog(root: Path, tmp_path: Path) -> None:
    """The newest version stands first, with the text of every file, and the older ones stay."""
    (tmp_path / CHANGES).mkdir(parents=True)
    for file in ("pyproject.toml", "docs/CHANGELOG.md"):
        shutil.copy(root / file, tmp_path / file)
    for path in (root / CHANGES).glob("+*.md"):
        shutil.copy(path, tmp_path / CHANGES)
    (tmp_path / CHANGES / "+example.added.md").write_text("**An example.** It is there.\n", encoding="utf-8")
    command = [sys.executable, "-m", "towncrier", "build", "--keep", "--version", "9.9.9", "--date", "2030-01-01"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    before = (root / "docs/CHANGELOG.md").read_text(encoding="utf-8")
    after = (tmp_path / "docs/CHANGELOG.md").read_text(encoding="utf-8")
    head, _, rest = after.partition("## 9.9.9 (2030-01-01)")
    assert before.startswith(head)
    added = rest.partition("### Added\n")[2].partition("\n### ")[0]
    assert "\n- **An example.** It is there.\n" in added
    assert rest.endswith(before[len(head) :].lstrip("\n"))
