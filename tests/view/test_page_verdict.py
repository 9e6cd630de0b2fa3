"""The bar of a failure's page, in a real browser: what failed, of which program, and how to run it again."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest

from tests.view import _traces as traces
from tests.view.conftest import Open
from toolrt import sim, view
from toolrt.errors import DefinitionRefused
from toolrt.teaching import lab

_BAD = "</details></script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'>"


def _loses(execution: sim.Execution) -> list[str]:
    return [] if execution.value == 2 else ["an addition was lost", "the counter is too low"]


def _failure(program: Any = traces.lost_update, check: Any = _loses) -> sim.Failure:
    return sim.explore(program, sim.Exhaustive(), check).failures[0]


def _rows(tab: Any) -> list[tuple[str, str]]:
    names, texts = (tab.locator(f"#verdict {part}").all_inner_texts() for part in ("dt", "dd"))
    return list(zip(names, texts, strict=True))


def _replayed(line: str) -> str:
    assert line.startswith(('sim.replay(program, "', 'sim.replay(lost_update, "'))
    return line.split('"')[1]


def test_page_of_a_failure_says_what_failed(opened: Open) -> None:
    """Violations, value, program, schedule and the line that runs it again stand above the steps."""
    failure = _failure()
    tab = opened(failure.show())
    head = tab.locator("#verdict summary")
    assert "FAIL" in head.inner_text()
    assert "an addition was lost" in head.inner_text()
    rows = dict(_rows(tab))
    assert rows["Violation"] == "the counter is too low"
    assert rows["Value"] == "1"
    assert rows["Program"].startswith("lost_update (_traces.py:")
    assert rows["Schedule"] == failure.minimal.short
    assert rows["Run it again"] in failure.explain()
    assert sim.replay(traces.lost_update, _replayed(rows["Run it again"])).value == 1
    assert tab.title() == "lost_update: lost update of x"


def test_page_tells_of_the_schedule_that_it_shows() -> None:
    """`view.show(failure)` draws the execution as it was found, and its bar has that schedule."""
    report = sim.explore(traces.lost_update, sim.Random(sim.RandomWalk(seed=3), 50), _loses)
    failure = max(report.failures, key=lambda failure: failure.schedule.switches)
    assert failure.schedule.short != failure.minimal.short
    assert failure.schedule.short in view.show(failure).html
    assert failure.minimal.short not in view.show(failure).html
    assert failure.minimal.short in failure.show().html


def test_page_of_a_deadlock_says_who_waits_once(opened: Open) -> None:
    """The circle heads it, the pattern says who waits for what, and the last step that nobody can run."""
    tab = opened(_failure(traces.deadlock, None).show())
    rows = dict(_rows(tab))
    assert re.search(r"Deadlock: \S+ .*-> ", tab.locator("#verdict summary").inner_text())
    assert rows["Pattern"].startswith("lock inversion: ")
    assert "held by" in rows["Pattern"]
    assert not {"Error", "Value"} & rows.keys()
    assert "then nobody can run" in tab.locator("#panes").inner_html()


def test_verdict_folds_where_the_screen_is_short(opened: Open) -> None:
    """The schedule comes first there; its line opens."""
    page = _failure(traces.deadlock, None).show()
    assert opened(page).evaluate("document.getElementById('verdict').open")
    tab = opened(page, width=640, screen={"width": 640, "height": 400})
    tab.set_viewport_size({"width": 640, "height": 400})
    tab.reload()
    assert not tab.evaluate("document.getElementById('verdict').open")
    tab.locator("#verdict summary").click()
    assert tab.evaluate("document.getElementById('verdict').open")


def test_repairs_that_are_known_stand_on_the_page(opened: Open) -> None:
    """Three at most, and none before the reader asks for them."""
    report = sim.explore(traces.lost_update, sim.DPOR(), _loses)
    failure = report.failures[0]
    assert "Repair" not in dict(failure.about_minimal)
    repairs = failure.repairs()
    assert dict(_rows(opened(failure.show())))["Repair"] == str(repairs[0])


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (partial(traces.lost_update), "lost_update (_traces.py:"),
        (lambda: traces.lost_update(), "<lambda> (test_page_verdict.py:"),
    ],
)
def test_program_is_named_whatever_it_is(program: Any, said: str) -> None:
    """A program that is wrapped is named by what it wraps, and by the line where that begins."""
    named = dict(_failure(program).about)["Program"]
    assert said in named
    assert "0x" not in named


def test_page_of_a_batch_says_which_law_is_broken(opened: Open) -> None:
    """A page that opens with calls has the bar too, with a law's sentence and what was seen instead."""
    from toolrt.invariants import Violation

    broken = Violation("answered_once", "every call is answered once", "call 3 has two answers", "b", 3, 7)
    failure = sim.explore(traces.batch_of_calls, sim.Random(sim.Choices(), 1), lambda _: [broken]).failures[0]
    tab = opened(failure.show())
    assert tab.get_by_role("tab", name="Calls").get_attribute("aria-selected") == "true"
    assert "law answered_once does not hold" in tab.locator("#verdict summary").inner_text()
    assert "call 3 has two answers (batch b, call 3, event 7)" in dict(_rows(tab))["Violation"]
    assert dict(_rows(tab))["Program"].startswith("batch_of_calls (_traces.py:")


