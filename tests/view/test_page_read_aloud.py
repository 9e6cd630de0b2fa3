"""The page for who cannot see it, or not well: names, announcements, tables, contrast, no motion."""

from __future__ import annotations

import re

import pytest

from tests.view import _traces as traces
from tests.view.conftest import Open
from toolrt import view


@pytest.mark.seldom
def test_everything_has_a_name(opened: Open) -> None:
    """In the tree that a screen reader walks, whatever can be used or pointed at has a name."""
    for shown in (view.show(traces.recorded("batch")), view.show(traces.recorded("lost"), traces.recorded("kept"))):
        tab = opened(shown)
        session = tab.context.new_cdp_session(tab)
        for key in ("1", "2", "3"):
            tab.keyboard.press(key)
            tree = session.send("Accessibility.getFullAXTree")["nodes"]
            used = {"button", "slider", "tab", "tablist", "grid", "region", "complementary", "img"}
            names = [
                (node["role"]["value"], str(node.get("name", {}).get("value", "")))
                for node in tree
                if not node.get("ignored") and node["role"]["value"] in used
            ]
            assert {"button", "slider", "tab", "region", "complementary"} <= {role for role, _ in names}
            # An arrow alone, or a sign, says nothing when it is read aloud.
            assert [role for role, name in names if not re.search(r"[A-Za-z]", name)] == []
            assert tab.locator("[role=group]:not([aria-label])").count() == 0
        session.detach()


def test_rows_say_what_they_show(opened: Open) -> None:
    """A row of a call is told in words: how it ended, for whom it waited, and when it did what."""
    tab = opened(view.show(traces.recorded("batch")))
    name = tab.locator(".row .bars[role=img]").nth(2).get_attribute("aria-label")
    assert name.startswith(
        "[1] bump x: ok; writes counter/x; had to wait for [0], which writes counter/x; waits for its lane"
    )
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


@pytest.mark.seldom
def test_reduced_motion_has_no_transitions(opened: Open) -> None:
    """Who asks for less motion gets none that is not a step."""
    for preference, moves in (("reduce", False), ("no-preference", True)):
        tab = opened(view.show(traces.recorded("lost")), reduced_motion=preference)
        durations = tab.evaluate(
            "[...document.querySelectorAll('*')].map((each) => getComputedStyle(each).transitionDuration)"
        )
        assert any(duration != "0s" for duration in durations) is moves
