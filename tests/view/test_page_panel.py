"""What the panel says of a step: memory with what changed, and where each task stands, in a real browser."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.view import _traces as traces
from tests.view._tabs import at, panel, table
from tests.view.conftest import Open
from toolrt import sim, view
from toolrt.trace import Trace


async def _both(first: trio.Lock, second: trio.Lock) -> None:
    async with first:
        await trio.lowlevel.checkpoint()
        await _take(second)


async def _take(lock: trio.Lock) -> None:
    async with lock:
        pass


async def _inverted() -> None:
    one, other = trio.Lock(), trio.Lock()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_both, one, other)
        nursery.start_soon(_both, other, one)


def _deadlocked() -> Trace:
    failure = sim.explore(_inverted, sim.DPOR()).failures[0]
    return sim.run(_inverted, sim.Choices(failure.execution.choices), details=True).trace


async def _four_times() -> None:
    cell = sim.Cell(0, name="x")
    cell.get()
    for number in range(3):
        await trio.lowlevel.checkpoint()
        cell.set(number)


# Without a browser


def test_details_note_where_each_task_stopped() -> None:
    """After each step there are the lines its task stands on, outermost first, and none once it has ended."""
    trace = _deadlocked()
    stops = trace.notes["details"]["stops"]
    last = {step.task: stops["steps"][str(step.index)] for step in trace.steps}
    lines = {task: [stops["frames"][place][1:] for place in places] for task, places in last.items()}
    assert lines["main.0"] == lines["main.1"] == [["_both", "await _take(second)"], ["_take", "async with lock:"]]
    assert lines["main"] == [["_inverted", "async with trio.open_nursery() as nursery:"]]
    ended = sim.run(traces.lost_update, details=True).trace
    final = ended.notes["details"]["stops"]["steps"][str(ended.steps[-1].index)]
    assert final == []


def test_details_note_what_tasks_wait_for_as_it_changes() -> None:
    """A nursery waits for the children it has then, and a lock for the task that holds it then."""
    trace = sim.run(traces.lost_update, details=True).trace
    words = [text for _, task, text in trace.notes["details"]["stops"]["waits"] if task == "main"]
    assert words[:2] == ["its nursery's children main.0, main.1", "its nursery's children main.1"]
    held = {task: text for _, task, text in _deadlocked().notes["details"]["stops"]["waits"]}
    assert held["main.0"] == "a Lock held by main.1"
    assert held["main.1"] == "a Lock held by main.0"


@pytest.mark.parametrize(
    "stops",
    [7, {"frames": 7}, {"frames": [7, ["a", "b", "c"]], "steps": {"0": [0, 1, 9, -1, "x"], "z": 3}, "waits": [7]}],
)
def test_odd_notes_of_stops_are_shown_as_far_as_they_go(opened: Open, stops: Any) -> None:
    """A trace of another program's making opens, and the panel says no more than it knows."""
    trace = traces.recorded("lost")
    tab = opened(view.show(Trace((), trace.steps, {}, {"details": {"stops": stops}})))
    tab.locator("#panel h2", has_text="step 0").wait_for()


# In a browser


def test_memory_has_the_old_and_the_new_value_in_the_cell(opened: Open) -> None:
    """What the step wrote has both values; its link leads to the step that wrote another one."""
    tab = opened(view.show(sim.run(traces.lost_update, sim.Choices(), details=True)))
    steps = [
        step
        for step in sim.run(traces.lost_update, sim.Choices()).trace.steps
        if any(each.write for each in step.accesses)
    ]
    tab.evaluate("moment => toolrt.app.goTo(moment)", steps[1].index)
    tab.locator("#panel tr.changed").wait_for()
    assert table(tab, "Memory now") == [["x", "1 -> 2", "this step"]]
    tab.keyboard.press("End")
    tab.locator("#panel").get_by_role("button", name=f"step {steps[1].index}").click()
    at(tab, steps[1].index)
    assert tab.evaluate("document.activeElement.getAttribute('role')") == "grid"


def test_memory_says_what_is_unknown(opened: Open) -> None:
    """After a write without a known value nothing is known, neither then nor as the old value of the next write."""
    steps = sim.run(_four_times).trace.steps
    one, two, three, four = (step.index for step in steps if step.accesses)
    values = [(one, False, None), (two, True, "7"), (three, True, None), (four, True, "9")]
    entries = [[step, ["cell", "x"], write, "a.py:1", "", value] for step, write, value in values]
    trace = Trace((), steps, {}, {"details": {"accesses": entries}})
    tab = opened(view.show(trace))
    found = tab.evaluate(
        "moments => moments.map((moment) => toolrt.app.runs[0].valueAt(0, moment))", [one, two, three, four]
    )
    assert found == [None, "7", None, "9"]
    assert tab.evaluate("moment => toolrt.app.runs[0].valueBefore(0, moment)", four) is None
    tab.evaluate("moment => toolrt.app.goTo(moment)", four)
    tab.locator("#panel tr.changed", has_text="? -> 9").wait_for()


@pytest.mark.seldom
def test_panel_has_the_stack_of_each_waiting_task(opened: Open) -> None:
    """Of a task that waits there are all its lines, what it waits for and since when; a task that can run has one."""
    trace = _deadlocked()
    tab = opened(view.show(trace))
    tab.keyboard.press("End")
    tab.locator("#panel h2", has_text=f"step {len(trace.steps) - 1}").wait_for()
    tasks = panel(tab, "Tasks after this step")
    assert [task.split(" waits for ")[0] for task in tasks] == ["main", "main.0 _both", "main.1 _both"]
    assert "its nursery's children main.0, main.1, since step 0" in tasks[0]
    assert "a Lock held by main.1" in tasks[1]
    assert "await _take(second)" in tasks[1]
    assert "async with lock:" in tasks[1]
    first = next(step.index for step in trace.steps if step.task == "main.0")
    tab.evaluate("moment => toolrt.app.goTo(moment)", first)
    tab.locator("#panel li.task", has_text="main.0 _both can run").wait_for()
