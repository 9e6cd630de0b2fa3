"""The page: one HTML file that holds everything it shows, and loads nothing.

Rules.  What a tool or a model wrote is data: it stands in a JSON block whose characters cannot end the block, and the
page's script puts it on the page as text; the title and the bar of what failed are escaped where they stand, so that
they can be read where no script runs. A text that is cut says how much is left out; the schedule and the line that runs
a failure again are kept much longer than the rest, since half of one is of no use. The content security policy names
the hash of the one script and of the one style sheet, so nothing else can run, and nothing can be fetched. Script and
style are files of this package, as they are: there is no build step.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from toolrt.errors import DefinitionRefused
from toolrt.trace import Trace
from toolrt.view._document import document_of
from toolrt.view._short import one_line

#: The parts of each page's script, in the order they build on each other.
_PAGE = (
    "base.js",
    "drawing.js",
    "model.js",
    "watch.js",
    "shown.js",
    "minimap.js",
    "steps.js",
    "claims.js",
    "calls.js",
    "table.js",
    "panel.js",
    "print.js",
    "app.js",
)
_PLAY = ("base.js", "progress.js", "words.js", "tree.js", "play.js")
_GALLERY = ("base.js", "progress.js", "gallery.js")
_SLIDER = ("base.js", "slider.js")
_POSITIONS = ("base.js", "positions.js")
_PREDICTION = ("base.js", "prediction.js")

#: What ends a script block, begins a comment or a tag, or is no line break in JSON but one in JavaScript.
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def page_of(traces: Sequence[Trace], names: Sequence[str], title: str, bar: str = "") -> str:
    """Give the page for one trace, or for two to be compared; `bar` is markup that `bar_of` made."""
    title = one_line(title, 200)
    return _filled("page.html", _PAGE, title, document_of(traces, names, title), bar)


def play_of(tree: Mapping[str, Any], title: str) -> str:
    """Give the page on which a program is scheduled by hand; `tree` is all there is to play."""
    return _filled("play.html", _PLAY, one_line(title, 200), tree, style=("page.css", "play.css"))


def gallery_of(document: Mapping[str, Any], title: str) -> str:
    """Give the index of a gallery of such pages."""
    return _filled("gallery.html", _GALLERY, one_line(title, 200), document, style=("page.css", "gallery.css"))


def slider_of(document: Mapping[str, Any], title: str) -> str:
    """Give the page with a slider over schedules."""
    return _filled("slider.html", _SLIDER, one_line(title, 200), document)


def positions_page(document: Mapping[str, Any], title: str) -> str:
    """Give the page with a slider for each thing that is moved."""
    return _filled("positions.html", _POSITIONS, one_line(title, 200), document, style=("page.css", "positions.css"))


def prediction_page(document: Mapping[str, Any], title: str) -> str:
    """Give the page that asks for a guess, and then says what came."""
    return _filled("prediction.html", _PREDICTION, one_line(title, 200), document)


def _filled(
    page: str,
    scripts: tuple[str, ...],
    title: str,
    document: Mapping[str, Any],
    bar: str = "",
    style: tuple[str, ...] = ("page.css",),
) -> str:
    styles, script = _joined(style), _joined(scripts)
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(styles)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": html.escape(policy),
        "title": html.escape(title),
        "style": styles,
        "script": script,
        "document": _block(document),
        "bar": bar,
    }
    # What is filled in is never looked at again: a trace may well hold "{{script}}".
    filled = []
    for piece in (asset("head.html") + asset(page)).split("{{"):
        name, end, rest = piece.partition("}}")
        filled.append(parts[name] + rest if end else piece)
    return "".join(filled)


def _block(document: Mapping[str, Any]) -> str:
    """Write JSON that stands in an HTML document as it is."""
    text = json.dumps(document, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for character, escape in _ESCAPED.items():
        text = text.replace(character, escape)
    return text


@cache
def _joined(names: tuple[str, ...]) -> str:
    return "\n".join(asset(name) for name in names)


@cache
def asset(name: str) -> str:
    """Give a file of this package."""
    return resources.files("toolrt.view").joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


# ---------------------------------------------------------------------- the bar above the steps

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
