"""The index of the gallery, in a real browser: filters, progress, and what happens where it cannot be kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.view._tabs import wait_until
from toolrt import view
from toolrt.errors import DefinitionRefused
from toolrt.teaching.litmus import LITMUS
from toolrt.teaching.play import write_site

_FEW = {
    "shared memory": [LITMUS["lost_update_2x1"], LITMUS["store_buffering"]],
    "locks": [LITMUS["lock_2"], LITMUS["two_locks"]],
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gallery of four programs."""
    return write_site(tmp_path_factory.mktemp("site"), 50, _FEW).directory


@pytest.fixture
def tab(browser: Any, site: Path) -> Any:
    """The index, in a browser that has seen nothing; no page complains."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(60_000)
    page = context.new_page()
    trouble: list[str] = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda message: trouble.append(message.text))
    page.goto((site / "index.html").as_uri())
    yield page
    context.close()
    assert trouble == []


def _shown(tab: Any) -> list[str]:
    return [str(name) for name in tab.locator(".card h3").all_text_contents()]


def test_filters_say_which_programs_are_shown(tab: Any) -> None:
    """By theme, by difficulty, by words; `Show all` takes them back."""
    assert _shown(tab) == ["lost_update_2x1", "store_buffering", "lock_2", "two_locks"]
    tab.locator("#only").select_option("locks")
    assert _shown(tab) == ["lock_2", "two_locks"]
    assert tab.locator("#count").text_content() == "2 programs shown of 4; 0 solved."
    tab.get_by_role("button", name="Show all").click()
    wait_until(tab, "document.querySelectorAll('.card').length === 4")
    tab.locator("#level").select_option("hard")
    assert _shown(tab) == []
    tab.locator("#level").select_option("")
    tab.locator("#words").fill("opposite deadlock")
    assert _shown(tab) == ["two_locks"]


def test_progress_comes_back_to_the_index(tab: Any) -> None:
    """What was played is solved when the player returns, by the link or by the browser's own way back."""
    tab.get_by_role("link", name="lost_update_2x1").click()
    tab.wait_for_url("**/lost_update_2x1.html*")  # its script listens to keys once the page is loaded
    for key in ("1", "2", "1"):
        tab.keyboard.press(key)
    tab.get_by_role("link", name="All programs").click()
    tab.wait_for_url("**/index.html*")
    assert tab.locator("#count").text_content() == "4 programs shown of 4; 1 solved."
    assert "1 of 4 classes seen" in tab.locator(".card.solved .seen").text_content()
    tab.locator("#state").select_option("solved")
    assert _shown(tab) == ["lost_update_2x1"]
    tab.locator("#state").select_option("open")
    assert "lost_update_2x1" not in _shown(tab)
    tab.locator("#state").select_option("")
    tab.get_by_role("button", name="Forget my progress").click()
    assert tab.locator("#count").text_content() == "4 programs shown of 4; 0 solved."


def test_progress_is_carried_where_the_browser_keeps_none(tab: Any) -> None:
    """The pages say so, work, and the link back to the index tells it what was reached."""
    tab.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('refused'); } });")
    tab.reload()
    assert "keeps no progress" in tab.locator("#kept").text_content()
    tab.get_by_role("link", name="lock_2").click()
    tab.wait_for_url("**/lock_2.html*")
    assert tab.locator("#kept").is_visible()
    tab.keyboard.press("p")
    tab.get_by_role("link", name="All programs").click()
    tab.wait_for_url("**/index.html*")
    assert tab.locator("#count").text_content() == "4 programs shown of 4; 1 solved."


def test_index_fits_a_narrow_window(tab: Any) -> None:
    """At 390 pixels nothing sticks out."""
    tab.set_viewport_size({"width": 390, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_every_card_is_reached_by_keyboard(tab: Any) -> None:
    """One stop for each program, named by the program."""
    names = []
    tab.locator("#all").focus()
    for _ in range(4):
        tab.keyboard.press("Tab")
        names.append(tab.evaluate("document.activeElement.textContent"))
    assert names == ["lost_update_2x1", "store_buffering", "lock_2", "two_locks"]


@pytest.mark.seldom
def test_what_is_no_gallery_is_refused() -> None:
    """A gallery has a title and themes."""
    with pytest.raises(DefinitionRefused, match="a title and themes"):
        view.gallery({"title": "mine"})
