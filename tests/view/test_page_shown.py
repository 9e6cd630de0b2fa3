"""What the view of steps leaves out and folds, its arrows and widths, and the address of a step, in a real browser."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.view import _traces as traces
from tests.view._tabs import at, wait_until
from tests.view.conftest import Open
from toolrt import sim, view
from toolrt.trace import Trace


async def _two_variables() -> None:
    x, y = sim.Cell(0, name="x"), sim.Cell(0, name="y")

    async def move(source: sim.Cell[int], target: sim.Cell[int]) -> None:
        for _ in range(4):
            await trio.lowlevel.checkpoint()
        seen = source.get()
        await trio.lowlevel.checkpoint()
        target.set(seen + 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(move, x, y)
        nursery.start_soon(move, y, x)


def _trace() -> Trace:
    return sim.run(_two_variables, sim.Choices([0, 1, 0, 1, 0, 1, 0, 1]), details=True).trace


def _rows(tab: Any) -> list[int]:
    rows = tab.locator(".steps .row:not(.gap)").all()
    return sorted(int(row.get_attribute("data-moment")) for row in rows)


def _touching(trace: Trace, name: str | None = None) -> list[int]:
    return [
        step.index
        for step in trace.steps
        if any(name is None or access.resource[-1] == name for access in step.accesses)
    ]


# The address


@pytest.mark.seldom
def test_address_names_the_step(opened: Open) -> None:
    """Stepping changes the address, which opens the page at that step; any other address changes nothing."""
    tab = opened(view.show(_trace()))
    assert "#" not in tab.url
    for _ in range(3):
        tab.keyboard.press("ArrowRight")
    wait_until(tab, "() => location.hash === '#step-3'")
    tab.reload()
    at(tab, 3)
    for odd in ("#step-", "#step-1e3", "#step--1", "#panel", "#step-0x2"):
        tab.evaluate("odd => { location.hash = odd; }", odd)
        tab.evaluate("() => new Promise((done) => setTimeout(done, 0))")
        assert tab.evaluate("toolrt.app.moment") == 3
    tab.evaluate("location.hash = '#step-5'")
    at(tab, 5)
    tab.evaluate("location.hash = '#step-999999999'")
    at(tab, len(_trace().steps) - 1)


def test_address_outranks_the_first_difference(opened: Open) -> None:
    """A link to a step of two schedules leads there, not to where they part."""
    tab = opened(view.show(*traces.lost_and_kept()))
    tab.keyboard.press("Home")
    wait_until(tab, "() => location.hash === '#step-0'")
    tab.reload()
    at(tab, 0)


# Filters


def test_filter_by_variable_leaves_the_steps_that_touch_it(opened: Open) -> None:
    """The others are one row for each stretch, and stepping passes over them."""
    trace = _trace()
    wanted = _touching(trace, "x")
    tab = opened(view.show(trace))
    tab.locator("#filter").select_option("resource:x")
    tab.locator(".row.gap").first.wait_for()
    assert _rows(tab) == wanted
    at(tab, wanted[0])
    tab.keyboard.press("ArrowRight")
    at(tab, wanted[1])
    assert f"0 to {wanted[0] - 1}" in tab.locator(".row.gap button").first.get_attribute("title")


def test_steps_that_are_left_out_unfold(opened: Open) -> None:
    """By a click, by the keyboard, and when one goes to a step among them."""
    trace = _trace()
    tab = opened(view.show(trace))
    show = tab.locator("#filter")
    show.select_option("resource:x")
    tab.locator(".row.gap button").first.focus()
    tab.keyboard.press("Enter")
    at(tab, 0)
    assert _rows(tab) == sorted({*range(_touching(trace, "x")[0]), *_touching(trace, "x")})
    show.select_option("all")
    show.select_option("resource:x")
    tab.locator(".row.gap").first.click()
    at(tab, 0)
    show.select_option("resource:y")
    tab.keyboard.press("End")
    at(tab, len(trace.steps) - 1)
    tab.get_by_role("slider", name="Step").fill("0")
    at(tab, 0)


def test_key_leaves_out_steps_that_touch_nothing(opened: Open) -> None:
    """What remains has accesses, is where two schedules part or race, or stands alone between such steps."""
    trace = _trace()
    tab = opened(view.show(trace))
    tab.keyboard.press("f")
    tab.locator(".row.gap").first.wait_for()
    assert tab.locator("#filter").input_value() == "touching"
    shown = _rows(tab)
    touching = _touching(trace)
    assert set(touching) <= set(shown)
    for moment in set(shown) - set(touching):
        assert {moment - 1, moment + 1} <= {-1, *touching, len(trace.steps)}
    tab.keyboard.press("f")
    wait_until(tab, "() => !document.querySelector('.row.gap')")
    # Here they part in a step that touches nothing.
    two = opened(view.show(trace, sim.run(_two_variables, sim.Choices())))
    two.keyboard.press("f")
    two.locator(".row.gap").first.wait_for()
    assert two.locator(".row.parts").count() == 2


def test_filter_by_task_folds_the_other_columns(opened: Open) -> None:
    """One task's steps in one wide column; the others are narrow, and unfold."""
    trace = _trace()
    tab = opened(view.show(trace))
    tab.locator("#filter").select_option("task:main.1")
    tab.locator(".heads .folded").first.wait_for()
    assert tab.locator(".heads .folded").count() == 2
    assert _rows(tab) == [step.index for step in trace.steps if step.task == "main.1"]
    head = tab.get_by_role("button", name="main.0 move, folded")
    assert head.get_attribute("aria-expanded") == "false"
    head.focus()
    tab.keyboard.press("Enter")
    wait_until(tab, "() => document.querySelectorAll('.heads .folded').length === 1")
    assert tab.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"


