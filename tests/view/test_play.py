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
    tab.get_by_role("button", name="main.0 add: reads counter = 0").click()
    tab.get_by_role("button", name="main.1 add: reads counter = 0").click()
    tab.get_by_role("button", name="main.0 add: writes counter = 1").click()
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


@pytest.mark.seldom
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
        told = re.fullmatch(r"Hint: Let (main\.\d add) run\.", tab.locator("#advice").text_content())
        assert told
        tab.get_by_role("button", name=f"{told[1]}:").click()
    assert "You broke it" in tab.locator("#end").text_content()
    tab.keyboard.press("h")
    assert tab.locator("#advice").text_content() == "Hint: It is over: go back, or begin again."


def test_proof_counts_every_schedule(opened: Open) -> None:
    """Where some go wrong they are counted; where none does, there is nothing to find."""
    tab = played(opened, "lost_update_2x1")
    tab.keyboard.press("p")
    assert tab.locator("#advice").text_content() == "All 6 schedules were run: 4 classes. 4 schedules go wrong."
    assert sorted(tab.locator("#proved li").all_text_contents()) == [
        "2 schedules end in 2 (2 classes)",
        "4 schedules end in 1, the bug (2 classes)",
    ]
    tab = played(opened, "lock_2")
    tab.keyboard.press("h")
    assert tab.locator("#advice").text_content() == "Hint: No way goes wrong, wherever you stand: ask for the proof."
    tab.get_by_role("button", name="Proof").click()
    said = tab.locator("#advice").text_content()
    assert said == "All 6 schedules were run: 4 classes. None goes wrong: there is nothing to find."


def test_keys_choose_and_take_back(opened: Open) -> None:
    """Digits choose, b takes back, r begins again; the keyboard's focus stays with the choices."""
    tab = played(opened, "lost_update_2x1")
    tab.keyboard.press("2")
    assert tab.locator("#steps tr").count() == 2
    tab.keyboard.press("9")
    assert tab.locator("#steps tr").count() == 2
    tab.keyboard.press("b")
    assert tab.locator("#steps tr").count() == 1
    assert tab.get_by_role("button", name="Undo").is_disabled()
    tab.locator("#options button").first.focus()
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.closest('#options') !== null")
    tab.keyboard.press("Enter")
    assert tab.locator("#turn").text_content() == "It is over"
    assert tab.evaluate("document.activeElement.id") == "restart"
    tab.keyboard.press("r")
    assert tab.locator("#turn").text_content() == "Who runs next?"
    assert tab.locator("#seen").text_content() == "1 class of schedules, 3 still unseen"


@pytest.mark.seldom
def test_task_keeps_its_key(opened: Open) -> None:
    """Also where fewer tasks can run; a key of a task that cannot run does nothing."""
    tab = played(opened, "lost_update_2x1")
    keys = tab.evaluate("[...toolrt.play.keys]")
    assert keys == [["main.0", 1], ["main.1", 2]]
    tab = played(opened, "dining_3")
    named = {task: str(number) for task, number in tab.evaluate("[...toolrt.play.keys]")}
    for _ in range(20):
        shown = tab.locator("#options button")
        for button in shown.all():
            key, task = (button.text_content() or "").split()[:2]
            assert named[task.rstrip(":")] == key
        if not shown.count():
            break
        before = tab.locator("#steps tr").count()
        barred = set(named.values()) - {text.split()[0] for text in shown.all_text_contents()}
        for key in sorted(barred):
            tab.keyboard.press(key)
            assert tab.locator("#steps tr").count() == before
        shown.last.click()
    assert tab.locator("#turn").text_content() == "It is over"


def test_story_and_reason_are_told_when_the_bug_was_found(opened: Open) -> None:
    """Before that the story is folded: it may give the bug away."""
    tab = played(opened, "lost_update_2x1")
    assert not tab.locator("#story").is_visible()
    assert tab.locator("#why li").count() == 0
    for key in "121":
        tab.keyboard.press(key)
    assert "You broke it" in (tab.locator("#end").text_content() or "")
    assert tab.locator("#story").is_visible()
    told = " ".join(tab.locator("#why li").all_text_contents())
    assert "lost update" in told
    assert "What would mend it: `async with lock:`" in told


def test_narrow_game_fits(opened: Open) -> None:
    """At 390 pixels nothing sticks out, and every move can be reached."""
    tab = played(opened, "lost_update_2x1", width=390)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    for button in tab.locator("#panel button:visible").all():
        button.scroll_into_view_if_needed()
        box = button.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 390


