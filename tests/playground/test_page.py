"""The page in Chromium: a program is edited, explored, seen and mended, and a link has it all."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolrt.errors import DefinitionRefused, MisuseError
from toolrt.playground import write_playground
from toolrt.playground._programs import starting_points
from toolrt.playground._session import PlaygroundSession

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


_ALWAYS = """
from toolrt.teaching.lab import SHEET


def answer(answers, delivered):
    return True


SHEET["in_call_order"].grade(answer)
"""


def _write(tab: Any, source: str, number: int = 0) -> None:
    """Replace what is in an editor, as a person does who pastes."""
    editor = tab.locator(".cm-content").nth(number)
    editor.press("ControlOrMeta+a")
    editor.evaluate(_PASTE, source)


def _explore(tab: Any) -> str:
    tab.locator("#explore").click()
    tab.wait_for_selector("#explore:enabled")
    return str(tab.locator("#verdict").text_content())


@pytest.mark.seldom
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
    mended = tab.locator("#verdict").inner_text()
    assert mended.startswith("PASS: exhaustive(traces=4) with given atomic lines")
    tab.locator("#share").click()
    tab.wait_for_selector("#link:not([hidden])")
    mended_address = tab.locator("#address").input_value()

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
    fresh.goto(mended_address)
    fresh.locator("#given-text", has_text="async with lock:").wait_for()
    assert _explore(fresh) == mended
    fresh.locator("#unmend").click()
    fresh.wait_for_selector("#explore:enabled")
    assert fresh.locator("#verdict").inner_text() == "FAIL: exhaustive(traces=4)"


@pytest.mark.seldom
def test_program_that_never_ends_is_stopped(opened: Opened) -> None:
    """The page answers while it runs; the spare worker takes over, and explores the next program."""
    tab = opened()
    _write(tab, _ENDLESS)
    tab.locator("#explore").click()
    tab.locator("#stop").click()
    tab.wait_for_selector("#explore:enabled")
    _write(tab, _LOCKED)
    assert _explore(tab).startswith("PASS: exhaustive(")


def _fill_the_page(tab: Any) -> None:
    """Show a failure, its repairs, and the link."""
    _explore(tab)
    tab.locator("#repair").click()
    tab.wait_for_selector("#repairs button:enabled")
    tab.locator("#share").click()
    tab.wait_for_selector("#link:not([hidden])")


def _broken_rules(tab: Any) -> list[str]:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    found = axe.Axe().run(tab).response["violations"]
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


@pytest.mark.seldom
def test_batch_runs_and_a_program_is_played_on_a_phone_in_the_dark(opened: Opened) -> None:
    """Results come in call order, with lanes and state; a slider runs it again; all fits; axe finds nothing."""
    tab = opened(viewport={"width": 390, "height": 844}, color_scheme="dark")
    _fill_the_page(tab)
    assert _broken_rules(tab) == []
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


@pytest.mark.seldom
def test_texts_are_answered_and_reach_nothing(opened: Opened) -> None:
    """A syntax error is told; what could ask a server is gone; litmus programs have CPython's verdicts and counts."""
    tab = opened()
    _write(tab, "async def program(:\n")
    _explore(tab)
    assert "SyntaxError" in tab.locator("#told").inner_text()
    assert "line 1" in tab.locator("#told").inner_text()
    _write(tab, _REACHING)
    _explore(tab)
    assert tab.locator("#outcomes tbody td").first.inner_text() == "'[]'"
    # Programs of the gallery come out as here: cells, a plain dict, Trio's own orders, a cancel.
    points = {one.name: one for one in starting_points()}
    for name in ("lock_2", "plain_dict", "passes", "cancel_or_result"):
        tab.locator("#programs").select_option(name)
        one = points[name]
        asked = {"kind": "explore", "source": one.source, "track": one.track, "order": one.order}
        here = json.loads(PlaygroundSession().answer(json.dumps(asked), len))
        assert _explore(tab) == here["text"].split("\n")[0]
        rows = [row.split("\t") for row in tab.locator("#outcomes tbody tr").all_inner_texts()]
        assert rows == [[outcome, str(count)] for outcome, count in here["outcomes"]]


def _run_cell(tab: Any, number: int) -> str:
    tab.get_by_label(f"Cell {number}", exact=True).get_by_role("button", name="Run", exact=True).click()
    tab.wait_for_selector("#stop:disabled")
    return str(tab.locator("#status").inner_text())


