"""The page on exploring one's own test, walked as its reader would: files written, pytest run, output compared."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs._walk import walked

pytestmark = pytest.mark.process


@pytest.mark.seldom
@pytest.mark.slow
def test_page_on_exploring_gives_what_it_says(root: Path, tmp_path: Path) -> None:
    """Every test file of the page is run by every command of the page, and each line of output is there, in order."""

    def run(command: str) -> str:
        program, *arguments = shlex.split(command)
        assert program == "pytest"
        plugins = ["pytest_trio.plugin", "_hypothesis_pytestplugin", "toolrt._pytest_plugin", "no:cacheprovider"]
        named = [part for plugin in plugins for part in ("-p", plugin)]
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200"}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *named, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    # A configuration of its own, so that no other one is found above.
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    assert walked(root / "docs/how-to/explore-your-test.md", tmp_path, run) == 5