def test_hostile_program_is_text(opened: Open) -> None:
    """What a program reads and writes, its story and its outcomes are shown as text."""
    bad = "</script><img src=x onerror='window.broken = 1'>"

    class Hostile:
        def tree(self) -> dict[str, Any]:
            nodes = [[0, 0, [1, 2, -2]], [1, 0, []], [2, 0, []]]
            ends = {"1": [bad, True, 0], "2": ["__proto__", False, 1]}
            return {
                "name": bad,
                "story": bad,
                "source": bad,
                "wrong": [bad],
                "nodes": nodes,
                "ends": ends,
                "classes": 2,
                "texts": [bad, "main.0", "__proto__"],
                "functions": {"main.0": bad},
                "words": [[bad, bad, bad]],
                "stated": None,
                "whole": False,
                "every_class": False,
                "index": "index.html",
                "next": [bad, "next.html"],
            }

    tab = opened(view.play(Hostile()))
    for key in ("h", "p", "1", "b", "2", "p"):
        tab.keyboard.press(key)
    assert tab.locator("#title").text_content() == bad
    assert tab.evaluate("document.querySelectorAll('img').length") == 0
    assert tab.evaluate("window.broken") is None


def test_program_with_too_many_schedules_is_played_in_part(opened: Open) -> None:
    """What was not explored is there and cannot be chosen; the page says how much it has, and gives no proof."""
    game = Game(LITMUS["lost_update_3x2"])

    class Part:
        def tree(self) -> dict[str, Any]:
            return game.tree(most=10)

    tab = opened(view.play(Part()))
    said = tab.locator("#part").text_content()
    assert re.match(r"This page has \d+ of 1,680 schedules; not every class is among them\.", said)
    tab.keyboard.press("p")
    assert "so this is no proof" in tab.locator("#advice").text_content()
    while not tab.locator("#options button:disabled").count():
        tab.locator("#options button:enabled").last.click()
    before = tab.locator("#steps tr").count()
    barred = tab.locator("#options button:disabled").first
    assert "not explored" in barred.text_content()
    tab.keyboard.press(barred.locator("kbd").text_content())
    assert tab.locator("#steps tr").count() == before


def test_tree_fills_and_is_kept(opened: Open) -> None:
    """A leaf fills when its class was seen, by whatever order; the browser keeps it, and the address may carry it."""
    tab = played(opened, "lost_update_2x1")
    assert tab.locator("#tree .leaf").count() == 6
    assert tab.locator("#tree .leaf.wrong").count() == 0
    for key in ("1", "2", "1"):
        tab.keyboard.press(key)
    # Two orders of the same class: the writes of one value may be swapped with nothing between.
    assert tab.locator("#tree .leaf.wrong").count() == 2
    assert tab.locator("#tree svg").get_attribute("aria-label") == "Tree of 4 classes, 1 of them seen."
    kept = tab.evaluate("toolrt.play.progress.address(['lost_update_2x1'])")
    tab.reload()
    assert tab.locator("#tree .leaf.wrong").count() == 2
    tab.evaluate("toolrt.play.progress.forget()")
    tab.goto(tab.url + kept)
    tab.reload()
    assert tab.locator("#seen").text_content() == "1 class of schedules, 3 still unseen"


def test_failing_schedule_is_shown_and_does_not_count(opened: Open) -> None:
    """After the proof it can be looked at; the program is not solved by that."""
    tab = played(opened, "lost_update_2x1")
    assert not tab.locator("#failing").is_visible()
    tab.keyboard.press("p")
    tab.keyboard.press("s")
    assert "the bug" in tab.locator("#end").text_content()
    assert tab.evaluate("toolrt.play.progress.of('lost_update_2x1').solved") is False
    assert tab.locator("#seen").text_content() == "0 classes of schedules, 4 still unseen"


def test_words_are_explained(opened: Open) -> None:
    """A word of the story is a link to its meaning, which is shown where the pointer or the focus is."""
    tab = played(opened, "lost_update_2x1")
    tab.locator("#about summary").click()
    word = tab.locator("#story .word", has_text="preemption")
    meaning = tab.locator(f"#{word.get_attribute('aria-describedby')}").text_content()
    assert meaning.startswith("a choice that gives a step to another task")
    assert word.get_attribute("data-means") == f"preemption: {meaning}"
    word.focus()
    tab.keyboard.press("Enter")
    assert tab.locator("#glossary").get_attribute("open") is not None


@pytest.mark.seldom
def test_what_is_no_game_is_refused() -> None:
    """A page is made of a game."""
    with pytest.raises(DefinitionRefused, match="a litmus Game"):
        view.play("lost_update_2x1")  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="1 or more schedules"):
        Game(LITMUS["lost_update_2x1"]).tree(most=0)
