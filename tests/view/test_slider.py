"""The page with sliders over schedules, and over the steps of each."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import trio

import toolrt
from tests.view import _traces as traces
from tests.view.conftest import Open
from toolrt import sim, view
from toolrt.errors import DefinitionRefused
from toolrt.trace import Trace


def _schedules() -> list[sim.Execution]:
    """Every schedule of the lost update, the simplest first, with what was read and written."""
    found: list[sim.Execution] = []
    sim.explore(traces.lost_update, sim.Exhaustive(), lambda execution: found.append(execution) or True)
    return [sim.run(traces.lost_update, sim.Choices(execution.choices), details=True) for execution in found]


def _is_lost(execution: sim.Execution) -> bool:
    return execution.value != 2


@pytest.fixture(scope="module")
def page() -> view.Page:
    """The page of all six schedules, of which four lose an addition."""
    return view.slider(_schedules(), wrong=_is_lost, title="Lost update")


def _steps(tab: Any) -> list[str]:
    return [" ".join(text.split()) for text in tab.locator("#steps tr").all_inner_texts()]


def test_sliders_walk_through_schedules_and_steps(opened: Open, page: view.Page) -> None:
    """Arrow keys and buttons move both; what is shown is what the execution did, and what memory holds then."""
    tab = opened(page)
    assert tab.inner_text("#which") == "1 of 6"
    assert tab.inner_text("#position") == "step 0 of 5"
    assert tab.inner_text("#end") == "✓ 2"
    assert tab.locator("#heads th").all_inner_texts() == ["step", "main", "main.0", "main.1"]
    assert _steps(tab)[1:] == ["1 reads x = 0", "2 writes x = 1", "3 reads x = 1", "4 writes x = 2", "5 reads x = 2"]
    assert "nothing is known" in tab.inner_text("#memory")
    for _ in range(3):
        tab.keyboard.press("ArrowRight")
    tab.click("#forward")
    assert tab.inner_text("#memory") == "x = 2"
    assert "Step 4, at 0 s: main.1 writes x = 2." in tab.inner_text("#now")
    tab.click("#back")
    tab.keyboard.press("ArrowDown")
    assert tab.inner_text("#which") == "2 of 6"
    assert tab.inner_text("#position") == "step 3 of 5"
    assert tab.inner_text("#end") == "✗ 1"
    assert tab.inner_text("#beside") == "They part at step 2."
    assert tab.locator("#steps tr.parts").all_inner_texts()[0].startswith("2")
    tab.keyboard.press("End")
    assert tab.is_disabled("#forward")
    tab.keyboard.press("ArrowUp")
    assert tab.inner_text("#which") == "1 of 6"


def test_schedules_are_filtered_by_how_they_end(opened: Open, page: view.Page) -> None:
    """All, those that go wrong, and those of one outcome; how many there are of each is told."""
    tab = opened(page)
    assert tab.inner_text("#endings") == "✗ 4 × 1\n✓ 2 × 2"
    assert tab.locator("#filter option").all_inner_texts() == [
        "all 6",
        "the 4 that go wrong",
        "those that go right",
        "those that end in 1",
        "those that end in 2",
    ]
    tab.select_option("#filter", "wrong")
    assert (tab.inner_text("#which"), tab.inner_text("#end")) == ("1 of 4", "✗ 1")
    tab.select_option("#filter", "right")
    assert (tab.inner_text("#which"), tab.inner_text("#end")) == ("1 of 2", "✓ 2")


def test_slider_itself_is_moved_and_told_to_screen_readers(opened: Open, page: view.Page) -> None:
    """It is a range input: left and right move it when it has the focus, and its value is told in words."""
    tab = opened(page, width=420)
    tab.focus("#schedule")
    tab.keyboard.press("ArrowRight")
    assert tab.inner_text("#which") == "2 of 6"
    assert tab.get_attribute("#schedule", "aria-valuetext") == "schedule 2, ends in 1"
    tab.focus("#slider")
    tab.keyboard.press("End")
    assert tab.get_attribute("#slider", "aria-valuetext") == "step 5: main reads x = 1"
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_names_and_hostile_text_are_shown_as_text(opened: Open) -> None:
    """What a program is called, holds and gives is never markup."""
    hostile = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"

    async def program() -> str:
        cell = sim.Cell(0, name=hostile)
        cell.set(hostile)  # type: ignore[arg-type]
        return hostile

    tab = opened(view.slider([sim.run(program, details=True)], names=[hostile], title=hostile))
    assert hostile[:20] in tab.inner_text("#end")
    assert hostile[:20] in tab.inner_text("#which")
    assert tab.locator("img").count() == 0


def test_failures_and_errors_go_wrong_unless_told_otherwise() -> None:
    """A failure of an exploration, an execution with an error; a passing one and a bare trace do not."""

    async def fails() -> None:
        raise ValueError("no")

    report = sim.explore(traces.lost_update, sim.Exhaustive(), lambda execution: execution.value == 2)
    found = [report.failures[0], sim.run(fails), sim.run(traces.lost_update), sim.run(fails).trace]
    html = view.slider(found, names=["a", "b", "c", "d"]).html
    for name, wrong in zip("abcd", ["true", "true", "false", "false"], strict=True):
        part = html[html.index(f'"name":"{name}"') :]
        assert part[part.index('"wrong":') :].startswith(f'"wrong":{wrong}')


def test_same_schedules_give_the_same_page() -> None:
    """Byte for byte; and it says how many there are."""
    one, two = (view.slider(_schedules(), wrong=_is_lost) for _ in range(2))
    assert one.html == two.html
    assert repr(one) == "<Page 'Schedules': 6 schedules>"
    assert "sandbox" in one._repr_html_()


@pytest.mark.parametrize("source", [3, [], [3], Trace(), [Trace()], None])
def test_what_cannot_be_slid_over_is_refused(source: Any) -> None:
    """Nothing, no traces, one bare trace instead of several, and recordings, which have no steps."""
    with pytest.raises(DefinitionRefused, match="slider"):
        view.slider(source)


def test_too_many_are_refused_and_names_have_to_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the limit."""
    execution = sim.run(traces.lost_update)
    with pytest.raises(DefinitionRefused, match="2,000"):
        view.slider([execution] * 2_001)
    monkeypatch.setattr("toolrt.view._slider._MOST_STEPS", 11)
    with pytest.raises(DefinitionRefused, match="at most 11 steps"):
        view.slider([execution] * 2)
    with pytest.raises(DefinitionRefused, match="1 texts"):
        view.slider([execution], names=["a", "b"])


