"""What the repository says about itself is so."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from toolrt import invariants
from toolrt.cli import main
from toolrt.invariants.mutants import MUTANTS
from toolrt.teaching.litmus import LITMUS

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_TOP = {"LICENSE", "README.md", "docs", "notebooks", "pyproject.toml", "tests", "toolrt"}


def test_first_shell_blocks_of_readme_are_its_two_commands(root: Path) -> None:
    """The first explores the example, the second runs the tests."""
    text = (root / "README.md").read_text(encoding="utf-8")
    first, second = [body for language, body in _BLOCK.findall(text) if language in ("sh", "bash", "console")][:2]
    assert "toolrt explore docs/examples/response.json --workspace docs/examples/shop" in first
    assert "pytest" in second


def test_page_of_laws_names_laws_and_mutants_as_they_are(root: Path) -> None:
    """Each law stands there by its name, in order, with mutants that it is to catch."""
    text = (root / "docs/explanation/laws.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| *\d+ *\| *`(\w+)` *\|(.*)$", text, re.MULTILINE))
    assert list(rows) == list(invariants.LAWS)
    for law, row in rows.items():
        shown = re.findall(r"`([^`]+)`", row.split("|")[0])
        assert shown
        assert {name: MUTANTS[name].law for name in shown} == dict.fromkeys(shown, law)


@pytest.mark.parametrize("command", ["run", "explore", "replay", "timeline", "litmus", "laws"])
def test_page_of_command_line_names_every_option(root: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What --help offers stands on the page, under the command's own heading."""
    assert main([command, "--help"]) == 0
    offered = set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out)) - {"--help"}
    text = (root / "docs/reference/cli.md").read_text(encoding="utf-8")
    section = text.split(f"## toolrt {command}\n")[1].split("\n## ")[0]
    assert offered <= set(re.findall(r"--[a-z][a-z-]+", section))


def test_page_of_litmus_programs_states_what_they_state(root: Path) -> None:
    """Each program has a row, with its outcomes as far as they are few, and its counts as far as they are small."""
    text = (root / "docs/explanation/litmus.md").read_text(encoding="utf-8")
    rows = {name: cells.split(" | ") for name, cells in re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE)}
    assert list(rows) == list(LITMUS)
    for name, (*shown, interleavings, classes) in rows.items():
        litmus = LITMUS[name]
        for text, outcomes in zip(shown, (litmus.right, litmus.wrong), strict=True):
            assert text in (f"{len(outcomes)} outcomes", "none") or set(re.findall("`(.*?)`", text)) == set(
                map(str, outcomes)
            )
            assert (text == "none") == (not outcomes)
        for text, count in ((interleavings, litmus.interleavings), (classes, litmus.classes)):
            if count is None or count.number < 10**9:
                assert text.strip() == (f"{count.number:,}" if count else "")


@pytest.mark.process
def test_top_level_has_nothing_else(root: Path) -> None:
    """Everything has its room: nothing new stands at the top."""
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout: there is no list of its files")
    top = {line.split("/")[0] for line in listed.stdout.splitlines()}
    assert {name for name in top if not name.startswith(".")} <= _TOP
