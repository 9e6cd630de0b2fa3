"""A Python in a browser, run in Node."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from toolrt.playground._packed import archive

#: Seconds that one script may take.
_PATIENCE = 1_500

InBrowser = Callable[[str], str]


@pytest.fixture(scope="session")
def packages() -> Path:
    """The folder with Pyodide and CodeMirror: ``.ci/run`` installs them."""
    found = os.environ.get("TOOLRT_PLAYGROUND_PACKAGES")
    if found is None:
        pytest.skip("TOOLRT_PLAYGROUND_PACKAGES names no folder: run `npm ci` in a copy of toolrt/playground/page")
    if shutil.which("node") is None:
        pytest.skip("there is no Node: install Node.js 20 or newer")
    return Path(found, "node_modules")


@pytest.fixture(scope="session")
def in_browser(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> InBrowser:
    """Runs a script in Pyodide, and gives what it printed."""
    folder = tmp_path_factory.mktemp("pyodide")
    packed = folder / "python.zip"
    packed.write_bytes(archive())

    def run(script: str) -> str:
        file = folder / "script.py"
        file.write_text(script, encoding="utf-8")
        runner = Path(__file__).with_name("run.mjs")
        command = ["node", str(runner), str(packages / "pyodide"), str(packed), str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
