"""Lessons: notebooks as pages of the playground, made of the notebooks' own cells.

Rules.  Nothing is written twice: the texts, the programs, the predictions and the exercises are those of the notebooks,
and an exercise that no notebook of the six has comes from the sheet.  A wheel brings the notebooks along.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from toolrt.errors import MissingExtra

#: Where notebooks are: in this room, where a wheel was installed; else beside the package, in a checkout.
_INSTALLED = Path(__file__).with_name("notebooks")
NOTEBOOKS = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[2] / "notebooks"

#: The notebooks that are lessons, by number, and the exercises of the sheet that each ends with besides its own.
_LESSONS: Mapping[str, tuple[str, ...]] = {"01": ("mend_it",), "02": (), "03": (), "04": (), "06": (), "11": ()}

#: The cell of an exercise that Hypothesis helps to grade, which a page does not have.
_ELSEWHERE = 'SHEET["pure_counter"]'

_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


@attrs.frozen
class Lesson:
    """One lesson."""

    #: The number of its notebook, and of the lesson's page.
    number: str
    title: str
    #: Its texts and its cells, as a part of a page.
    body: str

    @property
    def page(self) -> str:
        """The name of its page."""
        return f"lesson-{self.number}.html"


def lessons(notebooks: Path = NOTEBOOKS) -> list[Lesson]:
    """Give the lessons whose notebooks are there, in their order.

    Raises:
        MissingExtra: markdown-it-py, which rich brings along, is not installed.
    """
    found = {number: path for number in _LESSONS for path in notebooks.glob(f"{number}-*.ipynb")}
    return [_of(number, path) for number, path in found.items()]


def _of(number: str, path: Path) -> Lesson:
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(path.read_text("utf-8"))["cells"]]
    title = cells[0][1].partition("\n")[0].removeprefix("# ")
    for at in [at for at, (_, source) in enumerate(cells) if _ELSEWHERE in source]:
        del cells[at - 1 : at + 1]
    for name in _LESSONS[number]:
        cells += _exercise(name)
    return Lesson(number, title, "\n".join(_rendered(kind, source) for kind, source in cells))


def _exercise(name: str) -> Iterator[tuple[str, str]]:
    # Late: a page's Python imports this package, and needs the exercises in lessons alone.
    from toolrt.teaching.lab import SHEET

    one = SHEET[name]
    yield "markdown", f"## Exercise: {one.title}\n\n{one.task}"
    graded = f'SHEET["{name}"].grade(answer)'
    yield "code", f"from toolrt.teaching.lab import SHEET\n\n\n{one.template}\n\n\n{graded}"


def _rendered(kind: str, source: str) -> str:
    if kind == "code":
        return f'<pre class="cell">{html.escape(source)}</pre>'
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        raise MissingExtra("the lessons of a playground are written in Markdown, and reading it", "cli") from None
    rendered: str = MarkdownIt("commonmark").enable("table").render(_LINK.sub(_link, source))
    return rendered


def _link(found: re.Match[str]) -> str:
    """Lead to another lesson; what is no part of the site is named only."""
    number = found[2][:2]
    return f"[{found[1]}](lesson-{number}.html)" if found[2].endswith(".ipynb") and number in _LESSONS else found[1]