# ---------------------------------------------------------------------- a slider for each thing that is moved

AXES: dict[str, list[Any]] = {"slots": [1, 2, 4], "lanes": [toolrt.parallel, toolrt.serial]}


def _looks(slots: int, lanes: Any) -> sim.Execution:
    """Four calls of a second each, in so many slots."""

    @toolrt.tool(safe=True, schema=None)
    async def look(ctx: toolrt.ToolContext, what: str) -> str:
        await trio.sleep(1)
        return f"saw <b>{what}</b>"

    async def program() -> dict[str, Any]:
        calls = [toolrt.ToolCall(what, "look", {"what": what}) for what in ("door", "roof", "floor", "wall")]
        await toolrt.Runtime(toolrt.Registry([look]), lanes, slots).run(calls)
        return {"makespan": trio.current_time(), "<i>kind</i>": f"<b>{slots}</b>"}

    return sim.run(program)


@pytest.fixture(scope="module")
def moved() -> view.Page:
    """A page with a slider over slots and one over lanes."""
    return view.slider([_looks(*at) for at in product(*AXES.values())], axes=AXES, title="<u>Looks</u>")


def test_positions_show_what_was_run_there(opened: Open, moved: view.Page) -> None:
    """The values, those before the move, and the picture; what a program gave is text."""
    tab = opened(moved)
    assert repr(moved) == "<Page '<u>Looks</u>': 6 positions>"
    rows = tab.locator("#values tr")
    assert rows.nth(0).inner_text().split() == ["makespan", "4"]
    tab.focus("#axis0")
    tab.keyboard.press("ArrowRight")
    assert rows.nth(0).inner_text().split() == ["makespan", "2", "4"]
    assert rows.nth(1).inner_text().split() == ["<i>kind</i>", "<b>2</b>", "<b>1</b>"]
    assert tab.inner_text("#along") == "along slots"
    assert tab.get_attribute("#picture", "alt") == "<u>Looks</u>, at slots 2, lanes parallel"
    assert tab.evaluate("document.getElementById('picture').naturalWidth") > 500
    tab.focus("#axis1")
    tab.keyboard.press("ArrowRight")
    assert rows.nth(0).inner_text().split() == ["makespan", "4", "2"]
    assert tab.get_attribute("#axis1", "aria-valuetext") == "serial"
    assert (
        tab.locator("main *").evaluate_all("all => all.some((one) => ['B', 'I', 'U'].includes(one.tagName))") is False
    )


def test_bars_stand_along_the_slider_that_moved(opened: Open, moved: view.Page) -> None:
    """One for each of its positions, as high as the value there; where the reader stands it is marked."""
    tab = opened(moved, width=420)
    tab.focus("#axis0")
    tab.keyboard.press("End")
    bars = tab.locator("#values rect")
    assert [float(height) for height in bars.evaluate_all("all => all.map((one) => one.getAttribute('height'))")] == [
        26,
        13,
        6.5,
    ]
    assert bars.nth(2).get_attribute("class") == "bar here"
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_pictures_at_positions_have_one_scale(moved: view.Page) -> None:
    """The line of the quickest is as long as that of the slowest: a second is as long in each."""
    assert moved.html.count("4 s\\u003c/text") == 6


def test_execution_that_gives_no_mapping_shows_how_it_ended(opened: Open) -> None:
    """So does one that fails; a program without calls is drawn by its tasks."""

    async def fails() -> None:
        raise ValueError("no")

    found = [sim.run(traces.lost_update, sim.Choices()), sim.run(fails)]
    tab = opened(view.slider(found, axes={"program": ["adds", "fails"]}))
    assert tab.locator("#values tr").inner_text().split() == ["it", "ends", "in", "2"]
    tab.focus("#axis0")
    tab.keyboard.press("ArrowRight")
    assert "ValueError" in tab.locator("#values td").first.inner_text()


@pytest.mark.parametrize("axes", [{}, {"slots": []}, {"slots": [1, 2]}, 3])
def test_positions_that_do_not_fit_are_refused(axes: Any) -> None:
    """There is one execution for each combination."""
    with pytest.raises(DefinitionRefused, match=r"slider\((source, )?axes\)"):
        view.slider([sim.run(traces.lost_update)], axes=axes)
    with pytest.raises(DefinitionRefused, match="at most 200"):
        view.slider([sim.run(traces.lost_update)] * 201, axes={"n": range(201)})
