"""What the page of a failure is headed by, and what its cells and its source say, in a real browser."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.view import _traces as traces
from tests.view.conftest import Open
from toolrt import sim, view
from toolrt.trace import Trace
from toolrt.view._columns import done_in


async def _withdraw_all() -> int:
    balance = sim.Cell(100, name="balance")

    async def withdraw_everything_at_once() -> None:
        if balance.get() >= 100:
            await trio.lowlevel.checkpoint()
            balance.set(balance.get() - 100)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(withdraw_everything_at_once)
        nursery.start_soon(withdraw_everything_at_once)
    return balance.get()


def _overdrawn() -> sim.Failure:
    return sim.explore(_withdraw_all, sim.DPOR(), lambda execution: execution.value == 0).failures[0]


#: What a cell says beside its tags.
_TEXT = """cell => [...cell.childNodes].filter((node) => !node.classList?.contains('tag'))
  .map((node) => node.textContent).join('')"""


# Without a browser


def test_cells_tell_what_was_read_and_what_a_write_replaced() -> None:
    """A read has its value, a write the old one and the new one."""
    failing, _ = _overdrawn().compared
    done = _done(failing)
    told = [text for text in done if "balance" in text]
    assert told[:2] == ["reads balance = 100", "reads balance = 100"]
    assert told[2:4] == ["writes balance 100 -> 0", "writes balance 0 -> -100"]


class _Account:
    def __init__(self, balance: int) -> None:
        self.balance = balance


async def _withdrawn(accounts: int) -> int:
    made = [_Account(100) for _ in range(accounts)]

    async def withdraw(account: _Account, amount: int) -> None:
        if account.balance >= amount:
            await trio.lowlevel.checkpoint()
            account.balance -= amount

    async with trio.open_nursery() as nursery:
        for amount in (80, 50):
            for account in made:
                nursery.start_soon(withdraw, account, amount)
    return min(account.balance for account in made)


def _done(trace: Trace) -> list[str]:
    return [done_in(step, trace) for step in trace.steps]


def _withdrawn_from_one() -> sim.Failure:
    async def program() -> int:
        return await _withdrawn(1)

    return sim.explore(program, sim.DPOR(), lambda execution: execution.value >= 0, track=[__name__]).failures[0]


def test_an_attribute_has_the_name_that_the_program_has_for_it() -> None:
    """By where the program keeps it, and not the class with a number; a parameter is a name where there is no other."""
    failure = _withdrawn_from_one()
    done = _done(failure.compared[0])
    assert [text for text in done if "->" in text] == [
        "writes made[0].balance 100 -> 50",
        "writes made[0].balance 50 -> -30",
    ]
    explained = failure.explain()
    assert "writes made[0].balance 50 -> -30" in explained
    assert "self.balance" not in explained
    assert "_Account main" not in explained


def test_two_things_never_have_one_name() -> None:
    """Two accounts are `account` in one line: they are called by where the program keeps them."""

    async def program() -> int:
        return await _withdrawn(2)

    failure = sim.explore(
        program, sim.Random(sim.RandomWalk(0), 200), lambda execution: execution.value >= 0, track=[__name__]
    ).failures[0]
    told = " ".join(_done(failure.compared[0]))
    assert " account.balance" not in told
    assert "made[0].balance" in told
    assert "made[1].balance" in told


def test_old_value_is_told_only_where_it_is_known() -> None:
    """What is written where nothing was has no old value; long values are cut."""

    async def program() -> None:
        made: dict[str, str] = {}
        made["x"] = "w" * 60
        await trio.lowlevel.checkpoint()

    [told] = [text for text in _done(sim.run(program, track=[__name__], details=True).trace) if "writes" in text]
    assert told == f"writes made['x'] = '{'w' * 22}…"


@pytest.mark.parametrize("notes", [{}, {"details": 7}, {"details": {"accesses": [["no"], 7, None], "sources": [7]}}])
def test_odd_notes_leave_the_cells_without_values(notes: dict[str, Any]) -> None:
    """A trace of another program's making is shown as far as it goes."""
    steps = traces.recorded("lost").steps
    trace = Trace((), steps, {}, notes)
    assert "reads x" in _done(trace)
    assert view.show(trace).html


def test_values_of_watched_and_tracked_attributes_are_noted() -> None:
    """What an attribute held when it was read, and what it held when the step that wrote it was over."""

    async def program() -> None:
        shared = sim.watch(_Shared(), "shared")
        assert shared.count == 3
        shared.count += 1
        await trio.lowlevel.checkpoint()

    for run in (sim.run(program, details=True), sim.run(_tracked, track=True, details=True)):
        values = [(entry[2], entry[5]) for entry in run.trace.notes["details"]["accesses"] if entry[1][-1] == "count"]
        assert (False, "3") in values
        assert (True, "4") in values


