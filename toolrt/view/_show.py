"""`show` and `play`: pages, for a notebook and for a file."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from toolrt.errors import DefinitionRefused
from toolrt.trace import Trace
from toolrt.view._page import bar_of, gallery_of, page_of, play_of
from toolrt.view._short import one_line
from toolrt.view._source import HasTrace, check_names, trace_of


class Page:
    """One self-contained HTML page.  A notebook shows it as the value of a cell; `save` writes it to a file."""

    def __init__(self, draw: Callable[[], str], title: str, about: str, height: int = 640) -> None:
        self._draw = draw
        self._title = title
        self._about = about
        #: Of its frame in a notebook, in pixels.
        self._height = height

    @cached_property
    def html(self) -> str:
        """The whole page; it loads nothing, and nothing that a tool or a model wrote can run in it."""
        return self._draw()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to `path`, in UTF-8, and give the path.

        Raises:
            OSError: it cannot be written.
        """
        target = Path(path)
        target.write_text(self.html, encoding="utf-8", newline="\n")
        return target

    def _repr_html_(self) -> str:
        # In a frame of its own, without the notebook's origin: the page's style stays in, and nothing gets out.
        return (
            f'<iframe title="{html.escape(one_line(self._title, 200), quote=True)}" sandbox="allow-scripts" '
            f'style="width:100%;height:{self._height}px;border:1px solid #8888" '
            f'srcdoc="{html.escape(self.html, quote=True)}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<Page {self._title!r}: {self._about}>"


def show(
    source: Trace | HasTrace,
    other: Trace | HasTrace | None = None,
    *,
    names: Sequence[str] | None = None,
    title: str | None = None,
    about: Sequence[tuple[str, str]] | None = None,
) -> Page:
    """Give a page that shows an execution: lanes, calls and steps over time, to be stepped through.

    With `other`, the two stand side by side, their first difference is marked, and so is the pair of accesses that
    came the other way round.

    Args:
        source: an execution, a trace, or a failure as it was found.
        other: another execution or trace of the same program, or None.
        names: what they are called, one for each; "one" and "other" when None.
        title: the page's heading.  None: what is wrong, of what the page says above the steps, else "Timeline".
        about: what the page says above the steps, as pairs of a name and a text: first the verdict ("FAIL", what is
            wrong), then, for example, the program, the schedule and how to run it again.  None: what `source` says of
            itself (`toolrt.sim.Failure.about`), if it does.

    Returns:
        The page; nothing is written yet.

    Raises:
        DefinitionRefused: one of the two is no trace and has none, there are not as many names, or `about` is not
            pairs of texts.

    Checkpoint: never.

    Example:
        >>> import trio
        >>> from toolrt import sim, view
        >>> async def program():
        ...     await trio.sleep(1)
        >>> page = view.show(sim.run(program))
        >>> page.html.startswith("<!doctype html>")
        True
    """
    traces = [trace_of(source, "show(source)")]
    if other is not None:
        traces.append(trace_of(other, "show(other)"))
    if names is None:
        names = ("one", "other")[: len(traces)]
    check_names("show(names)", names, len(traces))
    said = getattr(source, "about", ()) if about is None else about
    bar = bar_of(said, "show(about)")
    if title is None:
        title = one_line(next(iter(said[0][1].splitlines()), "Timeline") if said else "Timeline", 120)
    return Page(lambda: page_of(traces, names, title, bar), title, ", ".join(map(repr, traces)))


class HasTree(Protocol):
    """A game: whatever gives all there is to play, as `toolrt.teaching.play.Game` does."""

    def tree(self) -> Mapping[str, Any]:
        """The schedules, what they have in common told once."""


def play(game: HasTree) -> Page:
    """Give a page on which a person is the scheduler of a small program, and tries to make it go wrong.

    The page runs nothing: it has the schedules of the program, so a hint is never wrong, and the proof that there is
    nothing to find is all of them.  Of a program with too many it has a part, and says so.

    Args:
        game: a `toolrt.teaching.play.Game`.

    Returns:
        The page; nothing is written yet.

    Raises:
        DefinitionRefused: `game` is no game.

    Checkpoint: never.

    Example:
        >>> from toolrt import view
        >>> from toolrt.teaching.litmus import LITMUS
        >>> from toolrt.teaching.play import Game
        >>> view.play(Game(LITMUS["lost_update_2x1"]))
        <Page 'lost_update_2x1': 6 schedules>
    """
    if not callable(getattr(game, "tree", None)):
        raise DefinitionRefused("play(game)", "a litmus Game", game)
    tree = game.tree()
    title = str(tree["name"])
    return Page(lambda: play_of(tree, title), title, f"{len(tree['ends']):,} schedules")


def gallery(document: Mapping[str, Any]) -> Page:
    """Give the index of a gallery of pages that `play` makes: `toolrt.teaching.play.write_site` writes them together.

    Args:
        document: the ``title``, and the ``themes``: of each its ``name``, its ``lesson`` and its ``programs``.

    Returns:
        The page; nothing is written yet.

    Raises:
        DefinitionRefused: `document` has no title or no themes.

    Checkpoint: never.
    """
    if not isinstance(document, Mapping) or not {"title", "themes"} <= document.keys():
        raise DefinitionRefused("gallery(document)", "a title and themes", document)
    title, count = str(document["title"]), sum(len(theme["programs"]) for theme in document["themes"])
    return Page(lambda: gallery_of(document, title), title, f"{count:,} programs")
