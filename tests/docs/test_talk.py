"""The slides of the lecture: they have notes, their minutes add up, and the demo's commands run."""

from __future__ import annotations

import io
import json
import re
import shlex
from pathlib import Path

import pytest

from toolrt.cli import main

ROOT = Path(__file__).parents[2]
TALK = (ROOT / "docs" / "talk" / "talk.md").read_text(encoding="utf-8")
SLIDES = TALK.split("\n---\n")


def _code(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_every_slide_has_a_heading_and_notes() -> None:
    """One heading, one comment for the speaker, and few enough lines to be read from the last row."""
    for slide in SLIDES:
        shown = re.sub(r"<!--.*?-->\n", "", slide, flags=re.DOTALL)
        assert len(re.findall(r"^#+ ", re.sub(r"^```.*?^```", "", shown, flags=re.M | re.S), re.MULTILINE)) == 1, slide
        assert len(re.findall("<!--", slide)) == 1, slide
        assert len([line for line in shown.splitlines() if line.strip()]) <= 25, slide


def test_minutes_of_the_parts_add_up_to_thirty() -> None:
    """Each part begins where the one before ends, and takes what the first note says."""
    parts = re.findall(r"Part (\d), ([^:]+): minutes (\d+) to (\d+)", " ".join(TALK.split()))
    now = 0
    for number, (part, name, begins, ends) in enumerate(parts, 1):
        assert (int(part), int(begins)) == (number, now)
        assert f"{name} {int(ends) - now}" in " ".join(SLIDES[0].split())
        now = int(ends)
    assert now == 30


def test_commands_of_the_demo_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The schedule of the notes loses the update, and each game can be left."""
    lines = [line for block in _code(TALK, "sh") for line in block.splitlines()]
    assert len(lines) >= 2
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "toolrt"
        monkeypatch.setattr("sys.stdin", io.StringIO("1\n2\n1\nq\n"))
        assert main(arguments) == 0
        assert ("You broke it" in capsys.readouterr().out) is ("lost_update" in line)


def test_report_of_a_slide_is_what_its_program_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """The first program prints the first output."""
    exec(_code(TALK, "python")[0], {})
    printed = capsys.readouterr().out
    (shown,) = _code(TALK, "output")
    assert printed.startswith(shown)


def test_program_of_the_bug_is_that_of_its_notebook() -> None:
    """The slides show the functions of notebook 12, so that a listener finds them again."""
    cells = json.loads((ROOT / "notebooks/12-a-real-bug.ipynb").read_text(encoding="utf-8"))["cells"]
    notebook = " ".join("".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code").split())
    for block in _code(TALK, "python"):
        if "leave_the_page():" in block:
            assert " ".join(block[block.index("async def") :].split()) in notebook
