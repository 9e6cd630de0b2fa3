"""Watch expressions, and the line that plays on from a step, in a real browser."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from tests.view import _traces as traces
from tests.view._tabs import at, table, wait_until
from tests.view.conftest import Open
from toolrt import sim, view
from toolrt.trace import Trace


async def _reserving() -> None:
    balance, reserved = sim.Cell(100, name="balance"), sim.Cell(0, name="reserved")
    for amount in (30, 20):
        balance.set(balance.get() - amount)
        await trio.lowlevel.checkpoint()
        reserved.set(reserved.get() + amount)
        await trio.lowlevel.checkpoint()


#: What is recorded where the expressions of the tables are looked at.
_HELD = {
    "n": "7",
    "x": "2.5",
    "t": "'ab'",
    "yes": "True",
    "none": "None",
    "list": "[1]",
    "big": "1" * 30,
    "cut": "'aa...",
}

_SHOWN = """text => {
  try {
    const held = %s;
    const watch = new toolrt.Watch(text);
    return toolrt.Watch.written(watch.value((name) => toolrt.Watch.read(held[name] ?? null)));
  } catch (error) { return `wrong: ${error.message}`; }
}"""


@pytest.fixture(scope="module")
def shows(browser: Any) -> Any:
    """Gives what an expression is, over the values above."""
    context = browser.new_context()
    tab = context.new_page()
    tab.set_content(view.show(traces.recorded("lost")).html)
    yield lambda text: tab.evaluate(_SHOWN % json.dumps(_HELD), text)
    context.close()


@pytest.mark.parametrize(
    "text",
    [
        "n + 3 * 2", "-(n - 3) * 2", "n // 2", "-n // 2", "-n % 3", "n % -3", "n % 2 == 1", "x * 2 == 5", "7 / 2",
        "1 < n < 8", "1 < n < 7", "9 > n >= 7 != 8", "not n == 7", "not n == 7 or yes", "n and yes", "yes + 1",
        "t == 'ab'", 't != "b"', "t == 7", "none == None", "none == 0", "yes == 1", "list == list", "(n)", "n <= 7.0",
        "True and not False",
    ],
)  # fmt: skip
def test_watch_means_what_python_means(shows: Any, text: str) -> None:
    """Numbers, texts, comparisons and logic are those of Python."""
    held = {name: eval(value, {}) for name, value in _HELD.items() if name not in ("cut", "big")}
    expected = eval(text, {}, held)
    if " and " in text or " or " in text:
        expected = bool(expected)
    assert shows(text) == str(expected)


@pytest.mark.parametrize(
    "text",
    [
        "gone", "gone + 1", "gone == gone", "gone < 1", "gone or none", "gone and yes", "not gone", "n / 0", "n // 0",
        "n % 0", "big + 1", "big == n", "list == 7", "list < 1", "list == none", "t + 1", "t < 'b'", "cut == cut",
        "- t", "9007199254740991 + 1",
    ],
)  # fmt: skip
def test_watch_of_what_is_unknown_is_unknown(shows: Any, text: str) -> None:
    """What is not recorded, cut, too large to be exact, or of no use there, is "?": never a guess."""
    assert shows(text) == "?"


def test_watch_is_decided_where_one_side_is_enough(shows: Any) -> None:
    """A false side decides an `and`, a true one an `or`, whatever the other is."""
    assert shows("gone and n == 8") == shows("n == 8 and gone") == "False"
    assert shows("gone or n == 7") == shows("n == 7 or gone") == "True"
    assert shows("8 < n < gone") == "False"


@pytest.mark.parametrize(
    "text",
    [
        "n +", "(n", "n)", "n n", "n = 7", "== 7", "n.", "'ab", "n[0]", "f(1)", "n; n", "`n`",
        "constructor.constructor('x')()", "n => n", "n ** 2", "lambda: 1", "\\u0061",
    ],
)  # fmt: skip
def test_watch_refuses_what_it_does_not_know(shows: Any, text: str) -> None:
    """The reader refuses calls, indexes, assignments and half sentences, and runs nothing of them."""
    assert shows(text).startswith("wrong: ")


def _watched(tab: Any) -> list[str]:
    return [cell.text_content() for cell in tab.locator(".steps .row .watched").all()]


def test_watch_is_shown_after_each_step(opened: Open) -> None:
    """Each step has its value; the panel has the steps that changed it, and leads there."""
    trace = sim.run(_reserving, details=True).trace
    tab = opened(view.show(trace))
    tab.keyboard.press("w")
    field = tab.get_by_role("textbox", name="Watch")
    assert field.get_attribute("placeholder") == "balance + reserved == 100"
    tab.keyboard.type("balance + reserved == 100")
    tab.locator(".watched").first.wait_for()
    assert _watched(tab) == ["False", "True", "False", "True", "True"][: len(trace.steps)]
    tab.keyboard.press("Enter")
    tab.keyboard.press("ArrowRight")
    at(tab, 1)
    tab.locator("#panel tr.changed", has_text="True").wait_for()
    rows = table(tab, "Watch: balance + reserved == 100")
    assert rows[:3] == [["False", "step 0"], ["True", "this step"], ["False", "step 2"]]
    field.fill("")
    tab.locator(".watched").first.wait_for(state="detached")


def test_watch_of_a_name_that_is_not_there_says_so(opened: Open) -> None:
    """What is wrong stands beside the field, whose letters are no keys of the page."""
    tab = opened(view.show(sim.run(_reserving, details=True)))
    field = tab.get_by_role("textbox", name="Watch")
    field.focus()
    tab.keyboard.type("tar == 1")
    tab.locator("#watch-wrong", has_text="tar is not recorded").wait_for()
    assert field.get_attribute("aria-invalid") == "true"
    assert tab.evaluate("document.documentElement.dataset.theme") is None
    field.fill("balance ==")
    tab.locator("#watch-wrong", has_text="something is missing at the end").wait_for()
    field.fill("balance >= 0")
    wait_until(tab, "() => document.getElementById('watch').getAttribute('aria-invalid') === 'false'")
    assert tab.locator("#watch-wrong").text_content() == ""


def test_watch_runs_nothing_of_a_hostile_trace(opened: Open) -> None:
    """Names and values of a trace are compared as texts, whatever they are called."""
    steps = sim.run(traces.lost_update, sim.Choices()).trace.steps
    touching = [step.index for step in steps if step.accesses]
    value = "</script><script>window.broken = 1</script>"
    names = ("__proto__", "constructor", "</script>")
    entries = [[step, ["cell", name], True, "a.py:1", "", value] for step in touching for name in names]
    trace = Trace((), steps, {}, {"details": {"accesses": entries}})
    tab = opened(view.show(trace))
    for text in ("__proto__ == constructor", "toString", "constructor.prototype", "{</script>} == 1", "window.broken"):
        tab.evaluate("text => toolrt.app.watchFor(text)", text)
        tab.evaluate("toolrt.app.panel.drawNow()")
    assert tab.evaluate("window.broken") is None
    assert tab.evaluate("document.querySelectorAll('script').length") == 2


# Playing on


@pytest.mark.seldom
def test_line_that_plays_on_begins_as_here(opened: Open) -> None:
    """Pasted, it goes the same way up to the step; with a task written behind it, that one is next."""
    failure = sim.explore(traces.lost_update, sim.Exhaustive(), lambda execution: execution.value == 2).failures[0]
    tab = opened(failure.show())
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    steps = failure.compared[0].steps
    tasks = [step.task for step in steps]
    moment = next(step.index for step in steps if len(step.enabled) > 1 and step.index > 1) - 1
    tab.evaluate("moment => toolrt.app.goTo(moment)", moment)
    tab.locator("#panel h2", has_text=f"step {moment}").first.wait_for()
    tab.get_by_role("button", name="Copy the beginning").first.click()
    tab.locator("#said", has_text="Copied").wait_for()
    line = tab.evaluate("navigator.clipboard.readText()")
    scope = {"sim": sim, "lost_update": traces.lost_update}
    again = eval(line, dict(scope))
    assert list(again.schedule.tasks[: moment + 1]) == tasks[: moment + 1]
    other = next(task for task in steps[moment + 1].enabled if task != again.schedule.tasks[moment + 1])
    assert other in tab.locator("#panel p", has_text="Behind this step could run").first.text_content()
    begun = line.split('"')[1]
    changed = eval(line.replace(begun, f"{begun} {other}"), dict(scope))
    assert list(changed.schedule.tasks[: moment + 2]) == [*tasks[: moment + 1], other]
