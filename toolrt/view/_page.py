"""The page: one HTML file that holds everything it shows, and loads nothing.

Rules.  What a tool or a model wrote is data: it stands in a JSON block whose characters cannot end the block, and the
page's script puts it on the page as text; the title and the bar of what failed are escaped where they stand, so that
they can be read where no script runs.  The content security policy names the hash of the one script and of the one
style sheet, so nothing else can run, and nothing can be fetched.  Script and style are files of this package, as they
are: there is no build step.
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
    for piece in (_asset("head.html") + _asset(page)).split("{{"):
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
    return "\n".join(_asset(name) for name in names)


@cache
def _asset(name: str) -> str:
    return resources.files("toolrt.view").joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
