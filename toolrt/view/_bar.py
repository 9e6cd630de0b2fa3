"""The bar above the steps: the verdict, and what to know of it.

Rules.  Every text is data: it is escaped, keeps its lines, and control characters are written out.  A text that is cut
says how much is left out.  The schedule and the line that runs a failure again are kept much longer than the rest: half
of one is of no use.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from toolrt.errors import DefinitionRefused
from toolrt.view._short import one_line

#: Characters of the verdict's line, of another line, and of a line that is to be copied.
_HEAD, _LINE, _COPIED = 300, 2_000, 20_000

#: Lines of one text, and rows of the bar.
_LINES, _ROWS = 40, 40

#: Rows that are code.
_CODE = ("Schedule", "Run it again")

#: The row that has a button which copies it; the page's script makes the button.
_TO_COPY = "Run it again"

#: How a verdict looks, in a sign and a class; not by its colour alone.
_LOOKS = {"PASS": ("✓", "good"), "FAIL": ("✗", "bad")}


def bar_of(about: Sequence[tuple[str, str]], what: str) -> str:
    """Give the markup of the bar; "" when there is nothing to say.

    Raises:
        DefinitionRefused: `about`, called `what` for the reader, is not pairs of texts.
    """
    if not isinstance(about, list | tuple) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
        for pair in about
    ):
        raise DefinitionRefused(what, "pairs of two texts", about)
    if not about:
        return ""
    (verdict, wrong), *rows = about
    sign, looks = _LOOKS.get(verdict.upper(), ("?", "open"))
    head = next(iter(wrong.splitlines()), "")
    first: list[tuple[str, str]] = []
    further: list[tuple[str, str]] = []
    for name, text in rows:
        if text != head or len(text) > _HEAD:
            # Of many violations one stands above the line that runs it again, the others below.
            (further if any(name == known for known, _ in first) else first).append((name, text))
    shown = first + further
    left_out = f"<dt></dt><dd>and {len(shown) - _ROWS:,} more</dd>" if len(shown) > _ROWS else ""
    return (
        f'<details id="verdict" class="{looks}" open>'
        f'<summary><span aria-hidden="true">{sign}</span> <strong>{_escaped(verdict, 80)}</strong> '
        f"<span>{_escaped(head, _HEAD)}</span></summary>"
        '<div role="region" aria-label="What is to be said of it" tabindex="0"><dl>'
        f"{''.join(map(_row, shown[:_ROWS]))}{left_out}</dl></div></details>"
    )


def _row(row: tuple[str, str]) -> str:
    name, text = row
    most = _COPIED if name in _CODE else _LINE
    lines = text.splitlines() or [""]
    shown = [_escaped(line, most) for line in lines[:_LINES]]
    if len(lines) > _LINES:
        shown.append(f"… (+{len(lines) - _LINES:,} lines)")
    body = "\n".join(shown)
    if name in _CODE:
        body = f"<code{' data-copied' if name == _TO_COPY else ''}>{body}</code>"
    return f"<dt>{_escaped(name, 80)}</dt><dd>{body}</dd>"


def _escaped(text: str, most: int) -> str:
    left_out = len(text) - most
    return html.escape(one_line(text, most)) + (f" (+{left_out:,} characters)" if left_out > 0 else "")
