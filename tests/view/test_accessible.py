"""Every kind of page, held against the rules of axe-core in a real browser: wide and light, narrow and dark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.view import _traces as traces
from tests.view._tabs import wait_until
from tests.view.conftest import Open
from toolrt import sim, view
from toolrt.teaching.litmus import LITMUS
from toolrt.teaching.play import write_site

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")


def _compared() -> view.Page:
    report = sim.explore(traces.lost_update, sim.Exhaustive(), lambda execution: execution.value == 2)
    page: view.Page = report.failures[0].show()
    return page


def _deadlock() -> view.Page:
    one = LITMUS["dining_3"]
    page: view.Page = sim.explore(one.program, sim.DPOR(), one.check).failures[0].show()
    return page


def _sliders() -> view.Page:
    found = [sim.run(traces.lost_update, sim.Choices(choices), details=True) for choices in ([], [0, 1])]
    return view.slider(found, title="Lost update")


def _positions() -> view.Page:
    found = [sim.run(traces.lost_update, sim.Choices(choices), details=True) for choices in ([], [0, 1])]
    return view.slider(found, axes={"schedule": ["in turn", "at once"]}, title="Lost update")


PAGES: dict[str, Callable[[], view.Page]] = {
    "a failure beside what passes": _compared,
    "a deadlock": _deadlock,
    "a batch": lambda: view.show(traces.recorded("batch")),
    "sliders": _sliders,
    "positions": _positions,
}


def _violations(tab: Any) -> list[str]:
    found = axe.Axe().run(tab).response["violations"]
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
@pytest.mark.parametrize("name", PAGES)
def test_page_breaks_no_rule(opened: Open, name: str, width: int, scheme: str) -> None:
    """In every view that the page has, and with its list of keys open."""
    tab = opened(PAGES[name](), width=width, color_scheme=scheme, reduced_motion="reduce")
    for at in range(max(1, tab.locator("#tabs [role=tab]").count())):
        if tab.locator("#tabs [role=tab]").count():
            tab.locator("#tabs [role=tab]").nth(at).click()
        assert _violations(tab) == []
    if tab.locator("#help-open").count():
        tab.locator("#help-open").click()
        wait_until(tab, "document.getElementById('help').open")
        assert _violations(tab) == []


@pytest.mark.seldom
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_gallery_breaks_no_rule(opened: Open, tmp_path: Path, width: int, scheme: str) -> None:
    """Its index, a program before the first move, and the same when it is over."""
    site = write_site(tmp_path / "gallery", 60, {"shared memory": [LITMUS["lost_update_2x1"]]})
    tab = opened(
        (site.directory / "index.html").read_text(encoding="utf-8"),
        width=width,
        color_scheme=scheme,
        reduced_motion="reduce",
    )
    assert _violations(tab) == []
    page = (site.directory / "lost_update_2x1.html").read_text(encoding="utf-8")
    tab = opened(page, width=width, color_scheme=scheme, reduced_motion="reduce")
    assert _violations(tab) == []
    while tab.locator("#options button").count():
        tab.locator("#options button").first.click()
    assert _violations(tab) == []
