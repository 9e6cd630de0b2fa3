"""A page of ten thousand events, in a real browser: what is drawn is what is seen."""

from __future__ import annotations

import pytest

from tests.view import _traces as traces
from tests.view.conftest import Open
from toolrt import view


@pytest.mark.parametrize("key", ["1", "2", "3"])
def test_ten_thousand_events_are_drawn_as_far_as_they_are_seen(opened: Open, key: str) -> None:
    """Wherever one goes in ten thousand events, the page holds a few hundred elements, and the right ones."""
    trace = traces.large(1_000)
    assert len(trace.events) > 10_000
    tab = opened(view.show(trace))
    tab.keyboard.press(key)
    most = 0
    for share in (0, 0.37, 0.99, 0.5, 1):
        moment = round(share * (len(trace.events) - 1))
        tab.evaluate(
            "moment => { toolrt.app.goTo(moment); for (const view of toolrt.app.views) view.drawNow(); }", moment
        )
        most = max(most, tab.evaluate("document.querySelectorAll('#panes *').length"))
        if key == "2":
            row = tab.locator(f'.row[data-moment="{moment}"]')
            assert row.get_attribute("aria-selected") == "true"
            assert row.locator(".cell").is_visible()
        if key == "3":
            assert tab.locator('tr[aria-current="true"] th').text_content() == str(moment)
    assert most < 1_500


def test_call_far_down_is_there_when_scrolled_to(opened: Open) -> None:
    """Scrolling shows the rows that were not there before, and lets go of the others."""
    tab = opened(view.show(traces.large(1_000)))
    tab.evaluate("document.querySelector('.scroll').scrollTop = toolrt.app.views[0].tops[700]")
    tab.get_by_text("[700] work file700.txt").wait_for()
    assert tab.get_by_text("[0] work file0.txt").count() == 0


_ONE_KEY = """
(key) => {
  const { app } = toolrt;
  const draw = () => { for (const view of app.views) view.drawNow(); app.panel.drawNow(); };
  app.goTo(key);
  draw();
  let made = 0;
  const [one, other] = [document.createElement, document.createElementNS];
  document.createElement = function (...rest) { made += 1; return one.apply(this, rest); };
  document.createElementNS = function (...rest) { made += 1; return other.apply(this, rest); };
  const seen = new MutationObserver(() => {});
  seen.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  draw();
  const records = seen.takeRecords();
  [document.createElement, document.createElementNS] = [one, other];
  const panes = records.filter((each) => each.target.closest("#panes"));
  const nodes = panes.reduce((sum, each) => sum + each.addedNodes.length + each.removedNodes.length, 0);
  return { made, changes: records.length, nodes };
}
"""


@pytest.mark.seldom
@pytest.mark.parametrize("key", ["1", "2", "3"])
def test_work_for_a_key_does_not_grow_with_the_trace(opened: Open, key: str) -> None:
    """A key in ten thousand events makes no more elements, and hardly changes more, than one in a thousand."""
    found = []
    for calls in (100, 1_000):
        tab = opened(view.show(traces.large(calls)))
        tab.keyboard.press(key)
        # In the middle, where as many calls run, and more than the panel lists.
        found.append(tab.evaluate(_ONE_KEY, 2 * calls + 2 + 70 * (calls // 20) + 15))
    few, many = found
    assert 0 < many["made"] <= 1.2 * few["made"]
    assert 0 < many["changes"] <= few["changes"] + 10


@pytest.mark.parametrize("key", ["2", "3"])
def test_step_keeps_the_rows_that_are_there(opened: Open, key: str) -> None:
    """A key marks another row; neither steps nor table make a row anew that was there before."""
    tab = opened(view.show(traces.large(100)))
    tab.keyboard.press(key)
    assert tab.evaluate(_ONE_KEY, 510)["nodes"] <= 2


@pytest.mark.seldom
def test_table_turns_its_pages(opened: Open) -> None:
    """A hundred rows at a time; the buttons turn the page, and a step turns it too."""
    tab = opened(view.show(traces.large(100)))
    tab.get_by_role("tab", name="Table").click()
    assert tab.locator("tbody tr").count() == 100
    tab.get_by_role("button", name="Rows after").click()
    assert tab.locator("tbody th").first.text_content() == "100"
    tab.keyboard.press("End")
    tab.locator('tr[aria-current="true"]').wait_for()
    assert tab.get_by_role("button", name="Rows after").is_disabled()