@pytest.mark.seldom
def test_lesson_asks_first_grades_and_is_read_by_a_teacher(opened: Opened, tmp_path: Path) -> None:
    """No guess, nothing shown; sliders move; a wrong answer is graded and kept; a class page reads the file."""
    tab = opened("lesson-03.html", viewport={"width": 390, "height": 844}, color_scheme="dark")
    last = tab.locator("section.cell").count()
    assert _run_cell(tab, last) == "Cell 2 asks for your guess first."
    assert "0.3" not in tab.locator(".came").nth(1).inner_text()
    assert not tab.locator(".came").nth(2).inner_text()
    tab.get_by_label("After how many seconds").fill("0.1")
    tab.keyboard.press("Enter")
    tab.get_by_text("You said 0.1. It came out as 0.3.").wait_for()
    tab.wait_for_selector("#stop:disabled")
    _write(tab, _ALWAYS, last - 1)
    assert _run_cell(tab, last) == f"Cell {last} ran."
    assert "in_call_order: wrong" in tab.locator(".came").last.inner_text()
    slider = tab.frame_locator("iframe").first.get_by_label("they finish")
    slider.press("End")
    assert "cid bob ann" in tab.frame_locator("iframe").first.locator("body").inner_text()
    assert tab.locator("html").bounding_box()["width"] <= 390
    assert _broken_rules(tab) == []

    tab.reload()
    assert "return True" in tab.locator(".cm-content").last.inner_text()
    tab.get_by_label("Your name").fill("Ann B.")
    with tab.expect_download() as download:
        tab.locator("#export").click()
    assert download.value.suggested_filename == "progress-Ann-B-.json"
    file = tmp_path / "ann.json"
    download.value.save_as(file)
    (tmp_path / "other.json").write_text("[]", encoding="utf-8")
    tab.locator("#class-heading ~ p a").click()
    tab.locator("#files").set_input_files([file, tmp_path / "other.json"])
    tab.get_by_text("1 of 2 files are of lessons.").wait_for()
    row = tab.locator("#students tbody td").all_inner_texts()
    assert row == ["Ann B.", "03", "0 of 1", "in_call_order: wrong, tries: 1"]
    assert tab.locator("#questions tbody td").last.inner_text() == "0.1 (1)"


@pytest.mark.seldom
def test_files_that_are_chosen_before_the_script_is_there_are_read(site: Path, browser: Any, tmp_path: Path) -> None:
    """A teacher need not wait for a slow network."""
    (tmp_path / "other.json").write_text("[]", encoding="utf-8")
    held: list[Any] = []

    def answer(route: Any) -> None:
        name = route.request.url.rpartition("/")[2]
        if name == "class.js":
            held.append(route)
        else:
            route.fulfill(path=site / name)

    with browser.new_context() as context:
        tab = context.new_page()
        tab.route("**/*", answer)
        with tab.expect_request("**/class.js"):
            tab.goto("http://of.a.class/class.html", wait_until="commit")
        tab.locator("#files").set_input_files([tmp_path / "other.json"])
        held.pop().fulfill(path=site / "class.js")
        tab.get_by_text("0 of 1 files are of lessons.").wait_for()


@pytest.mark.seldom
def test_page_breaks_no_rule_of_accessibility(opened: Opened) -> None:
    """With a failure shown, its repairs, and the link, on a wide screen; on a phone, see above."""
    tab = opened(viewport={"width": 1280, "height": 900})
    _fill_the_page(tab)
    assert _broken_rules(tab) == []


@pytest.mark.seldom
def test_page_opens_without_a_network_after_the_first_time(opened: Opened) -> None:
    """The service worker has kept every file."""
    tab = opened()
    tab.locator("body").evaluate("async () => { await navigator.serviceWorker.ready; }")
    tab.context.set_offline(True)
    tab.reload()
    tab.wait_for_selector("#explore:enabled")
    assert _explore(tab).startswith("FAIL: exhaustive(")


@pytest.mark.seldom
def test_site_is_not_written_over_another(packages: Path, tmp_path: Path) -> None:
    """A folder with an index of its own is left alone; one without packages names what to run."""
    (tmp_path / "index.html").write_text("mine", encoding="utf-8")
    with pytest.raises(DefinitionRefused, match="a directory of its own"):
        write_playground(tmp_path, packages)
    with pytest.raises(MisuseError, match=r"has no pyodide, codemirror, esbuild: run `npm ci`"):
        write_playground(tmp_path / "other", tmp_path)
