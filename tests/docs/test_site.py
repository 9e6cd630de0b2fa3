"""What makes the site of the pages: the reference, the notebooks' pages, and the check of what it loads."""

from __future__ import annotations

import base64
import json
import re
import runpy
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from toolrt import invariants

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "_site"


def _module(path: Path) -> dict[str, Any]:
    sys.path.insert(0, str(SITE))
    try:
        return runpy.run_path(str(path))
    finally:
        sys.path.remove(str(SITE))


@pytest.fixture(scope="module")
def check() -> dict[str, Any]:
    """What looks for loads from elsewhere."""
    return _module(ROOT / ".ci" / "check_docs.py")


def test_every_room_is_on_one_page(root: Path) -> None:
    """Whatever exports public names has a place in the reference, and nothing else has."""
    pages = [path.read_text(encoding="utf-8") for path in (root / "docs/reference/names").glob("*.md")]
    told = sorted(room for text in pages for room in re.findall(r"^<!-- names of ([\w.]+) -->$", text, re.MULTILINE))
    assert told == sorted(_module(SITE / "names.py")["rooms"]())


def test_every_notebook_has_a_page(root: Path) -> None:
    """It begins with the notebook's title and links to it, and so does the list of notebooks."""
    notebooks = sorted((root / "notebooks").glob("*.ipynb"))
    listed = (root / "docs/notebooks/index.md").read_text(encoding="utf-8")
    wanted, titles = {}, []
    for number, path in enumerate(notebooks, 1):
        first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"]).splitlines()[0]
        title = first.lstrip("# ").strip()
        link = f"[{path.stem}](../../notebooks/{path.name})"
        wanted[path.stem] = f"# {title}\n\nThis page of the site shows the notebook {link} with its outputs.\n"
        titles.append(f"{number}. [{title}]({path.stem}.md)")
    pages = {path.stem: path for path in (root / "docs/notebooks").glob("*.md") if path.stem != "index"}
    assert {stem: path.read_text(encoding="utf-8") for stem, path in pages.items()} == wanted
    assert re.findall(r"^\d+\. .*$", listed, re.MULTILINE) == titles


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://cdn.example/a.js"></script>',
        '<link rel="stylesheet" href="//cdn.example/a.css">',
        '<link rel="preload next" href="http://cdn.example/a.woff">',
        '<img src="HTTP://example/a.png">',
        '<img srcset="a.png 1x, https://example/b.png 2x">',
        "<style>@import 'https://example/a.css';</style>",
        "<style>@font-face { src: url( https://example/a.woff ) }</style>",
        "<p style=\"background: url('https://example/a.png')\">",
        '<svg><use xlink:href="https://example/a.svg#b"/></svg>',
        '<iframe srcdoc="&lt;script src=&quot;https://example/a.js&quot;&gt;&lt;/script&gt;"></iframe>',
        '<img src="missing.png">',
    ],
)
def test_check_finds_what_a_page_would_load(page: str, check: dict[str, Any], tmp_path: Path) -> None:
    """From elsewhere, or from a file that is not there."""
    (tmp_path / "a.png").write_bytes(b"")
    (tmp_path / "page.html").write_text(page)
    assert len(list(check["problems"](tmp_path))) == 1


def test_check_lets_links_pass(check: dict[str, Any], tmp_path: Path) -> None:
    """What a person follows may lead anywhere, and what is of the page or of the site is loaded."""
    (tmp_path / "a.css").write_text("p { background: url(data:image/png;base64,AAAA) }")
    (tmp_path / "page.html").write_text(
        '<a href="https://example/">x</a><link rel="next" href="https://example/">'
        '<link rel="stylesheet" href="a.css?1"><svg xmlns="http://www.w3.org/2000/svg"><use href="#a"/></svg><pre>url(https://example/a.png)</pre>'
    )
    assert list(check["problems"](tmp_path)) == []


def test_check_reads_style_sheets(check: dict[str, Any], tmp_path: Path) -> None:
    """A font of another host is one."""
    (tmp_path / "a.css").write_text('@import "https://example/a.css"; p { background: url("https://example/b.png") }')
    assert len(list(check["problems"](tmp_path))) == 2


def test_notebook_is_shown_with_its_outputs(tmp_path: Path) -> None:
    """Text without colours, pictures, pages, and code that has backticks itself."""
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "[laws](../docs/explanation/laws.md)"]},
        {
            "cell_type": "code",
            "source": "'```'",
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["\x1b[31mred\x1b[0m\n"]},
                {"output_type": "display_data", "data": {"text/plain": "x", "image/svg+xml": ["<svg>", "</svg>"]}},
                {"output_type": "execute_result", "data": {"text/plain": "<b>", "image/png": "QUJD\n"}},
                {"output_type": "display_data", "data": {"application/x": "unknown"}},
            ],
        },
        {"cell_type": "code", "source": "", "outputs": []},
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"metadata": {}, "cells": cells}))
    shown = _module(SITE / "notebook_pages.py")["as_markdown"](tmp_path / "a.ipynb")
    assert "````python\n'```'\n````" in shown
    assert "```output\nred\n```" in shown
    assert '```{raw} html\n<div class="cell-output">\n<svg></svg>\n</div>\n```' in shown
    assert '<img alt="&lt;b&gt;" src="data:image/png;base64,QUJD">' in shown
    assert "unknown" not in shown
    assert shown.count("```python") == 1


