"""The page, in a real browser: stepping, what was so at each step, keys, theme and arrows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.view import _traces as traces
from tests.view._tabs import at, here, panel, table, wait_until
from tests.view.conftest import Open
from toolrt import view
from toolrt.trace import Trace


def test_steps_go_forward_and_back_with_what_was_so(opened: Open) -> None:
    """At each step the panel says what ran, what it touched, and what the cell held from then on."""
    tab = opened(view.show(traces.recorded("lost")))
    for moment, row in ((1, ["x", "0", ""]), (2, ["x", "0", ""]), (3, ["x", "0 -> 1", "this step"])):
        tab.keyboard.press("ArrowRight")
        tab.locator("#panel h2", has_text=f"step {moment},").wait_for()
        assert table(tab, "Memory now") == [row]
    assert here(tab) == 3
    assert panel(tab, "Touched")[0].startswith("writes x 0 -> 1")
    assert panel(tab, "Could have run") == ["main.1 (it did)", "main.0"]
    tab.keyboard.press("ArrowLeft")
    at(tab, 2)
    tab.locator("#panel h2", has_text="step 2,").wait_for()
    assert table(tab, "Memory now") == [["x", "0", ""]]


def test_every_way_to_step_goes_there(opened: Open) -> None:
    """Buttons, keys, the slider and a click on a row all lead to a step, and none leaves the schedule."""
    tab = opened(view.show(traces.recorded("lost")))
    last = len(traces.recorded("lost").steps) - 1
    for act, moment in [
        (lambda: tab.keyboard.press("End"), last),
        (lambda: tab.keyboard.press("ArrowRight"), last),
        (lambda: tab.get_by_role("button", name="First step").click(), 0),
        (lambda: tab.get_by_role("button", name="One step back").click(), 0),
        (lambda: tab.get_by_role("button", name="One step forward").click(), 1),
        (lambda: tab.get_by_role("button", name="Last step").click(), last),
        (lambda: tab.get_by_role("slider", name="Step").fill("2"), 2),
        (lambda: tab.locator('.row[data-moment="4"]').click(), 4),
        (lambda: tab.keyboard.press("ArrowUp"), 3),
        (lambda: tab.keyboard.press("ArrowDown"), 4),
        (lambda: tab.keyboard.press("Home"), 0),
    ]:
        act()
        at(tab, moment)
        assert tab.locator("#position").text_content() == f"step {moment} of {last}"


def test_play_goes_to_the_end_and_stops(opened: Open) -> None:
    """Playing steps by itself; at the end the button offers to play again."""
    tab = opened(view.show(traces.recorded("lost")))
    tab.clock.install()
    tab.keyboard.press("Space")
    assert tab.get_by_role("button", name="Pause").get_attribute("aria-pressed") == "true"
    tab.clock.run_for(60_000)
    at(tab, len(traces.recorded("lost").steps) - 1)
    assert tab.get_by_role("button", name="Play").get_attribute("aria-pressed") == "false"


@pytest.mark.parametrize("trace", [traces.recorded("batch"), traces.large(12)], ids=["steps", "events"])
def test_queues_at_every_event_are_those_of_the_trace(opened: Open, trace: Trace) -> None:
    """Waiting, running, finished and read calls are counted alike by the page and by reading the events in order."""
    tab = opened(view.show(trace))
    counts = {"submitted": set(), "started": set(), "settled": set(), "delivered": set()}  # type: ignore[var-annotated]
    ends = {"call.submitted": "submitted", "call.started": "started", "call.settled": "settled"}
    by_moment: dict[int, list[Any]] = {}
    for index, event in enumerate(trace.events):
        by_moment.setdefault((event.step or 0) if trace.steps else index, []).append(event)
    seen: set[str] = set()
    for moment in range(len(trace.steps or trace.events)):
        for event in by_moment.get(moment, ()):
            kind = ends.get(event.kind, "delivered" if event.kind == "result.delivered" else None)
            if kind is not None:
                counts[kind].add(event.fields["call"])
        if not counts["submitted"]:
            continue
        tab.evaluate("moment => toolrt.app.goTo(moment)", moment)
        tab.evaluate("toolrt.app.panel.drawNow()")
        heads = tab.locator("#panel h3").all_text_contents()
        read, settled, started = counts["delivered"], counts["settled"], counts["started"]
        expected = {
            "Waiting": counts["submitted"] - started - settled,
            "Running": started - settled,
            "Finished, not read": settled - read,
            "Read": read,
        }
        shown = {head.partition(":")[0]: int(head.partition(":")[2]) for head in heads if head.partition(":")[2]}
        assert shown == {name: len(calls) for name, calls in expected.items() if calls}
        seen |= set(shown)
    # Nothing is read while `run` is at it; a recording of a batch that is read has all four.
    assert seen == {"Waiting", "Running", "Finished, not read", *([] if trace.steps else ["Read"])}


def test_state_shows_what_a_merge_changed(opened: Open) -> None:
    """The state is that of the last merge, and a value that it changed is told with the one before."""
    trace = traces.recorded("batch")
    tab = opened(view.show(trace))
    merged = trace.of_kind("lane.merged")[0]
    tab.evaluate("moment => { toolrt.app.goTo(moment); toolrt.app.panel.drawNow(); }", merged.step)
    state = tab.locator("#panel h3", has_text="State of").locator("+ table tbody tr").locator("th, td")
    assert state.all_text_contents() == ["total", "0 -> 2"]


def test_files_show_who_has_changed_them(opened: Open) -> None:
    """A file is listed from its first event on, with the last that happened to it."""
    tab = opened(view.show(traces.large(20)))
    tab.evaluate("toolrt.app.goTo(0); toolrt.app.panel.drawNow()")
    assert panel(tab, "Files") == []
    tab.keyboard.press("End")
    tab.locator("#panel h3", has_text="Files").wait_for()
    assert len(panel(tab, "Files")) == 20
    assert panel(tab, "Files")[3] == "file3.txt: changed by call 3 0a"


def test_races_of_one_schedule_are_gone_through(opened: Open) -> None:
    """Without a second schedule r goes from race to race: each pair is marked, with an arrow between."""
    trace = traces.recorded("lost")
    tab = opened(view.show(trace))
    for race in [*trace.races, trace.races[0]]:
        tab.keyboard.press("r")
        at(tab, race.before)
        marked = tab.locator(".row.race")
        assert [int(row.get_attribute("data-moment")) for row in marked.all()] == [race.before, race.after]


# Keys, theme, arrows


def test_keys_change_view_arrows_theme_and_zoom(opened: Open) -> None:
    """Each key that the help names does what it says."""
    tab = opened(view.show(traces.recorded("batch")))
    assert tab.get_by_role("tab").all_text_contents() == ["Calls", "Steps", "Table"]
    for number, role in (("2", "grid"), ("3", "table"), ("1", "grid")):
        tab.keyboard.press(number)
        tab.get_by_role(role).first.wait_for()
        assert tab.locator('[role=tab][aria-selected="true"]').get_attribute("title") == f"Key {number}"
    before = tab.evaluate("document.querySelector('.sheet').offsetWidth")
    tab.keyboard.press("+")
    assert tab.evaluate("document.querySelector('.sheet').offsetWidth") > before
    tab.keyboard.press("0")
    assert tab.evaluate("document.querySelector('.sheet').offsetWidth") == before
    seen = []
    for _ in range(3):
        tab.keyboard.press("a")
        seen.append(tab.get_by_label("Arrows").input_value())
    assert seen == ["all", "none", "here"]
    tab.keyboard.press("?")
    assert tab.get_by_role("dialog", name="Keys").is_visible()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Escape")
    assert tab.locator("#position").text_content().startswith("step 0 ")


def test_down_goes_from_call_to_call(opened: Open) -> None:
    """In the view of calls the arrow keys up and down choose a call, and the panel tells of it."""
    tab = opened(view.show(traces.recorded("batch")))
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowDown")
    tab.locator("#panel h3", has_text="Call 1").wait_for()
    assert tab.locator(".row.here .label").text_content().startswith("[1] bump")
    assert "It had to wait for [0], which writes counter/x." in tab.locator("#panel").text_content()
    # Call 1 waits for call 0, and one arrow says so.
    assert tab.locator("path.arrow.wait").count() == 1


def test_arrows_are_drawn_on_demand(opened: Open) -> None:
    """None, those of the present step, or all: as many as the trace has direct edges between tasks."""
    trace = traces.recorded("lost")
    task = [step.task for step in trace.steps]
    edges = [edge for edge in trace.direct_edges if task[edge.before] != task[edge.after]]
    tab = opened(view.show(trace))
    choose = tab.get_by_label("Arrows")
    for choice, count in (
        ("none", 0),
        ("all", len(edges)),
        ("here", sum(0 in (edge.before, edge.after) for edge in edges)),
    ):
        choose.select_option(choice)
        wait_until(tab, "count => document.querySelectorAll('path.arrow').length === count", count)


def test_theme_follows_the_system_until_it_is_switched(opened: Open) -> None:
    """Dark where the system is dark; the button outranks it."""
    background = "getComputedStyle(document.body).backgroundColor"
    dark = opened(view.show(traces.recorded("lost")), color_scheme="dark")
    light = opened(view.show(traces.recorded("lost")), color_scheme="light")
    is_dark, is_light = dark.evaluate(background), light.evaluate(background)
    assert is_dark != is_light
    dark.keyboard.press("t")
    assert dark.evaluate(background) == is_dark
    dark.keyboard.press("t")
    assert dark.evaluate(background) == is_light
    assert dark.get_by_role("button", name="Theme: light").is_visible()


@pytest.mark.seldom
@pytest.mark.parametrize("name", ["batch", "lost"])
def test_narrow_page_fits(opened: Open, name: str) -> None:
    """At 390 pixels nothing sticks out, and every button of the stepper can be reached."""
    tab = opened(view.show(traces.recorded(name), traces.recorded(name)), width=390)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    buttons = tab.locator("footer button").all()
    assert len(buttons) >= 5
    for button in buttons:
        box = button.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert box["y"] + box["height"] <= 800
