"""Predictions: a question, a reader's guess, and what came of the run; the guess is asked for first, and kept.

Rules.  Without a guess nothing of what came is shown.  The first guess to a question is kept as long as the process
lives, and stands beside a later one: a reader who has seen the result can no longer predict it.
"""

from __future__ import annotations

from typing import Any

import attrs

from toolrt.trace import stable_text
from toolrt.view import Page
from toolrt.view._page import prediction_page
from toolrt.view._short import one_line

#: What a reader said first, by question.
_FIRST: dict[str, str] = {}


@attrs.frozen(repr=False)
class Prediction:
    """A guess beside what came of the run.  A notebook asks for the guess, and shows what came once there is one.

    In a notebook a reader writes the guess into the cell, or into the field below it.  The field works without a
    kernel, too: on the site, or in an exported notebook.

    Example:
        >>> from toolrt.teaching import lab
        >>> print(lab.Prediction("How many lanes?", None, 4))
        How many lanes?
          Your guess first: write it in place of None, and run this again.
        >>> print(lab.Prediction("How many lanes?", 3, 4))
        How many lanes?
          You said 3. It came out as 4.
        >>> print(lab.Prediction("How many lanes?", 4, 4))
        How many lanes?
          You said 4, and so it came. Your first guess was 3.
    """

    #: What the reader predicts.
    question: str
    #: What the reader says; None or ``...``: nothing yet.
    guess: Any
    #: What the run gave; a guess is right if it is equal to it, or reads the same.
    came: Any

    def __attrs_post_init__(self) -> None:
        if self._said is not None:
            _FIRST.setdefault(self.question, self._said)

    @property
    def right(self) -> bool | None:
        """Whether the guess is right; None: there is none."""
        if self._said is None:
            return None
        return bool(self.guess == self.came) or self._said.lower() == _text(self.came).lower()

    @property
    def _said(self) -> str | None:
        return None if self.guess is None or self.guess is ... else _text(self.guess)

    def __str__(self) -> str:
        said, first = self._said, _FIRST.get(self.question)
        if said is None:
            return f"{self.question}\n  Your guess first: write it in place of None, and run this again."
        told = (
            f"You said {said}, and so it came."
            if self.right
            else f"You said {said}. It came out as {_text(self.came)}."
        )
        return f"{self.question}\n  {told}" + ("" if first == said else f" Your first guess was {first}.")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        # A right guess reads as what came, so that the page need not know when two values are equal.
        said = _text(self.came) if self.right else self._said
        first = _FIRST.get(self.question)
        shown = {"question": self.question, "guess": said, "first": first, "came": _text(self.came)}
        return Page(lambda: prediction_page(shown, self.question), self.question, "a guess", 150)._repr_html_()


def _text(value: Any) -> str:
    return one_line(value if isinstance(value, str) else stable_text(value), 200).strip()