def test_executed_notebook_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TOOLRT_NOTEBOOKS names where; what is not there is shown as it is kept."""
    notebook_of = _module(SITE / "notebook_pages.py")["notebook_of"]
    page, stub = tmp_path / "docs" / "a.md", "[a](../notebooks/a.ipynb)"
    for folder in ("docs", "notebooks", "executed"):
        (tmp_path / folder).mkdir()
    (tmp_path / "notebooks" / "a.ipynb").write_text("{}")
    monkeypatch.setenv("TOOLRT_NOTEBOOKS", str(tmp_path / "executed"))
    assert notebook_of(stub, page) == tmp_path / "notebooks" / "a.ipynb"
    (tmp_path / "executed" / "a.ipynb").write_text("{}")
    assert notebook_of(stub, page) == tmp_path / "executed" / "a.ipynb"
    with pytest.raises(ValueError, match=r"there is no notebook \.\./notebooks/b\.ipynb"):
        notebook_of("[b](../notebooks/b.ipynb)", page)


def test_links_are_looked_for_outside_code() -> None:
    """`handlers[name](input)` looks like a link, and is code; so is what a fenced block has."""
    page = "See [`a`](b.md).\n\n```python\nc[d](e)\n```\n\n`f[g](h)` and ``i ` [j](k)`` and [l\nm](n.md) `o\n[p](q)`.\n"
    changed = _module(SITE / "prose.py")["outside_code"](page, lambda prose: prose.replace("](", "](to/"))
    assert changed == page.replace("](b.md)", "](to/b.md)").replace("](n.md)", "](to/n.md)")


def test_reference_shows_the_defaults_of_fields() -> None:
    """A class of attrs writes them as names that only its own source knows."""
    with_defaults = _module(SITE / "reference.py")["with_defaults"]
    told = "(a: int = attr_dict['limit'].default, b: str = attr_dict['files'].default, c: int = NOTHING)"
    assert with_defaults(told, invariants.Mix) == "(a: int = 10, b: str = ..., c: int = ...)"
    assert with_defaults(told, int) == told


def test_docstring_becomes_fields() -> None:
    """Prose, then fields, then the example, whatever the order was."""
    doc = """Do it.  Checkpoint: never.

    Args:
        a: one,
            and more.
        b, c: others.

    Ordering: by call,
    always.

    Last words.

    Example::

        it()""".replace("\n    ", "\n")
    fields = [line for line in _module(SITE / "docstrings.py")["as_fields"](doc.splitlines()) if line]
    assert fields == [
        "Do it.",
        "Last words.",
        ":Checkpoint: never.",
        ":param a: one, and more.",
        ":param b: others.",
        ":param c: others.",
        ":Ordering: by call, always.",
        ".. rubric:: Example",
        ".. code-block:: python",
        "   it()",
    ]


def test_gallery_is_part_of_the_site(tmp_path: Path) -> None:
    """A process of its own writes it, a build waits for that, and ends it when a page has an error; it is linked."""
    extension = _module(SITE / "extension.py")
    done: list[str] = []

    class Written:
        returncode = 0

        def __init__(self, command: list[str], **_: Any) -> None:
            done.append(" ".join(command[1:]))

        def wait(self) -> int:
            done.append("waited")
            return self.returncode

        def terminate(self) -> None:
            done.append("ended")

    extension["on_begun"].__globals__["subprocess"] = SimpleNamespace(Popen=Written, DEVNULL=None)
    for name, error in (("html", None), ("html", ValueError("a page")), ("text", None)):
        app = SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(name=name))
        extension["on_begun"](app)
        extension["on_finished"](app, error)
    command = f"-m toolrt litmus --site {tmp_path / 'gallery'} --most {extension['GALLERY_MOST']}"
    assert done == [command, "waited", command, "ended", "waited"]
    Written.returncode = 1
    app = SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(name="html"))
    extension["on_begun"](app)
    with pytest.raises(Exception, match="the gallery was not written"):
        extension["on_finished"](app, None)
    source = [(ROOT / "docs/explanation/litmus.md").read_text(encoding="utf-8")]
    extension["on_source"](app, "explanation/litmus", source)
    assert '<a href="../gallery/index.html">' in source[0]


def test_example_of_a_page_opens_in_the_playground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The playground is copied into the site, and the link's fragment holds the example as it stands on its page."""
    written = tmp_path / "written"
    written.mkdir()
    (written / "index.html").write_text("the playground", encoding="utf-8")
    monkeypatch.setenv("TOOLRT_PLAYGROUND_SITE", str(written))
    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: SimpleNamespace(wait=lambda: 0, terminate=lambda: None))
    extension = _module(SITE / "extension.py")
    app = SimpleNamespace(outdir=tmp_path / "site", builder=SimpleNamespace(name="html"))
    extension["on_begun"](app)
    assert (tmp_path / "site/playground/index.html").read_text(encoding="utf-8") == "the playground"

    page = (ROOT / "docs/how-to/mend-a-failure.md").read_text(encoding="utf-8")
    source = [page]
    extension["on_source"](app, "how-to/mend-a-failure", source)
    found = re.search(r'<a href="\.\./playground/index\.html#program=([\w-]+)">', source[0])
    assert found is not None
    packed = base64.urlsafe_b64decode(found[1] + "=" * (-len(found[1]) % 4))
    example = json.loads(zlib.decompress(packed, -zlib.MAX_WBITS))["source"]
    assert f"```python\n{example}```\n\n<!-- try it -->" in page
    assert source[0].count("playground/index.html#program=") == page.count("<!-- try it") > 1
