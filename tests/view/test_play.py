"""Be the scheduler, in a real browser: choosing, hints, the proof, keys."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.view.conftest import Open
from toolrt import view
from toolrt.errors import DefinitionRefused, MisuseError
from toolrt.teaching.litmus import LITMUS
from toolrt.teaching.play import Game


def played(opened: Open, name: str, **settings: Any) -> Any:
    """Open the page of a litmus program."""
    return opened(view.play(Game(LITMUS[name])), **settings)


def test_player_breaks_the_lost_update(opened: Open) -> None:
    """Both read before either writes: the page says what each step would do, and what it came to."""
    tab = played(opened, "lost_update_2x1")
    assert tab.locator("#aim").text_content() == "You are the scheduler. Try to make it end in 1."
    tab.get_by_role("button", name="main.0: reads counter = 0").click()
    tab.get_by_role("button", name="main.1: reads counter = 0").click()
    tab.get_by_role("button", name="main.0: writes counter = 1").click()
    assert tab.locator("#end").text_content() == "✗ It ended in 1: the bug. You broke it."
    assert tab.locator("#seen").text_content() == "1 class of schedules, 3 still unseen"
    rows = tab.locator("#steps tr .cell").all_text_contents()
    assert rows == [
        "runs",
        "> reads counter = 0",
        "> reads counter = 0",
        "> writes counter = 1",
        "writes counter = 1",
        "reads counter = 1",
    ]


@pytest.mark.parametrize("name", ["lost_update_2x1", "two_locks"])
def test_page_leads_to_every_schedule_and_no_other(opened: Open, name: str) -> None:
    """Whatever is chosen, in every order, ends as the game in Python does; then no class is unseen."""
    tab = played(opened, name)
    found = tab.evaluate(
        """() => {
          const ends = [];
          const go = () => {
            const end = toolrt.play.data.ends[toolrt.play.at];
            const tasks = toolrt.play.path.map((place) => toolrt.play.nodes[place].task);
            if (end) { ends.push([tasks.join(" "), end[0]]); return; }
            for (const place of [...toolrt.play.options]) { toolrt.play.choose(place); go(); toolrt.play.back(); }
          };
          go();
          return ends;
        }"""
    )
    expected = set()
    game = Game(LITMUS[name])

    def walk() -> None:
        if game.over:
            expected.add((" ".join(game.execution.schedule.tasks), repr(game.outcome)))
            return
        for choice in range(len(game.options)):
            game.choose(choice)
            walk()
            game.back()

    walk()
    assert {tuple(end) for end in found} == expected
    assert len(found) == len(expected)
    assert tab.evaluate("toolrt.play.data.classes - toolrt.play.seen.size") == 0


def test_hints_lead_to_the_bug(opened: Open) -> None:
    """Whoever does what the hints say breaks it; past the point of no return the hint says to go back."""
    tab = played(opened, "lost_update_2x1")
    for _ in range(10):
        if tab.locator("#end").text_content():
            break
        tab.keyboard.press("h")
        told = re.fullmatch(r"Hint: Let (main\.\d) run\.", tab.locator("#advice").text_content())
        assert told
        tab.get_by_role("button", name=f"{told[1]}:").click()
    assert "You broke it" in tab.locator("#end").text_content()
    tab.keyboard.press("h")
    assert tab.locator("#advice").text_content() == "Hint: It is over: go back, or begin again."


def test_proof_counts_every_schedule(opened: Open) -> None:
    """Where some go wrong they are counted; where none does, there is nothing to find."""
    tab = played(opened, "lost_update_2x1")
    tab.keyboard.press("p")
    assert tab.locator("#advice").text_content() == "Of all 6 schedules, 4 go wrong: go and find one."
    assert sorted(tab.locator("#proved li").all_text_contents()) == ["2 × 2", "4 × 1: the bug"]
    tab = played(opened, "lock_2")
    tab.keyboard.press("h")
    assert tab.locator("#advice").text_content() == "Hint: No way goes wrong, wherever you stand: ask for the proof."
    tab.get_by_role("button", name="Proof").click()
    said = tab.locator("#advice").text_content()
    assert said == "All 6 schedules were run, and none goes wrong: there is nothing to find."


def test_keys_choose_and_take_back(opened: Open) -> None:
    """Digits choose, b takes back, r begins again; the keyboard's focus stays with the choices."""
    tab = played(opened, "lost_update_2x1")
    tab.keyboard.press("2")
    assert tab.locator("#steps tr").count() == 2
    tab.keyboard.press("9")
    assert tab.locator("#steps tr").count() == 2
    tab.keyboard.press("b")
    assert tab.locator("#steps tr").count() == 1
    assert tab.get_by_role("button", name="Back").is_disabled()
    tab.locator("#options button").first.focus()
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.closest('#options') !== null")
    tab.keyboard.press("Enter")
    assert tab.locator("#turn").text_content() == "It is over"
    assert tab.evaluate("document.activeElement.id") == "restart"
    tab.keyboard.press("r")
    assert tab.locator("#turn").text_content() == "Who runs next?"
    assert tab.locator("#seen").text_content() == "1 class of schedules, 3 still unseen"


def test_narrow_game_fits(opened: Open) -> None:
    """At 390 pixels nothing sticks out, and every move can be reached."""
    tab = played(opened, "lost_update_2x1", width=390)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    for button in tab.locator("#panel button").all():
        button.scroll_into_view_if_needed()
        box = button.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 390


def test_hostile_program_is_text(opened: Open) -> None:
    """What a program reads and writes, its story and its outcomes are shown as text."""
    bad = "</script><img src=x onerror='window.broken = 1'>"

    class Hostile:
        def tree(self) -> dict[str, Any]:
            nodes = [[bad, bad, [1, 2]], ["main.0", bad, []], ["__proto__", bad, []]]
            ends = {"1": [bad, True, 0], "2": ["__proto__", False, 1]}
            return {
                "name": bad,
                "story": bad,
                "source": bad,
                "wrong": [bad],
                "nodes": nodes,
                "ends": ends,
                "classes": 2,
            }

    tab = opened(view.play(Hostile()))
    for key in ("h", "p", "1", "b", "2", "p"):
        tab.keyboard.press(key)
    assert tab.locator("#title").text_content() == bad
    assert tab.evaluate("document.querySelectorAll('img').length") == 0
    assert tab.evaluate("window.broken") is None


def test_what_is_no_game_is_refused() -> None:
    """A page is made of a game, and of one that fits."""
    with pytest.raises(DefinitionRefused, match="a litmus Game"):
        view.play("lost_update_2x1")  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="more than 5 schedules"):
        Game(LITMUS["lost_update_2x1"]).tree(most=5)
