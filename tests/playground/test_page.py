"""The page in Chromium: a program is edited, explored, seen and mended, and a link has it all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolrt.errors import DefinitionRefused, MisuseError
from toolrt.playground import write_playground

Opened = Callable[..., Any]

_LOST = """
import trio

from toolrt import sim


async def program():
    tea = sim.Cell(0, name="tea")

    async def add():
        seen = tea.get()
        await trio.lowlevel.checkpoint()
        tea.set(seen + 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add)
        nursery.start_soon(add)
    return tea.get()


def check(execution):
    return execution.value == 2
"""

_LOCKED = _LOST.replace(
    """        seen = tea.get()
        await trio.lowlevel.checkpoint()
        tea.set(seen + 1)
""",
    """        async with lock:
            seen = tea.get()
            await trio.lowlevel.checkpoint()
            tea.set(seen + 1)
""",
).replace('name="tea")\n', 'name="tea")\n    lock = trio.Lock()\n')

_REACHING = """
import js


async def program():
    names = "fetch XMLHttpRequest WebSocket EventSource WebTransport caches indexedDB".split()
    return [name for name in names if getattr(js, name, None) is not None]
"""

_PASTE = """(element, text) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", text);
    element.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
}"""

_ENDLESS = """
async def program():
    while True:
        pass
"""


def _write(tab: Any, source: str) -> None:
    """Replace what is in the editor, as a person does who pastes."""
    editor = tab.locator(".cm-content")
    editor.press("ControlOrMeta+a")
    editor.evaluate(_PASTE, source)


def _explore(tab: Any) -> str:
    tab.locator("#explore").click()
    tab.wait_for_selector("#explore:enabled")
    return str(tab.locator("#verdict").inner_text())


def test_lost_update_is_edited_seen_mended_and_shared(opened: Opened, tmp_path: Path) -> None:
    """The failing schedule shows values; a repair and the lock pass exhaustively; a fresh page has it from the link."""
    tab = opened()
    _write(tab, _LOST)
    assert _explore(tab) == "FAIL: exhaustive(traces=4)"
    told = tab.locator("#told").inner_text()
    assert told.startswith("lost update of tea")
    assert "writes tea 1 -> 1" in told
    frame = tab.frame_locator("#page")
    frame.get_by_role("heading", name="program: lost update of tea").wait_for()
    assert "tea" in frame.locator("body").inner_text()

    with tab.expect_download() as download:
        tab.locator("#download").click()
    file = tmp_path / "test_schedule.py"
    download.value.save_as(file)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(file)]
    assert subprocess.run(command, capture_output=True, timeout=120, check=False).returncode == 1

    tab.locator("#share").click()
    tab.wait_for_selector("#link:not([hidden])")
    address = tab.locator("#address").input_value()

    tab.locator("#repair").click()
    tab.get_by_role("button", name="Explore with `async with lock:`").click()
    assert tab.locator("#verdict").inner_text().startswith("PASS: exhaustive(traces=4) with given atomic lines")

    _write(tab, _LOCKED)
    assert _explore(tab).startswith("PASS: exhaustive(")
    assert not tab.locator("#next").is_visible()

    fresh = opened(address)
    assert 'name="tea"' in fresh.locator(".cm-content").inner_text()
    fresh.locator("#replay").click()
    fresh.wait_for_selector("#replay:enabled")
    assert fresh.locator("#verdict").inner_text() == "FAIL: this schedule, outcome: 1"
    fresh.frame_locator("#page").get_by_text("outcome: 1").first.wait_for()
    assert _explore(fresh) == "FAIL: exhaustive(traces=4)"


def test_program_that_never_ends_is_stopped(opened: Opened) -> None:
    """The page answers while it runs; the spare worker takes over, and explores the next program."""
    tab = opened()
    _write(tab, _ENDLESS)
    tab.locator("#explore").click()
    tab.locator("#stop").click()
    tab.wait_for_selector("#explore:enabled")
    _write(tab, _LOCKED)
    assert _explore(tab).startswith("PASS: exhaustive(")


def test_batch_runs_and_a_program_is_played_on_a_phone_in_the_dark(opened: Opened) -> None:
    """Results come in call order, the page shows lanes and state, a slider runs it again; all fits the screen."""
    tab = opened(viewport={"width": 390, "height": 844}, color_scheme="dark")
    tab.locator("#play").click()
    tab.wait_for_selector("#play:enabled")
    assert tab.frame_locator("#page").locator("body").inner_text().count("main.0") >= 1
    tab.locator("#programs").select_option("a batch of counters")
    tab.locator("#batch").click()
    tab.wait_for_selector("#batch:enabled")
    assert tab.locator("#verdict").inner_text() == "1 outcome in 200 schedules; 3 virtual seconds"
    rows = [row.split("\t") for row in tab.locator("#outcomes tbody tr").all_inner_texts()]
    assert [row[1:] for row in rows][2:] == [["add", "OK", "added 3"], ["look", "OK", "apples is 1"]]
    assert "apples = 6" in tab.locator("#told").inner_text()
    slider = tab.get_by_label("look takes")
    slider.focus()
    slider.press("Home")
    tab.wait_for_selector("#batch:enabled")
    assert tab.locator("#verdict").inner_text() == "1 outcome in 200 schedules; 2 virtual seconds"
    width = tab.locator("html").bounding_box()["width"]
    assert width <= 390
    assert all(part.bounding_box()["width"] <= width for part in tab.locator("main > *").all())


def test_text_that_is_no_program_is_told_with_its_line(opened: Opened) -> None:
    """A syntax error is an answer; the page goes on."""
    tab = opened()
    _write(tab, "async def program(:\n")
    tab.locator("#explore").click()
    tab.wait_for_selector("#told:not([hidden])")
    assert "SyntaxError" in tab.locator("#told").inner_text()
    assert "line 1" in tab.locator("#told").inner_text()


def test_program_reaches_nothing_outside(opened: Opened) -> None:
    """What could ask a server or keep something is gone before a program runs, and the policy refuses other hosts."""
    tab = opened()
    _write(tab, _REACHING)
    _explore(tab)
    assert tab.locator("#outcomes tbody td").first.inner_text() == "'[]'"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_page_breaks_no_rule_of_accessibility(opened: Opened, width: int, scheme: str) -> None:
    """With a failure shown, its repairs, and the link."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    tab = opened(viewport={"width": width, "height": 900}, color_scheme=scheme)
    _explore(tab)
    tab.locator("#repair").click()
    tab.wait_for_selector("#repairs button:enabled")
    tab.locator("#share").click()
    tab.wait_for_selector("#link:not([hidden])")
    found = axe.Axe().run(tab).response["violations"]
    assert [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]] == []


def test_page_opens_without_a_network_after_the_first_time(opened: Opened) -> None:
    """The service worker has kept every file."""
    tab = opened()
    tab.locator("body").evaluate("async () => { await navigator.serviceWorker.ready; }")
    tab.context.set_offline(True)
    tab.reload()
    tab.wait_for_selector("#explore:enabled")
    assert _explore(tab).startswith("FAIL: exhaustive(")


def test_site_is_not_written_over_another(packages: Path, tmp_path: Path) -> None:
    """A folder with an index of its own is left alone; one without packages names what to run."""
    (tmp_path / "index.html").write_text("mine", encoding="utf-8")
    with pytest.raises(DefinitionRefused, match="a directory of its own"):
        write_playground(tmp_path, packages)
    with pytest.raises(MisuseError, match=r"has no pyodide, codemirror, esbuild: run `npm ci`"):
        write_playground(tmp_path / "other", tmp_path)
