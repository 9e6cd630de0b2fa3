"""The page, in a real browser: stepping, comparing, keys, hostile content, ten thousand events, names for readers."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.view import _traces as traces
from tests.view.conftest import Open
from toolrt import view
from toolrt.trace import Trace


def here(tab: Any, side: int = 0) -> int:
    """Give the step that a pane of the view of steps marks as the present one."""
    row = tab.locator(f"#here-{side}")
    row.wait_for()
    return int(row.get_attribute("data-moment"))


def at(tab: Any, moment: int, side: int = 0) -> None:
    """Wait until that step is the present one."""
    tab.locator(f'#here-{side}[data-moment="{moment}"]').wait_for()


def panel(tab: Any, title: str, side: int = 0) -> list[str]:
    """Give the items of one list of the panel."""
    section = tab.locator("#panel > section").nth(side)
    return [
        text
        for heading in section.locator("h3").all()
        if heading.text_content() == title
        for text in heading.locator("+ ul > li").all_text_contents()
    ]


# ---------------------------------------------------------------------- stepping


def test_steps_go_forward_and_back_with_what_was_so(opened: Open) -> None:
    """At each step the panel says what ran, what it touched, and what the cell held from then on."""
    tab = opened(view.show(traces.recorded("lost")))
    for value in (["x = 0"], ["x = 0"], ["x = 1, written in step 3"]):
        tab.keyboard.press("ArrowRight")
        tab.locator(f'#panel li:text-is("{value[0]}")').wait_for()
        assert panel(tab, "Memory now") == value
    assert here(tab) == 3
    assert panel(tab, "Touched")[0].startswith("writes x = 1")
    assert panel(tab, "Could have run") == ["main.1 (it did)", "main.0"]
    tab.keyboard.press("ArrowLeft")
    at(tab, 2)
    assert panel(tab, "Memory now") == ["x = 0"]


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


def test_queues_at_every_event_are_those_of_the_trace(opened: Open) -> None:
    """Waiting, running, finished and read calls are counted alike by the page and by reading the events in order."""
    trace = traces.recorded("batch")
    tab = opened(view.show(trace))
    counts = {"submitted": set(), "started": set(), "settled": set(), "delivered": set()}  # type: ignore[var-annotated]
    ends = {"call.submitted": "submitted", "call.started": "started", "call.settled": "settled"}
    by_step: dict[int, list[Any]] = {}
    for event in trace.events:
        by_step.setdefault(event.step or 0, []).append(event)
    for step in range(len(trace.steps)):
        for event in by_step.get(step, ()):
            kind = ends.get(event.kind, "delivered" if event.kind == "result.delivered" else None)
            if kind is not None:
                counts[kind].add(event.fields["call"])
        if not counts["submitted"]:
            continue
        tab.evaluate("moment => toolrt.app.goTo(moment)", step)
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


def test_state_shows_what_a_merge_changed(opened: Open) -> None:
    """The state is that of the last merge, and a value that it changed is told with the one before."""
    trace = traces.recorded("batch")
    tab = opened(view.show(trace))
    merged = trace.of_kind("lane.merged")[0]
    tab.evaluate("moment => { toolrt.app.goTo(moment); toolrt.app.panel.drawNow(); }", merged.step)
    state = tab.locator("#panel h3", has_text="State of").locator("+ ul > li").all_text_contents()
    assert state == ["total = 2 (was 0)"]


def test_files_show_who_has_changed_them(opened: Open) -> None:
    """A file is listed from its first event on, with the last that happened to it."""
    tab = opened(view.show(traces.large(20)))
    tab.evaluate("toolrt.app.goTo(0); toolrt.app.panel.drawNow()")
    assert panel(tab, "Files") == []
    tab.keyboard.press("End")
    tab.locator("#panel h3", has_text="Files").wait_for()
    assert len(panel(tab, "Files")) == 20
    assert panel(tab, "Files")[3] == "file3.txt: changed by call 3 0a"


# ---------------------------------------------------------------------- comparing


def test_two_schedules_stand_side_by_side_with_their_first_difference(opened: Open) -> None:
    """The page opens where the two part; both mark that step, and the two accesses that came the other way round."""
    failing, passing = traces.recorded("lost"), traces.recorded("kept")
    tab = opened(view.show(failing, passing, names=("fails", "passes")))
    parts = next(
        index
        for index, (one, other) in enumerate(zip(failing.steps, passing.steps, strict=False))
        if one.task != other.task
    )
    assert tab.locator(".pane h2").all_text_contents()[0].startswith("fails")
    for side in (0, 1):
        at(tab, parts, side)
        marked = tab.locator(".pane").nth(side).locator(".row.parts")
        assert [row.get_attribute("data-moment") for row in marked.all()] == [str(parts)]
    # The race: in one the second reads before the first writes, in the other after.
    race = [
        sorted(
            int(row.get_attribute("data-moment")) for row in tab.locator(".pane").nth(side).locator(".row.race").all()
        )
        for side in (0, 1)
    ]
    for side, trace in enumerate((failing, passing)):
        first, second = (trace.steps[moment] for moment in race[side])
        kinds = [{access.write for access in step.accesses} for step in (first, second)]
        assert {True} in kinds
        assert first.task != second.task
    assert [failing.steps[moment].task for moment in race[0]] == [passing.steps[moment].task for moment in race[1]][
        ::-1
    ]
    assert tab.locator(".pane").nth(0).locator("path.race").count() == 1


def test_two_alike_have_no_difference(opened: Open) -> None:
    """Where two schedules are the same, that is said, and nothing is marked."""
    tab = opened(view.show(traces.recorded("lost"), traces.recorded("lost")))
    assert tab.get_by_role("button", name="No difference").is_disabled()
    assert tab.locator(".row.parts, .row.race").count() == 0


def test_both_sides_step_together(opened: Open) -> None:
    """A step forward is one on both sides; a side that has ended stays where it ended, and says so."""
    failing = traces.recorded("lost")
    shorter = Trace((), failing.steps[:3], failing.meta)
    tab = opened(view.show(failing, shorter))
    tab.keyboard.press("Home")
    tab.keyboard.press("ArrowRight")
    at(tab, 1, 0)
    at(tab, 1, 1)
    tab.keyboard.press("End")
    at(tab, len(failing.steps) - 1, 0)
    at(tab, 2, 1)
    assert "it ended here" in tab.locator("#panel > section").nth(1).locator("h2").text_content()


def test_key_d_and_r_go_to_difference_and_race(opened: Open) -> None:
    """From anywhere d goes to the first difference, and r to one end of the race and then the other."""
    tab = opened(view.show(traces.recorded("lost"), traces.recorded("kept")))
    parts = here(tab)
    race = sorted(
        int(row.get_attribute("data-moment")) for row in tab.locator(".pane").nth(0).locator(".row.race").all()
    )
    tab.keyboard.press("End")
    tab.keyboard.press("d")
    at(tab, parts)
    tab.keyboard.press("Home")
    tab.keyboard.press("r")
    at(tab, race[0])
    tab.keyboard.press("r")
    at(tab, race[1])


def test_races_of_one_schedule_are_gone_through(opened: Open) -> None:
    """Without a second schedule r goes from race to race: each pair is marked, with an arrow between."""
    trace = traces.recorded("lost")
    tab = opened(view.show(trace))
    for race in [*trace.races, trace.races[0]]:
        tab.keyboard.press("r")
        at(tab, race.before)
        marked = tab.locator(".row.race")
        assert [int(row.get_attribute("data-moment")) for row in marked.all()] == [race.before, race.after]


# ---------------------------------------------------------------------- keys, theme, arrows


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
    assert "It had to wait for calls 0." in tab.locator("#panel").text_content()
    # Call 1 waits for call 0, and one arrow says so.
    assert tab.locator("path.arrow.wait").count() == 1


def test_arrows_are_drawn_on_demand(opened: Open) -> None:
    """None, those of the present step, or all: as many as the trace has direct edges."""
    trace = traces.recorded("lost")
    tab = opened(view.show(trace))
    choose = tab.get_by_label("Arrows")
    for choice, count in (
        ("none", 0),
        ("all", len(trace.direct_edges)),
        ("here", sum(0 in (edge.before, edge.after) for edge in trace.direct_edges)),
    ):
        choose.select_option(choice)
        tab.wait_for_function("count => document.querySelectorAll('path.arrow').length === count", arg=count)


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


def test_colours_of_text_have_contrast(opened: Open) -> None:
    """Every colour that text has stands out from every ground it stands on by 4.5 to 1, in both themes (WCAG AA)."""
    ratio = """
    ([ink, ground]) => {
      const probe = document.createElement("div");
      document.body.append(probe);
      const channels = (name) => {
        probe.style.color = `var(${name})`;
        const canvas = document.createElement("canvas").getContext("2d");
        canvas.fillStyle = getComputedStyle(probe).color;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((value) => {
          const share = value / 255;
          return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
      };
      const light = ([red, green, blue]) => 0.2126 * red + 0.7152 * green + 0.0722 * blue;
      const [one, other] = [light(channels(ink)), light(channels(ground))].sort((a, b) => b - a);
      probe.remove();
      return (one + 0.05) / (other + 0.05);
    }
    """
    for scheme in ("light", "dark"):
        tab = opened(view.show(traces.recorded("lost")), color_scheme=scheme)
        for ink in ("--ink", "--soft", "--bad", "--race"):
            for ground in ("--paper", "--card", *(["--here", "--parts"] if ink == "--ink" else [])):
                assert tab.evaluate(ratio, [ink, ground]) >= 4.5, (scheme, ink, ground)


def test_reduced_motion_has_no_transitions(opened: Open) -> None:
    """Who asks for less motion gets none that is not a step."""
    for preference, moves in (("reduce", False), ("no-preference", True)):
        tab = opened(view.show(traces.recorded("lost")), reduced_motion=preference)
        durations = tab.evaluate(
            "[...document.querySelectorAll('*')].map((each) => getComputedStyle(each).transitionDuration)"
        )
        assert any(duration != "0s" for duration in durations) is moves


@pytest.mark.parametrize("name", ["batch", "lost"])
def test_narrow_page_fits(opened: Open, name: str) -> None:
    """At 390 pixels nothing sticks out, and every button of the stepper can be reached."""
    tab = opened(view.show(traces.recorded(name), traces.recorded(name)), width=390)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    for button in tab.locator("footer button").all():
        box = button.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert box["y"] + box["height"] <= 800


# ---------------------------------------------------------------------- hostile content

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
        tab.wait_for_function(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
        )
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


# ---------------------------------------------------------------------- ten thousand events


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
    tab.evaluate("document.querySelector('.scroll').scrollTop = 26 * 700")
    tab.get_by_text("[700] work file700.txt").wait_for()
    assert tab.get_by_text("[0] work file0.txt").count() == 0


def test_work_for_a_frame_does_not_grow_with_the_trace(opened: Open) -> None:
    """A frame in ten thousand events makes no more elements than one in a thousand."""
    count = """() => {
      const draw = () => { for (const view of toolrt.app.views) view.drawNow(); };
      toolrt.app.goTo(500);
      draw();
      let made = 0;
      const [one, other] = [document.createElement, document.createElementNS];
      document.createElement = function (...rest) { made += 1; return one.apply(this, rest); };
      document.createElementNS = function (...rest) { made += 1; return other.apply(this, rest); };
      toolrt.app.goTo(900);
      draw();
      return made;
    }"""
    made = {}
    for calls in (100, 1_000):
        tab = opened(view.show(traces.large(calls)))
        tab.keyboard.press("2")
        made[calls] = tab.evaluate(count)
    assert 0 < made[1_000] <= 1.2 * made[100]


# ---------------------------------------------------------------------- for who cannot see it


def test_everything_has_a_name(opened: Open) -> None:
    """In the tree that a screen reader walks, whatever can be used or pointed at has a name."""
    for shown in (view.show(traces.recorded("batch")), view.show(traces.recorded("lost"), traces.recorded("kept"))):
        tab = opened(shown)
        session = tab.context.new_cdp_session(tab)
        for key in ("1", "2", "3"):
            tab.keyboard.press(key)
            tree = session.send("Accessibility.getFullAXTree")["nodes"]
            used = {"button", "combobox", "slider", "tab", "tablist", "grid", "region", "complementary", "img"}
            nameless = [
                node["role"]["value"]
                for node in tree
                if not node.get("ignored")
                and node["role"]["value"] in used
                # An arrow alone, or a sign, says nothing when it is read aloud.
                and not re.search(r"[A-Za-z]", str(node.get("name", {}).get("value", "")))
            ]
            assert nameless == []
            assert tab.locator("[role=group]:not([aria-label])").count() == 0
        session.detach()


def test_rows_say_what_they_show(opened: Open) -> None:
    """A row of a call is told in words: how it ended, for whom it waited, and when it did what."""
    tab = opened(view.show(traces.recorded("batch")))
    name = tab.locator(".row .bars[role=img]").nth(3).get_attribute("aria-label")
    assert name.startswith("[1] bump x: ok; had to wait for calls 0; waits for its lane from event")
    assert "runs from event" in name
    tab.keyboard.press("2")
    cell = tab.locator("#here-0 [role=gridcell].cell")
    assert cell.get_attribute("aria-label").startswith("main: ")


def test_steps_are_announced(opened: Open) -> None:
    """A step is said to who cannot see it, with the marks it has."""
    tab = opened(view.show(traces.recorded("lost"), traces.recorded("kept"), names=("fails", "passes")))
    said = tab.locator("#said[role=status]")
    assert "first difference" in said.text_content()
    tab.keyboard.press("Home")
    assert said.text_content().startswith("fails: step 0, main: ")


def test_table_says_the_same_as_the_trace(opened: Open) -> None:
    """The table has a row for each step, with what the trace has of it."""
    trace = traces.recorded("lost")
    tab = opened(view.show(trace))
    tab.get_by_role("tab", name="Table").click()
    rows = tab.locator("tbody tr")
    assert rows.count() == len(trace.steps)
    for step in trace.steps:
        cells = rows.nth(step.index).locator("th, td").all_text_contents()
        assert cells[0] == str(step.index)
        assert cells[1:3] == [step.task, ", ".join(step.enabled)]


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


def test_document_in_the_page_is_json(opened: Open) -> None:
    """The block that holds the trace can be read by itself: a page is also a file of data."""
    html = view.show(_hostile()).html
    block = html.split('id="document">')[1].split("</script>")[0]
    assert json.loads(block)["runs"][0]["events"]["kind"]
    assert not set(block) & set("<>&\u2028\u2029")


@pytest.mark.parametrize("width", [736, 860])
def test_two_side_by_side_have_the_width_of_a_notebooks_frame(opened: Open, width: int) -> None:
    """In the site's, and in Jupyter's, the panel stands below both, and three tasks are seen on either side."""
    tab = opened(view.show(*traces.lost_and_kept()), width=width)
    panes, panel = (tab.locator(name).bounding_box() for name in ("#panes", "#panel"))
    assert panel["y"] >= panes["y"] + panes["height"]
    assert panes["width"] > width - 20
    one, other = (pane.bounding_box() for pane in tab.locator(".pane").all())
    assert one["y"] == other["y"]
    left, right = (section.bounding_box() for section in tab.locator("#panel section").all())
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]


def test_calls_side_by_side_leave_room_for_their_bars(opened: Open) -> None:
    """In a notebook's frame the names take less than half of a pane."""
    tab = opened(view.show(traces.recorded("batch"), traces.recorded("batch")), width=860)
    name, bars = (tab.locator(".pane").first.locator(which).first.bounding_box() for which in (".label", ".overlay"))
    assert name["width"] < 0.45 * tab.locator(".pane").first.bounding_box()["width"]
    assert bars["width"] > name["width"]