def test_many_violations_do_not_hide_the_replay_line(opened: Open) -> None:
    """Of twelve violations one stands above the line that runs it again, the others below it."""
    tab = opened(_failure(check=lambda execution: [f"number {number}\nis wrong" for number in range(12)]).show())
    names = [name for name, _ in _rows(tab)]
    assert names == ["Violation", "Value", "Program", "Schedule", "Run it again", *["Violation"] * 11]
    bar, line = (tab.locator(part).bounding_box() for part in ("#verdict", "#verdict dd:nth-of-type(5)"))
    assert line["y"] + line["height"] <= bar["y"] + bar["height"]


def test_exercise_says_what_is_wrong_with_the_answer(opened: Open) -> None:
    """The page of a grade has the finding, so that it can be handed on alone."""
    execution = sim.run(traces.lost_update, sim.Choices())
    finding = lab.Finding(False, "two tasks add one each", "it ended in 1", execution)
    tab = opened(lab.Grade("counter", lab.GradeStatus.WRONG, (finding,)).show())
    assert "two tasks add one each" in tab.locator("#verdict summary").inner_text()
    rows = dict(_rows(tab))
    assert (rows["Violation"], rows["Value"], rows["Program"]) == ("it ended in 1", "2", "your answer to counter")


@pytest.mark.parametrize(
    "text", [_BAD, "{{script}}{{document}}", "a\u202eb\x1b[31m\x00", "\ud800", "&lt;&amp;", "x" * 10**6]
)
def test_hostile_text_is_text(opened: Open, text: str) -> None:
    """What a check, a value or an error says is shown as text and runs nothing."""

    async def hostile() -> str:
        return text

    hostile.__qualname__ = text
    failure = sim.explore(hostile, sim.Random(sim.Choices(), 1), lambda execution: [text, f"{text} 2"]).failures[0]
    page = failure.show()
    assert len(page.html) < 200_000
    page.html.encode()
    tab = opened(page)
    assert tab.evaluate("window.broken") is None
    assert tab.locator("#verdict script, #verdict img").count() == 0
    assert tab.locator("#verdict").count() == tab.locator("#verdict dl").count() == tab.locator("footer").count() == 1
    rows = dict(_rows(tab))
    assert set(rows) == {"Violation", "Value", "Program", "Schedule", "Run it again"}
    if text.isprintable() and len(text) < 200:
        assert rows["Violation"] == f"{text} 2"
        assert rows["Program"].startswith(text)
    assert not any(character in "".join(rows.values()) for character in "\u202e\x1b\x00")


def test_what_is_cut_says_how_much() -> None:
    """A long text ends with the number of characters that are left out; a line to be copied is kept whole."""
    html = view.show(traces.recorded("lost"), about=[("FAIL", "x" * 1_000), ("Value", "y" * 5_000)]).html
    assert "(+700 characters)" in html
    assert "(+3,000 characters)" in html
    line = f'sim.replay(program, "{"main " * 3_000}")'
    page = view.show(traces.recorded("lost"), about=[("FAIL", "no"), ("Run it again", line)])
    assert line.replace('"', "&quot;") in page.html


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_bar_fits_beside_the_steps(opened: Open, width: int, scheme: str) -> None:
    """However much there is to say, nothing sticks out, the steps stay in view and every row can be reached."""
    about = [("FAIL", "w" * 250), *(("Violation", "longword" * 40) for _ in range(30)), ("Run it again", "r" * 900)]
    tab = opened(view.show(*traces.lost_and_kept(), about=about), width=width, color_scheme=scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    steps = tab.locator(".scroll.steps").first.bounding_box()
    assert steps["height"] >= 100
    footer = tab.locator("footer").bounding_box()
    assert footer["y"] + footer["height"] <= 800
    last = tab.locator("#verdict dd").last
    last.scroll_into_view_if_needed()
    box = last.bounding_box()
    assert box["x"] + box["width"] <= width
    ink, ground = tab.evaluate(
        "[getComputedStyle(document.querySelector('#verdict dd')).color, "
        "getComputedStyle(document.body).backgroundColor]"
    )
    assert ink != ground
    # It can be folded away by the keyboard, and then takes one row or a few.
    tab.locator("#verdict summary").focus()
    tab.keyboard.press("Enter")
    assert not tab.locator("#verdict dl").is_visible()


def test_bar_can_be_read_without_scripts(opened: Open) -> None:
    """Where no script runs the page still says what failed and how to run it again."""
    failure = _failure()
    tab = opened(failure.show(), java_script_enabled=False)
    assert failure.minimal.short in tab.locator("#verdict").inner_text()
    assert "an addition was lost" in tab.locator("#verdict").inner_text()


def test_page_without_a_verdict_has_no_bar() -> None:
    """A trace says nothing of right and wrong, and neither does its page."""
    assert 'id="verdict"' not in view.show(traces.recorded("lost")).html


@pytest.mark.drawn(2)
@pytest.mark.parametrize("about", ["FAIL", [("FAIL",)], [("FAIL", 1)], ["ab"], 7])
def test_what_is_no_verdict_is_refused(about: Any) -> None:
    """The bar is made of pairs of texts."""
    with pytest.raises(DefinitionRefused, match="pairs of two texts"):
        view.show(traces.recorded("lost"), about=about)
