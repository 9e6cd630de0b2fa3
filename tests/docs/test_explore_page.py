"""The page on exploring one's own test, walked as its reader would: files written, pytest run, output compared."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (test_\w+\.py)\n")
_CHANGED = re.compile(r"# (test_\w+\.py), changed: (.+) -> (.+)\n")


def _run(command: str, directory: Path) -> str:
    program, *arguments = shlex.split(command)
    assert program == "pytest"
    plugins = ["pytest_trio.plugin", "_hypothesis_pytestplugin", "toolrt._pytest_plugin", "no:cacheprovider"]
    named = [part for plugin in plugins for part in ("-p", plugin)]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *named, *arguments],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_page_on_exploring_gives_what_it_says(root: Path, tmp_path: Path) -> None:
    """Every test file of the page is run by every command of the page, and each line of output is there, in order."""
    text = root.joinpath("docs/how-to/explore-your-test.md").read_text(encoding="utf-8")
    output, commands = "", 0
    # A configuration of its own, so that no other one is found above.
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for language, block in _BLOCK.findall(text):
        if language == "python" and (changed := _CHANGED.match(block)):
            file = tmp_path / changed[1]
            before = file.read_text()
            assert changed[2] in before
            file.write_text(before.replace(changed[2], changed[3]))
        elif language == "python" and (named := _FILE.match(block)):
            (tmp_path / named[1]).write_text(block)
        elif language == "sh":
            output = _run(block.strip(), tmp_path)
            commands += 1
        elif language == "output":
            place = 0
            for line in block.splitlines():
                found = output.find(line.strip() if line.startswith(("PASS", "1 ")) else line, place)
                assert found >= 0, f"{line!r} is not, or not there, in:\n{output}"
                place = found
    assert commands == 5
