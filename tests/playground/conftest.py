"""A Python in a browser, run in Node, and the page, run in Chromium."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest

from toolrt.cli import main
from toolrt.playground._packed import archive

#: Seconds that one script may take.
_PATIENCE = 1_500

#: Milliseconds in which the page has to answer, on a slow machine that does much else.
_PAGE_PATIENCE = 60_000

#: How the complaint begins of axe-core, which speaks with each frame; the page itself sends nothing to a window.
_OF_AXE = "Failed to execute 'postMessage' on 'DOMWindow'"

InBrowser = Callable[[str], str]
Opened = Callable[..., Any]


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


@pytest.fixture(scope="session")
def site(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The playground, which ``.ci/run`` has written for all processes of the tests."""
    found = os.environ.get("TOOLRT_PLAYGROUND_SITE")
    if found is not None:
        return Path(found)
    directory = tmp_path_factory.mktemp("site")
    assert main(["playground", "--site", str(directory), "--packages", str(packages)]) == 0
    return directory


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Offers files, and says nothing."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def opened(site: Path, browser: Any) -> Iterator[Opened]:
    """Opens the page in a fresh browser; when the test ends, it has asked this site alone, and not complained."""
    handler = functools.partial(_Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    # A browser that leaves in the middle of a file is no error.
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    home = f"http://127.0.0.1:{server.server_port}/"
    contexts: list[Any] = []
    trouble: list[str] = []

    def asked(request: Any) -> None:
        if not request.url.startswith((home, f"blob:{home}", "about:srcdoc", "data:")):
            trouble.append(f"request: {request.url}")

    def complained(message: Any) -> None:
        if not message.text.startswith(_OF_AXE):
            trouble.append(f"console: {message.text}")

    def open_page(address: str = "", **settings: Any) -> Any:
        context = browser.new_context(**settings)
        context.set_default_timeout(_PAGE_PATIENCE)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", complained)
        tab.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        tab.on("request", asked)
        tab.goto(urljoin(home, address))
        tab.wait_for_selector("#explore:enabled, #batch:enabled, .cell button:enabled")
        return tab

    yield open_page
    for context in contexts:
        context.close()
    server.shutdown()
    thread.join()
    server.server_close()
    assert trouble == []