def test_filter_by_file_leaves_its_steps(opened: Open) -> None:
    """Files of the source are there to choose, and so are those that a batch changes."""
    trace = _trace()
    notes = trace.notes["details"]
    notes["steps"]["2"] = ["other.py:3", "pass"]
    notes["sources"]["other.py"] = [[3, "pass"]]
    tab = opened(view.show(trace))
    tab.locator("#filter").select_option("file:other.py")
    at(tab, 2)
    assert _rows(tab) == [2]
    batch = opened(view.show(traces.large(4)))
    batch.keyboard.press("2")
    batch.locator("#filter").select_option("file:file3.txt")
    batch.locator(".row.gap").first.wait_for()
    assert len(_rows(batch)) == 1


def test_keys_fold_the_column_of_the_step_and_unfold_all(opened: Open) -> None:
    """`c` folds it, and unfolds it again; `C` unfolds all."""
    trace = _trace()
    tab = opened(view.show(trace))
    tasks = [step.task for step in trace.steps]
    for moment in (tasks.index("main.0"), tasks.index("main.1")):
        tab.evaluate("moment => toolrt.app.goTo(moment)", moment)
        tab.keyboard.press("c")
    wait_until(tab, "() => document.querySelectorAll('.heads .folded').length === 2")
    tab.keyboard.press("c")
    wait_until(tab, "() => document.querySelectorAll('.heads .folded').length === 1")
    tab.keyboard.press("C")
    wait_until(tab, "() => document.querySelectorAll('.heads .folded').length === 0")


# Arrows and widths


@pytest.mark.parametrize("width", [390, 1280])
def test_arrows_are_straight_and_cross_no_cell(opened: Open, width: int) -> None:
    """Every arrow runs across and down, and through no cell but those that it joins."""
    tab = opened(view.show(_trace()), width=width)
    tab.get_by_label("Arrows").select_option("all")
    wait_until(tab, "() => document.querySelectorAll('path.arrow').length > 3")
    crossed = tab.evaluate("""() => {
      const cells = [...document.querySelectorAll(".row > .cell")].map((cell) => {
        const row = cell.parentElement;
        const [left, top] = [parseFloat(cell.style.left), parseFloat(row.style.top)];
        return { left, right: left + parseFloat(cell.style.width), top, bottom: top + parseFloat(row.style.height) };
      });
      const found = [];
      for (const path of document.querySelectorAll("path.arrow")) {
        const [, x, y, h, v, to] = /^M(\\S+) (\\S+)H(\\S+)V(\\S+)H(\\S+)$/.exec(path.getAttribute("d")).map(Number);
        for (const [x1, y1, x2, y2] of [[x, y, h, y], [h, y, h, v], [h, v, to, v]]) {
          for (const cell of cells) {
            const [left, right] = [Math.min(x1, x2), Math.max(x1, x2)];
            const beside = right <= cell.left + 3 || left >= cell.right - 3 || y2 <= cell.top || y1 >= cell.bottom;
            if (!beside) found.push([path.getAttribute("d"), cell]);
          }
        }
      }
      return found;
    }""")
    assert crossed == []


@pytest.mark.parametrize("width", [700, 1280])
def test_columns_fill_the_width(opened: Open, width: int) -> None:
    """All columns together are as wide as the pane; one with longer texts is not narrower."""
    tab = opened(view.show(_trace()), width=width)
    room, used = tab.evaluate(
        "() => { const view = toolrt.app.views[0]; return [view.scroll.clientWidth, view.width]; }"
    )
    assert room - 5 <= used <= room
    widths = tab.evaluate("toolrt.app.views[0].widths")
    assert widths[1] >= widths[0]


# The minimap


@pytest.mark.seldom
def test_minimap_of_a_long_schedule_scrolls_and_follows(opened: Open) -> None:
    """It is there where a schedule is long; to press it scrolls there, and it leaves the columns their room."""
    trace = traces.large(20)
    tab = opened(view.show(trace))
    tab.keyboard.press("2")
    host = tab.locator(".minimap")
    host.wait_for()
    box = host.bounding_box()
    assert box is not None
    tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 4)
    tab.locator(f'.row[data-moment="{len(trace.events) - 2}"]').wait_for()
    frame = tab.locator(".minimap .frame").bounding_box()
    assert frame is not None
    assert frame["y"] > box["y"] + box["height"] / 2
    tab.evaluate("() => { const { scroll } = toolrt.app.views[0]; scroll.scrollLeft = scroll.scrollWidth; }")
    right = tab.evaluate(
        "() => [...document.querySelectorAll('[role=columnheader]')].at(-1).getBoundingClientRect().right"
    )
    assert right <= box["x"] + 1
    painted = tab.evaluate("""() => {
      const canvas = document.querySelector(".minimap canvas");
      const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      return data.some((value) => value > 0);
    }""")
    assert painted
    short = opened(view.show(traces.recorded("lost")))
    assert short.locator(".minimap").is_hidden()