class _Shared:
    def __init__(self) -> None:
        self.count = 3


async def _tracked() -> None:
    shared = _Shared()
    await trio.lowlevel.checkpoint()
    shared.count += 1


def test_page_of_what_was_found_is_headed_by_what_is_wrong() -> None:
    """`view.show(failure)` has the complaint for a heading, a trace has none to show."""
    failure = sim.explore(traces.lost_update, sim.Exhaustive(), lambda _: ["too low\nby one"]).failures[0]
    assert "<title>too low</title>" in view.show(failure).html
    assert "<title>Timeline</title>" in view.show(traces.recorded("lost")).html


# In a browser


def test_page_names_the_pattern_and_copies_the_line(opened: Open) -> None:
    """The heading names the pattern; a button, reached by the keyboard, copies the line that runs it again."""
    failure = _overdrawn()
    tab = opened(failure.show())
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    assert tab.locator("h1").inner_text() == "_withdraw_all: check-then-act of balance"
    button = tab.get_by_role("button", name="Copy the line that runs it again")
    line = dict(failure.about_minimal)["Run it again"]
    button.focus()
    tab.keyboard.press("Enter")
    tab.locator("#said", has_text="Copied").wait_for()
    assert tab.evaluate("navigator.clipboard.readText()") == line
    # Where the page may not use the clipboard, the line is selected, and copied as a key would.
    tab.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    button.click()
    assert tab.evaluate("getSelection().toString()") == line


def test_a_cell_without_room_keeps_the_values(opened: Open) -> None:
    """Beside its tags it leaves out the object, and says what changed."""
    tab = opened(_withdrawn_from_one().show())
    cells = tab.locator(".steps .row > .cell").evaluate_all(f"cells => cells.map({_TEXT})")
    assert any(text.endswith("balance 50 -> -30") and not text.startswith("account") for text in cells), cells


@pytest.mark.parametrize("width", [390, 1280])
def test_no_cell_is_cut_within_a_word(opened: Open, width: int) -> None:
    """Cells have whole words, and say all or end with a sign; titles of columns have their function."""
    tab = opened(_overdrawn().show(), width=width)
    for cell in tab.locator(".steps .row > .cell").all():
        shown, said = cell.evaluate(_TEXT), cell.get_attribute("title")
        shown = shown.removeprefix("> ")
        is_place = said.startswith("runs from ") and shown in (said[10:], f"line {said.rpartition(':')[2]}")
        is_end = said.endswith(f" {shown}")  # without the verb, or the object, or down to the values
        assert shown == said or is_place or is_end or shown.endswith("…")
        assert shown.removesuffix("…").strip() in said
        assert cell.evaluate("cell => cell.scrollHeight <= cell.clientHeight + 1")
        assert cell.evaluate("cell => cell.scrollWidth <= cell.clientWidth + 1")
    assert tab.get_by_role("columnheader", name="main.0 withdraw_everything_at_once").first.is_visible()


def test_source_follows_the_step_and_marks_the_race(opened: Open) -> None:
    """The present step's lines are marked, the two of the race have their tags, and stepping moves the mark."""
    tab = opened(_overdrawn().show())
    section = tab.locator("#panel > section").first
    tab.keyboard.press("r")
    section.locator(".source li.now .tag").wait_for()
    first, second = (section.locator(".source li", has=tab.get_by_label(f"race: {one}")) for one in ("first", "second"))
    assert "if balance.get() >= 100:" in first.inner_text()
    assert "balance.set(balance.get() - 100)" in second.inner_text()
    assert section.locator(".source li.now.race").count() > 0
    tab.keyboard.press("Home")
    section.locator(".source li.now", has_text="open_nursery").wait_for()


@pytest.mark.seldom
def test_write_from_an_old_read_is_marked(opened: Open) -> None:
    """In its cell, in words and in the memory table; a write that follows a fresh read is not."""
    fails, passes = traces.lost_and_kept()
    tab = opened(view.show(fails))
    outdated = tab.evaluate("[...toolrt.app.runs[0].outdated]")
    [(step, found)] = outdated
    assert found["read"] < found["write"] < step
    tab.evaluate(f"toolrt.app.goTo({step})")
    tab.locator("#panel [title='from an old read']").wait_for()
    said = f"from what it read in step {found['read']}, before step {found['write']} wrote {found['resource']}"
    assert said in tab.locator(f"[data-moment='{step}'] .cell").get_attribute("aria-label")
    assert tab.locator(f"[data-moment='{step}'] .tag.old").count() == 1
    assert opened(view.show(passes)).evaluate("toolrt.app.runs[0].outdated.size") == 0
