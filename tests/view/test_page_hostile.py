"""A page of hostile content, in a real browser: it is text, and runs nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.view import _traces as traces
from tests.view._tabs import wait_until
from tests.view.conftest import Open
from toolrt import view
from toolrt.trace import Trace

_HOSTILE = [
    "</script><script>window.broken = 1</script>",
    "<img src=x onerror='window.broken = 1'>",
    '"><svg onload=window.broken=1>',
    "<!--<script>",
    "{{script}}{{document}}",
    "\u2028window.broken = 1\u2029",
    "javascript:window.broken=1",
    "\x00\x1b[31m\u202ered\ud800",
    "__proto__",
    "constructor",
]


def _hostile() -> Trace:
    batch = "</title><script>window.broken = 1</script>"
    events: list[Any] = [(None, 0.0, _HOSTILE[0], "batch.opened", {"batch": batch, "limit": 1, "policy": _HOSTILE[1]})]
    for index, text in enumerate(_HOSTILE):
        fields = {"batch": batch, "call": index}
        submitted = {**fields, "call_id": text, "name": text, "input": {text: text, "path": text}}
        settled = {**fields, "outcome": text, "content": text, "error": text, "modifiers": 0}
        events += [
            (None, 1.0, text, "call.submitted", submitted),
            (None, 2.0, text, "call.started", {**fields, "lane": 0}),
            (None, 3.0, text, "file.mutation_ended", {**fields, "file": text, "version": text, "ok": True}),
            (None, 4.0, text, "call.settled", settled),
            (None, 5.0, text, text, {"batch": batch, "state": {"values": {text: text}}}),
        ]
    events.append((None, 6.0, "main", "tool.effect", {"batch": batch, "call": 0, "effect": "x" * 5_000_000}))
    return Trace(events, (), {"ended": _HOSTILE[0], "__proto__": "x"})


@pytest.mark.seldom
@pytest.mark.slow
def test_hostile_content_is_text(opened: Open) -> None:
    """What a tool wrote is shown and never run: no dialog, no request, no script, no element of its own."""
    page = view.show(_hostile(), _hostile(), names=(_HOSTILE[0], _HOSTILE[1]), title=_HOSTILE[0])
    assert len(page.html) < 500_000
    tab = opened(page)
    elements = set()
    for key in ("1", "2", "3"):
        tab.keyboard.press(key)
        for moment in range(len(_hostile().events)):
            tab.evaluate("moment => { toolrt.app.goTo(moment); toolrt.app.panel.drawNow(); }", moment)
        wait_until(tab, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
        elements |= set(tab.evaluate("[...document.querySelectorAll('main *')].map((each) => each.localName)"))
        assert tab.evaluate("document.querySelectorAll('script').length") == 2
    assert not elements & {"script", "img", "iframe", "object", "embed", "link", "base", "form", "a"}
    assert tab.evaluate("window.broken") is None
    assert tab.locator("#title").text_content() == _HOSTILE[0]
    assert "4,999,600 characters" in tab.locator("main").text_content()


def test_page_can_run_nothing_but_its_own_script(opened: Open) -> None:
    """Even markup that somehow got in could run nothing: the policy of the page refuses it."""
    tab = opened(view.show(traces.recorded("lost")), refuses=True)
    refused = tab.evaluate(
        """() => new Promise((done) => {
          const refused = [];
          document.addEventListener("securitypolicyviolation", (event) => {
            refused.push(event.effectiveDirective);
          });
          document.body.insertAdjacentHTML("beforeend", "<p onclick='window.broken = 1' id=bad>x</p>");
          document.getElementById("bad").click();
          const script = document.createElement("script");
          script.textContent = "window.broken = 1";
          document.body.append(script);
          const settled = () => requestAnimationFrame(() => requestAnimationFrame(() => done(refused.sort())));
          fetch("https://localhost:1/").then(settled, settled);
        })"""
    )
    assert refused == ["connect-src", "script-src-attr", "script-src-elem"]
    assert tab.evaluate("window.broken") is None


def test_notebook_shows_the_page_in_a_frame(opened: Open) -> None:
    """The value of a cell is a frame that holds the page, apart from the notebook: it steps by itself."""
    page = view.show(traces.recorded("lost"), title='A "title" <b>')
    cell = page._repr_html_()
    tab = opened(f"<!doctype html><title>notebook</title><p id=mine>mine</p>{cell}")
    assert tab.locator("iframe").get_attribute("title") == 'A "title" <b>'
    frame = tab.frame_locator("iframe")
    frame.get_by_role("button", name="One step forward").click()
    frame.locator('#here-0[data-moment="1"]').wait_for()
    assert tab.locator("#mine").text_content() == "mine"


@pytest.mark.seldom
def test_document_in_the_page_is_json() -> None:
    """The block that holds the trace can be read by itself: a page is also a file of data."""
    html = view.show(_hostile()).html
    block = html.split('id="document">')[1].split("</script>")[0]
    assert json.loads(block)["runs"][0]["events"]["kind"]
    assert not set(block) & set("<>&\u2028\u2029")
