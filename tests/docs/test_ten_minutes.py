"""The ten minutes, walked as a reader would: files written, commands run, answers typed, outputs compared."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs._walk import walked

pytestmark = pytest.mark.process

_PAGE = "docs/tutorial/00-ten-minutes.md"


@pytest.mark.seldom
def test_ten_minutes_give_what_they_say(root: Path, tmp_path: Path) -> None:
    """An update is lost by hand and by tools, is seen, and is repaired; then the same with the runtime."""
    text = (root / _PAGE).read_text(encoding="utf-8")
    [typed] = re.findall(r"press ((?:`\w`[, and]*)+) to leave", text)
    answers = "".join(f"{answer}\n" for answer in re.findall(r"`(\w)`", typed))
    assert answers.endswith("q\n")

    def run(block: str) -> str:
        if "venv" in block.splitlines()[0].split(".venv")[0]:  # the installation: .ci/run does it with the same lines
            readme = (root / "README.md").read_text(encoding="utf-8")
            assert block in readme
            return ""
        program, *arguments = shlex.split(block)
        start = {".venv/bin/python": [], ".venv/bin/toolrt": ["-m", "toolrt"]}[program]
        command = [sys.executable, *start, *arguments]
        done = subprocess.run(command, cwd=tmp_path, input=answers, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert walked(root / _PAGE, tmp_path, run) == 6
    page = (tmp_path / "lost.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
