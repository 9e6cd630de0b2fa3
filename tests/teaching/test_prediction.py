"""Predictions: the guess is asked for before what came is shown, and the first one is kept."""

from __future__ import annotations

import html
from typing import Any

import pytest

from tests.view.conftest import opened  # noqa: F401  fixture
from toolrt.teaching import lab


def _page(prediction: lab.Prediction) -> str:
    """The page inside the frame that a notebook shows."""
    framed = prediction._repr_html_()
    assert 'sandbox="allow-scripts"' in framed
    return html.unescape(framed.split('srcdoc="')[1].split('"></iframe>')[0])


@pytest.mark.parametrize("nothing", [None, ...])
def test_without_a_guess_nothing_of_what_came_is_told(nothing: Any) -> None:
    """A reader is asked for one."""
    asked = lab.Prediction("What is left?", nothing, 7391)
    assert "Your guess first" in str(asked)
    assert "7391" not in str(asked)
    assert asked.right is None


@pytest.mark.parametrize(
    ("guess", "came", "right"),
    [(3, 3, True), (3.0, 3, True), ("3", 3, True), ("The Second", "the second", True), (0, False, True), (4, 3, False)],
)
def test_guess_is_right_where_it_equals_or_reads_the_same(guess: Any, came: Any, right: bool) -> None:
    """A number may be written as a text, a word in capitals."""
    assert lab.Prediction(f"{guess!r} and {came!r}?", guess, came).right is right


def test_first_guess_is_kept_beside_a_later_one() -> None:
    """A reader who has seen the result can no longer predict it."""
    assert "first" not in str(lab.Prediction("How many are lost?", 1, 2))
    assert str(lab.Prediction("How many are lost?", 2, 2)).endswith(
        "You said 2, and so it came. Your first guess was 1."
    )
    assert "You said 5. It came out as 2. Your first guess was 1." in str(lab.Prediction("How many are lost?", 5, 2))


@pytest.mark.seldom
def test_page_asks_before_it_shows(opened: Any) -> None:  # noqa: F811
    """Without a guess the page has a field; a second guess is shown beside the first."""
    tab = opened(_page(lab.Prediction("Which <b>call</b> is first?", None, "the <i>slow</i> one")))
    assert tab.inner_text("#question") == "Which <b>call</b> is first?"
    assert tab.inner_text("#came") == ""
    tab.click("button")
    assert "Your guess first" in tab.inner_text("#came")
    tab.fill("#guess", "the fast one")
    tab.keyboard.press("Enter")
    assert tab.inner_text("#came") == "✗ You said the fast one. It came out as the <i>slow</i> one."
    tab.fill("#guess", "The <i>slow</i> one")
    tab.keyboard.press("Enter")
    said = "✓ You said The <i>slow</i> one, and so it came. Your first guess was the fast one."
    assert tab.inner_text("#came") == said

    def shown_again() -> bool:
        tab.reload()
        return "You said the fast one." in tab.inner_text("#came")

    # Another process of the browser keeps it: a page that is loaded at once may come before.
    assert any(shown_again() for _ in range(20))


@pytest.mark.seldom
def test_page_shows_the_guess_of_the_cell(opened: Any) -> None:  # noqa: F811
    """One that is written in the cell is compared at once."""
    tab = opened(_page(lab.Prediction("How many pages?", 3, 3.0)))
    assert tab.inner_text("#came").startswith("✓ You said 3")
