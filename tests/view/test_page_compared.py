"""A page of two schedules, in a real browser: where they part, their race, and the room they have."""

from __future__ import annotations

import pytest

from tests.view import _traces as traces
from tests.view._tabs import at, here
from tests.view.conftest import Open
from toolrt import view
from toolrt.trace import Trace


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


@pytest.mark.seldom
def test_calls_side_by_side_leave_room_for_their_bars(opened: Open) -> None:
    """In a notebook's frame the names take less than half of a pane."""
    tab = opened(view.show(traces.recorded("batch"), traces.recorded("batch")), width=860)
    name, bars = (tab.locator(".pane").first.locator(which).first.bounding_box() for which in (".label", ".overlay"))
    assert name["width"] < 0.45 * tab.locator(".pane").first.bounding_box()["width"]
    assert bars["width"] > name["width"]
