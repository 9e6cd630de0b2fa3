"""The view of calls, in a real browser: schedule, lanes, claims, waits and outcomes stand in one view."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import trio

import toolrt
from tests.view import _traces as traces
from tests.view._tabs import panel
from tests.view.conftest import Open
from toolrt import sim, view


async def shop() -> int:
    """Two calls on one account; the claim of the second one names something else, so an addition may be lost."""
    balance = sim.Cell(100, name="balance")

    def adder(name: str, claimed: str) -> Any:
        @toolrt.tool(name=name, claims=lambda input, state: [toolrt.Claim((claimed, "ann"), toolrt.WRITE)], schema=None)
        async def add(ctx: toolrt.ToolContext, amount: int) -> str:
            """Add some."""
            seen = balance.get()
            await trio.lowlevel.checkpoint()
            balance.set(seen + amount)
            return "added"

        return add

    tools = [adder("deposit", "account"), adder("refund", "receipt")]
    calls = [
        toolrt.ToolCall("a", "deposit", {"amount": 1}),
        toolrt.ToolCall("b", "deposit", {"amount": 2}),
        toolrt.ToolCall("c", "refund", {"amount": 4}),
    ]
    await toolrt.Runtime(toolrt.Registry(tools), limit=3).run(calls, toolrt.State({}))
    return balance.get()


def _failure() -> sim.Failure:
    return sim.explore(shop, sim.Exhaustive(), lambda execution: execution.value == 107).failures[0]


def _go(tab: Any, moment: int) -> None:
    tab.evaluate(
        """moment => {
          toolrt.app.goTo(moment);
          for (const each of [...toolrt.app.views, toolrt.app.panel]) each.drawNow();
        }""",
        moment,
    )


def _row(tab: Any, call: int) -> Any:
    return tab.locator(".pane").first.locator(".row:not(.group)").filter(has_text=f"[{call}]")


def test_row_of_a_call_says_what_it_claims_and_which_call_holds_it(opened: Open) -> None:
    """Its claims stand below its name; below the time it waits, the call that holds it back and that call's claim."""
    tab = opened(view.show(traces.recorded("batch")))
    assert tab.locator(".row .claims").all_text_contents() == [
        "writes counter/x", "writes counter/x", "claims nothing", "writes everything", "claims nothing",
        "takes no ticket",
    ]  # fmt: skip
    said = _row(tab, 1).locator("text.said").all_text_contents()
    assert said[0].startswith("waits for [0], which writes counter/x; ")
    assert _row(tab, 3).locator(".bad").all_text_contents() == ["✗ error", "ValueError: no"]


def test_call_that_waits_is_told_why_at_every_step(opened: Open) -> None:
    """The panel names the holder as long as it holds, and the row says whether the call waits, runs or has ended."""
    trace = traces.recorded("batch")
    tab = opened(view.show(trace))
    step = {(event.kind, event.fields.get("call")): event.step for event in trace.events}
    assert step["call.started", 1] > step["call.ended", 0] >= 1
    for moment in range(len(trace.steps)):
        _go(tab, moment)
        heads = [head for head in tab.locator("#panel h3").all_text_contents() if head.startswith("Waiting")]
        waits = [line for head in heads for line in panel(tab, head) if line.startswith("[1] ")]
        held = moment < step["call.ended", 0]
        assert (waits[:1] == ["[1] bump x: waits for [0], which writes counter/x"]) is held
        expected = (
            "waits" if moment < step["call.started", 1] else "runs" if moment < step["call.settled", 1] else "✓ ok"
        )
        assert _row(tab, 1).locator(".state").text_content() == expected


def test_schedule_stands_above_the_calls_with_the_marks_of_the_steps(opened: Open) -> None:
    """A box for each step: the present one, the first difference and the two of the race are those of the steps."""
    failure = _failure()
    tab = opened(failure.show())
    parting = tab.evaluate("toolrt.app.document.parting")
    boxes = tab.locator(".pane").first.locator(".heads .box")
    assert boxes.count() == len(failure.minimal)
    marked = {name: boxes.evaluate_all(
        "(boxes, name) => boxes.flatMap((box, place) => box.classList.contains(name) ? [place] : [])", name
    ) for name in ("parts", "race", "here")}  # fmt: skip
    assert marked["parts"] == marked["here"] == [parting["before"]]
    assert marked["race"] == sorted(parting["race"]["steps"][0])
    tab.keyboard.press("Home")
    tab.locator(".pane").first.locator(".box.here[title^='step 0, ']").wait_for()
    assert tab.locator(".pane").first.locator(".box.here").count() == 1


def test_calls_say_what_their_steps_read_and_wrote(opened: Open) -> None:
    """What a call did to a cell stands below its bar, and what takes part in the race has its colour."""
    tab = opened(_failure().show(), width=1900)
    said = [text for call in range(3) for text in _row(tab, call).locator("text.said").all_text_contents()]
    assert any("balance = 100" in text for text in said)
    assert any("balance 100 -> 1" in text for text in said)
    assert tab.locator(".pane").first.locator("text.said .race").count() == 2


def test_steps_of_a_call_are_those_of_its_task(opened: Open) -> None:
    """A step belongs to the call whose task ran it while the call did, also where one call's task started another's."""
    trace = _failure().execution.trace
    tab = opened(view.show(trace))
    found = tab.evaluate("toolrt.app.runs[0].calls.map((call) => toolrt.app.runs[0].waits.stepsOfCall(call))")
    steps = [step for steps in found for step in steps]
    assert len(steps) == len(set(steps))
    for call, ran in enumerate(found):
        first, last = (
            next(event.step for event in trace.events if event.kind == kind and event.fields["call"] == call)
            for kind in ("call.started", "call.ended")
        )
        assert ran[0] == first
        assert ran[-1] == last
        # Both accesses, so two steps at the least.
        assert (
            len([step for step in ran if any(access.resource[0] == "cell" for access in trace.steps[step].accesses)])
            == 2
        )


@pytest.mark.drawn(2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_texts_below_the_bars_do_not_touch(opened: Open, width: int, scheme: str) -> None:
    """However narrow, no text of a row lies over another one, and none begins to the left of the bars."""
    tab = opened(_failure().show(), width=width, color_scheme=scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    for row in tab.locator(".row:not(.group) .bars").all():
        boxes = row.locator("text.said").evaluate_all(
            "each => each.map((one) => one.getBBox()).map((b) => [b.x, b.width])"
        )
        assert all(x >= 0 for x, _ in boxes)
        for (x, wide), (after, _) in pairwise(boxes):
            assert x + wide <= after
