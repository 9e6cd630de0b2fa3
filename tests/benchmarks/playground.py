"""How long the playground takes to load and to answer, what it downloads, and what memory it has.

    python tests/benchmarks/playground.py SITE       a site that `toolrt playground --site SITE` wrote
    python tests/benchmarks/playground.py            writes one first

Prints a table for docs/how-to/playground.md.  Cold is a fresh browser with no cache, from a file server on this
machine; warm is the same page opened again.  The first answer is that to **Explore** on the first program of the list,
which fails, with its explanation and its page.  1,000 schedules are those of a lost update, at random, here and there:
the ratio is of one run on this machine.  Each time is the least of three.
"""

from __future__ import annotations

import functools
import gzip
import http.server
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from playwright.sync_api import Browser, sync_playwright

from toolrt.playground import write_playground

_ROUNDS = 3

_THOUSAND = """
import time

import trio

from toolrt import sim


async def lost_update():
    counter = sim.Cell(0, name="counter")

    async def add():
        seen = counter.get()
        await trio.lowlevel.checkpoint()
        counter.set(seen + 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add)
        nursery.start_soon(add)
    return counter.get()


def explored():
    begun = time.perf_counter()
    sim.explore(lost_update, sim.Random(sim.RandomWalk(seed=0), 1000))
    return time.perf_counter() - begun


explored()  # what is imported at the first use
took = min(explored() for _ in range(3))


async def program():
    return round(took, 3)
"""

_MEMORY = """
import pyodide_js


async def program():
    return pyodide_js._module.HEAPU8.length >> 20
"""

_ENDLESS = """
async def program():
    while True:
        pass
"""

_PASTE = """(element, text) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", text);
    element.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
}"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


def _explored(tab: Any, source: str) -> str:
    """Explore a text, and give its first outcome."""
    editor = tab.locator(".cm-content")
    editor.press("ControlOrMeta+a")
    editor.evaluate(_PASTE, source)
    tab.locator("#explore").click()
    tab.wait_for_selector("#explore:enabled")
    return str(tab.locator("#outcomes tbody td").first.inner_text())


def _once(browser: Browser, address: str) -> dict[str, float]:
    context = browser.new_context()
    context.set_default_timeout(120_000)
    tab = context.new_page()
    found: dict[str, float] = {}
    for name in ("cold", "warm"):
        begun = time.perf_counter()
        tab.goto(address)
        tab.wait_for_selector("#explore:enabled")
        found[f"{name}: ready"] = time.perf_counter() - begun
        tab.locator("#explore").click()
        tab.wait_for_selector("#explore:enabled")
        found[f"{name}: first answer"] = time.perf_counter() - begun
        # The spare has loaded, and the service worker has kept the files.
        tab.locator("body").evaluate("async () => { await navigator.serviceWorker.ready; }")
        tab.wait_for_timeout(8_000)
    found["1,000 schedules in the browser"] = float(_explored(tab, _THOUSAND))
    found["memory of one Python, MiB"] = float(_explored(tab, _MEMORY))
    editor = tab.locator(".cm-content")
    editor.press("ControlOrMeta+a")
    editor.evaluate(_PASTE, _ENDLESS)
    tab.locator("#explore").click()
    begun = time.perf_counter()
    tab.locator("#stop").click()
    tab.wait_for_selector("#explore:enabled")
    found["Stop: ready again"] = time.perf_counter() - begun
    context.close()
    return found


def _here() -> float:
    """Give the seconds that the 1,000 schedules take in this Python."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "thousand.py")
        file.write_text(_THOUSAND, encoding="utf-8")
        module: dict[str, Any] = {"__name__": "thousand"}
        exec(compile(_THOUSAND, str(file), "exec"), module)
        return float(module["took"])


def _parts(site: Path) -> list[tuple[str, int, int]]:
    rows = []
    groups = {
        "Pyodide": site.glob("pyodide/*"),
        "memory snapshot": [site / "warm.bin"],
        "toolrt and Trio": [site / "python.zip"],
        "editor": [site / "editor.js"],
    }
    known: set[Path] = set()
    for name, paths in groups.items():
        files = list(paths)
        known.update(files)
        rows.append(_row(name, files))
    rows.append(_row("page and programs", [path for path in site.iterdir() if path.is_file() and path not in known]))
    return rows


def _row(name: str, files: list[Path]) -> tuple[str, int, int]:
    contents = [path.read_bytes() for path in files]
    return name, sum(map(len, contents)), sum(min(len(each), len(gzip.compress(each, 6))) for each in contents)


def main() -> None:
    """Measure, and print the table."""
    site = Path(sys.argv[1]) if len(sys.argv) > 1 else write_playground(tempfile.mkdtemp()).directory
    handler = functools.partial(_Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    with sync_playwright() as playwright:
        found = next(filter(None, map(shutil.which, names)), None)
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        rounds = [_once(browser, f"http://127.0.0.1:{server.server_port}/") for _ in range(_ROUNDS)]
        browser.close()
    server.shutdown()
    least = {name: min(each[name] for each in rounds) for name in rounds[0]}
    here = _here()
    print("| measured | |\n| --- | --- |")
    for name, value in least.items():
        print(f"| {name} | {value:.0f} |" if "MiB" in name else f"| {name} | {value:.2f} s |")
    ratio = least["1,000 schedules in the browser"] / here
    print(f"| the same in this Python | {here:.2f} s: {ratio:.1f} times |")
    for name, size, compressed in [
        *(parts := _parts(site)),
        ("download", *map(sum, list(zip(*parts, strict=True))[1:])),
    ]:
        print(f"| {name} | {size / 1e6:.1f} MB, {compressed / 1e6:.1f} MB compressed |")


if __name__ == "__main__":
    main()
