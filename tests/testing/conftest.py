"""A pytest of its own for tests of the plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests._forked import ran

#: Runs pytest on one file, which is written first; gives the exit code and what was printed.
Inner = Callable[..., tuple[int, str]]


#: A tool of a suite's own that looks, waits and then acts: two of them sell one thing twice.
SELL = """
async def sell(stock, sold):
    if stock["tea"] > 0:
        await trio.lowlevel.checkpoint()
        stock["tea"] -= 1
        sold.append("tea")
"""


def ended(run: tuple[int, str], code: int, *words: str) -> str:
    """Give what a pytest printed that ended with this code, and printed these words."""
    found, output = run
    assert found == code, output
    for word in words:
        assert word in output, output
    return output


@pytest.fixture
def inner(tmp_path: Path) -> Inner:
    """A pytest in a directory of its own, with pytest-trio's trio_mode unless told otherwise.

    It is forked from a process that has imported what it needs; a `fresh` one is a Python of its own.
    """

    def run(
        text: str | None, *arguments: str, trio_mode: bool = True, ini: str = "", fresh: bool = False
    ) -> tuple[int, str]:
        if text is not None:
            (tmp_path / "test_it.py").write_text(text)
        (tmp_path / "pytest.ini").write_text(f"[pytest]\ntrio_mode = {str(trio_mode).lower()}\n{ini}\n")
        plugins = ["pytest_trio.plugin", "_hypothesis_pytestplugin", "toolrt._pytest_plugin", "no:cacheprovider"]
        named = [part for plugin in plugins for part in ("-p", plugin)]
        # By name, so that it does not matter whether and how toolrt is installed here.
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        # On a CI server pytest would repeat whole messages in its summary.
        for variable in ("HYPOTHESIS_STORAGE_DIRECTORY", "PYTEST_XDIST_WORKER", "CI", "BUILD_NUMBER"):
            environment.pop(variable, None)
        # And Hypothesis would load a profile without a database there.
        profile = "--hypothesis-profile=default"
        options = ["-q", "-rA", *named, profile, *arguments]
        if fresh:
            command = [sys.executable, "-m", "pytest", *options]
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr
        # Imported before it was forked, Hypothesis takes another directory for that of the tests.
        environment["HYPOTHESIS_STORAGE_DIRECTORY"] = str(tmp_path / ".hypothesis")
        code, out, err = ran("pytest", *options, cwd=tmp_path, environment=environment)
        return code, out + err

    return run
