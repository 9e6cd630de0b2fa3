"""The Steps view of a program that sleeps, in a real browser: each time and each highlight stands in its own row."""

from __future__ import annotations

import re
from typing import Any

import pytest
import trio

from tests.view._tabs import wait_until
from tests.view.conftest import Open
from toolrt import sim

#: For each row in view, from top to bottom: its step, and what a reader sees in the time column at its height.
_SEEN = """() => [...document.querySelectorAll('.pane')].map((pane) =>
  [...pane.querySelectorAll('.rows .row')].filter((row) => {
    const box = row.getBoundingClientRect(), view = pane.querySelector('.scroll').getBoundingClientRect();
    return box.top >= view.top + 28 && box.bottom <= view.bottom;
  }).map((row) => {
    const box = row.getBoundingClientRect(), left = pane.querySelector('.scroll').getBoundingClientRect().left;
    const at = (x) => document.elementFromPoint(left + x, (box.top + box.bottom) / 2);
    return {
      step: Number(row.dataset.moment), here: row.classList.contains('here'),
      number: at(26).textContent, time: at(90).textContent,
      colours: [at(26), at(90)].map((each) => getComputedStyle(each).backgroundColor),
    };
  }))"""


async def sleeps() -> int:
    """Two tasks add one each and sleep in between, so that one addition is lost."""
    cell = sim.Cell(0, name="x")

    async def add(seconds: float) -> None:
        seen = cell.get()
        await trio.sleep(seconds)
        cell.set(seen + 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add, 0.25)
        nursery.start_soon(add, 1)
        nursery.start_soon(add, 90.5)
    return cell.get()


async def may_sleep() -> int:
    """A lost update that some schedules lose and others do not; it ends two seconds later."""
    cell = sim.Cell(0, name="x")

    async def add() -> None:
        seen = cell.get()
        await trio.lowlevel.checkpoint()
        cell.set(seen + 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add)
        nursery.start_soon(add)
    await trio.sleep(2)
    return cell.get()


def _told(explanation: str) -> dict[int, float]:
    """Give the time of each step, as `explain` prints it."""
    found = re.findall(r"^[ *>]+(\d+) +([\d.]+)  ", explanation, re.MULTILINE)
    return {int(step): float(time) for step, time in found}


def _seconds(text: str) -> float:
    number, unit = text.split()
    return float(number) / {"s": 1, "ms": 1000}[unit]


def _rows(tab: Any) -> list[list[dict[str, Any]]]:
    wait_until(tab, "document.querySelector('.rows .row.here') !== null")
    return tab.evaluate(_SEEN)  # type: ignore[no-any-return]


@pytest.mark.seldom
@pytest.mark.parametrize("width", [1280, 390])
def test_times_on_the_page_are_those_of_explain(opened: Open, width: int) -> None:
    """The time that a reader sees beside each step is the one that `explain()` prints for it."""
    failure = sim.explore(sleeps, sim.DPOR(), lambda execution: execution.value == 3).failures[0]
    told = _told(failure.explain(verbose=True))
    assert sorted(set(told.values())) == [0, 0.25, 1, 90.5]
    tab = opened(failure.show(), width=width)
    seen: dict[int, float] = {}
    for moment in told:
        tab.evaluate("moment => { toolrt.app.goTo(moment); toolrt.app.views[0].drawNow(); }", moment)
        (rows,) = _rows(tab)
        assert [row["number"] for row in rows] == [str(row["step"]) for row in rows]
        seen |= {row["step"]: _seconds(row["time"]) for row in rows}
    assert seen == told


def test_times_stand_in_their_rows_on_both_sides_and_after_scrolling(opened: Open) -> None:
    """With two schedules side by side, and scrolled sideways, number and time still stand beside their step."""
    failure = sim.explore(may_sleep, sim.Exhaustive(), lambda execution: execution.value == 2).failures[0]
    told = _told(failure.explain(verbose=True))
    assert 2 in told.values()
    tab = opened(failure.show(), width=800)
    tab.evaluate("document.querySelectorAll('.scroll').forEach((each) => { each.scrollLeft = 60; })")
    fails, passes = _rows(tab)
    assert {row["step"]: _seconds(row["time"]) for row in fails} == {row["step"]: told[row["step"]] for row in fails}
    assert [_seconds(row["time"]) for row in passes] == sorted(_seconds(row["time"]) for row in passes)
    assert {row["time"] for row in passes} == {"0 s", "2 s"}
    assert [row["number"] for row in passes] == [str(row["step"]) for row in passes]


def test_highlight_covers_the_row_of_its_step_and_no_other(opened: Open) -> None:
    """The present step's number and time have the highlight's colour, and those of the other steps have not."""
    failure = sim.explore(sleeps, sim.DPOR(), lambda execution: execution.value == 3).failures[0]
    tab = opened(failure.show(), reduced_motion="reduce")
    for moment in range(len(failure.minimal)):
        tab.evaluate("moment => { toolrt.app.goTo(moment); toolrt.app.views[0].drawNow(); }", moment)
        (rows,) = _rows(tab)
        (here,) = [row for row in rows if row["here"]]
        assert here["step"] == moment
        assert here["colours"][0] == here["colours"][1]
        assert all(here["colours"][0] not in row["colours"] for row in rows if not row["here"])


@pytest.mark.seldom
def test_head_of_the_time_column_stands_beside_that_of_the_steps(opened: Open) -> None:
    """Both heads are at the same height, above the first row."""
    tab = opened(sim.run(sleeps).show())
    boxes = [tab.locator(".heads > .number", has_text=text).bounding_box() for text in ("step", "time")]
    first = tab.locator('.row[data-moment="0"]').bounding_box()
    assert boxes[0]["y"] == boxes[1]["y"]
    assert all(box["y"] + box["height"] <= first["y"] + 1 for box in boxes)
