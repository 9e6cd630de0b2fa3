"""What a page finds, draws of a deadlock, and puts on paper, in a real browser."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.view import _traces as traces
from tests.view.conftest import Open
from toolrt import sim, view


def _step(tab: Any) -> int:
    return int(tab.evaluate("toolrt.app.moment"))


def test_tasks_that_wait_in_a_circle_are_drawn(opened: Open) -> None:
    """When the circle is closed, and not before; the drawing says in words what it shows."""
    tab = opened(sim.explore(traces.deadlock, sim.DPOR()).failures[0].show())
    tab.keyboard.press("Home")
    assert tab.locator("svg.circle").count() == 0
    tab.keyboard.press("End")
    drawn = tab.locator("#panel section").first.locator("svg.circle")
    drawn.wait_for()
    assert drawn.get_attribute("role") == "img"
    assert drawn.get_attribute("aria-label") == (
        "A circle: main.0 both waits for Lock other, held by main.1 both; "
        "main.1 both waits for Lock one, held by main.0 both"
    )
    box = tab.locator("#panel").bounding_box()
    for text in drawn.locator("text").all():
        found = text.bounding_box()
        assert box["x"] <= found["x"] <= box["x"] + box["width"] - found["width"]


def test_text_is_found_from_step_to_step(opened: Open) -> None:
    """In what steps did, from the last one on to the first; what is in none is not found, and nothing moves."""
    tab = opened(sim.explore(traces.deadlock, sim.DPOR()).failures[0].show())
    tells = "toolrt.app.runs.some((run) => at < run.length && run.tells(at).includes('waits for lock'))"
    steps = tab.evaluate(f"toolrt.range(toolrt.app.length).filter((at) => {tells})")
    assert len(steps) > 1
    tab.keyboard.press("Home")
    tab.keyboard.press("/")
    tab.keyboard.type("Waits for Lock")
    went = []
    for _ in range(len(steps) + 1):
        tab.keyboard.press("Enter")
        went.append(_step(tab))
    assert went == [*steps, steps[0]]
    assert tab.locator("#found").text_content() == f"1 of {len(steps)}"
    tab.keyboard.press("Escape")
    tab.keyboard.press("N")
    assert _step(tab) == steps[-1]
    tab.keyboard.press("n")
    assert _step(tab) == steps[0]
    tab.locator("#find").fill("no such text")
    tab.locator("#find").press("Enter")
    assert tab.locator("#found").text_content() == "not found"
    assert _step(tab) == steps[0]


def test_step_that_is_left_out_is_found_and_shown(opened: Open) -> None:
    """Of the rows that a filter folds, those with the step unfold."""
    tab = opened(view.show(traces.lost_and_kept()[0]))
    tab.locator("#filter").select_option("task:main.1")
    tab.locator("#find").fill("main.0")
    tab.locator("#find").press("Enter")
    assert tab.evaluate("toolrt.app.shown[0].has(toolrt.app.moment)")
    assert tab.evaluate("toolrt.app.runs[0].nameAt(toolrt.app.moment)") == "main.0"


def test_next_step_of_a_thing_is_one_key_or_one_link_away(opened: Open) -> None:
    """From the last one that touches it the key goes to the first."""
    trace = traces.lost_and_kept()[0]
    tab = opened(view.show(trace))
    cell = next(access.resource for step in trace.steps for access in step.accesses if access.resource[0] == "cell")
    steps = [step.index for step in trace.steps if any(access.resource == cell for access in step.accesses)]
    tab.evaluate(f"toolrt.app.goTo({steps[0]})")
    touches = tab.locator("#panel li", has_text="touched again in")
    touches.first.wait_for()
    assert f"step {steps[1]}" in (touches.first.text_content() or "")
    for expected in [*steps[1:], steps[0]]:
        tab.keyboard.press("o")
        assert _step(tab) == expected
    tab.locator("#panel [data-go]").first.click()
    assert _step(tab) == steps[1]


def test_all_steps_are_printed(opened: Open) -> None:
    """On paper stand the verdict and a row for each step of both schedules; on the screen nothing has changed."""
    failure = sim.explore(traces.deadlock, sim.DPOR()).failures[0]
    tab = opened(failure.show())
    assert not tab.locator("#printed").is_visible()
    tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    tab.emulate_media(media="print")
    assert not tab.locator("main").is_visible()
    assert tab.locator("#verdict code").first.is_visible()
    heads = tab.locator("#printed th[scope=rowgroup]").all_text_contents()
    assert heads == ["fails", "passes"]
    lengths = json.loads(tab.evaluate("JSON.stringify(toolrt.app.runs.map((run) => run.length))"))
    assert tab.locator("#printed td:first-child").count() == sum(lengths)
    assert "waits for Lock other, held by both (main.1)" in (tab.locator("#printed").text_content() or "")
    tab.evaluate("window.dispatchEvent(new Event('afterprint'))")
    tab.emulate_media(media="screen")
    assert tab.locator("#printed tr").count() == 0
    assert tab.locator("main").is_visible()


@pytest.mark.seldom
def test_legend_has_the_marks_of_its_page(opened: Open) -> None:
    """Those of calls stand on a page with calls only."""
    tab = opened(view.show(traces.lost_and_kept()[0]))
    told = tab.locator("#legend").text_content()
    assert "a race" in told
    assert "outcomes" not in told
    tab = opened(view.show(traces.live_batch()))
    assert "outcomes" in tab.locator("#legend").text_content()
