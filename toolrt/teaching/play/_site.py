"""The gallery as a site: a page for each litmus program, and an index of them all.

Rules.  Every page holds what it shows, so a site is a directory of files that need no server.  The pages run nothing:
each has the schedules of its program, or a part of them, and says which.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from toolrt import view
from toolrt.errors import DefinitionRefused
from toolrt.teaching.litmus import THEMES, Litmus
from toolrt.teaching.litmus._litmus import LESSONS
from toolrt.teaching.play._game import Game
from toolrt.teaching.play._tree import PlayedTree

#: So many schedules of a program are on its page, unless another number is given.
MOST_ON_A_PAGE = 300

#: A player who chooses blindly finds an easy bug in one game of four, a hard one in less than one of twenty.
_EASY, _HARD = 0.25, 0.05

#: Where nothing goes wrong, to see every class is easy with so many of them, and hard with more than so many.
_FEW, _MANY = 10, 60


@attrs.frozen
class GallerySite:
    """A gallery that was written."""

    #: Its directory; ``index.html`` is where to begin.
    directory: Path
    #: How many programs have a page.
    programs: int
    #: How many bytes all pages have together.
    size: int
    #: The programs whose page has a part of the schedules, by name.
    in_part: tuple[str, ...]


def write_site(
    directory: str | os.PathLike[str],
    most: int = MOST_ON_A_PAGE,
    themes: Mapping[str, Sequence[Litmus]] = THEMES,
) -> GallerySite:
    """Write the gallery as a site that needs no server.

    Args:
        directory: where; it is made, and files of the same names are replaced.
        most: so many schedules of each program at most.  A program with more has a part of them on its page, which
            says so.
        themes: the programs by theme.

    Raises:
        DefinitionRefused: `most` is below 1, or `directory` has an ``index.html`` that is no gallery's.
        OSError: a file cannot be written.
    """
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise DefinitionRefused("write_site(most)", "a whole number, 1 or more", most)
    target = Path(directory)
    index = target / "index.html"
    if index.exists() and "toolrt.Gallery" not in index.read_text(encoding="utf-8", errors="replace"):
        raise DefinitionRefused("write_site(directory)", "a directory of its own, or an earlier gallery", str(target))
    target.mkdir(parents=True, exist_ok=True)
    programs = [program for each in themes.values() for program in each]
    entries: dict[str, dict[str, Any]] = {}
    size, in_part = 0, []
    for program, after in zip(programs, [*programs[1:], None], strict=True):
        tree = Game(program).tree(most)
        tree |= {"index": "index.html", "next": None if after is None else [after.name, f"{after.name}.html"]}
        size += view.play(PlayedTree(tree)).save(target / f"{program.name}.html").stat().st_size
        entries[program.name] = _entry(program, tree)
        if not tree["whole"]:
            in_part.append(program.name)
    document = {
        "title": "The litmus gallery",
        "themes": [
            {
                "name": theme,
                "lesson": LESSONS.get(theme, ""),
                "programs": [entries[program.name] for program in each],
            }
            for theme, each in themes.items()
        ],
    }
    size += view.gallery(document).save(index).stat().st_size
    return GallerySite(target, len(programs), size, tuple(in_part))


def _entry(program: Litmus, tree: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": program.name,
        "file": f"{program.name}.html",
        "story": program.story,
        "teaches": program.teaches,
        "difficulty": _difficulty(program, tree),
        "goes_wrong": bool(program.wrong),
        "classes": tree["classes"],
        "schedules": len(tree["ends"]),
        "stated": tree["stated"],
        "whole": tree["whole"],
        "every_class": tree["every_class"],
    }


def _difficulty(program: Litmus, tree: Mapping[str, Any]) -> str:
    if program.wrong:
        return "easy" if tree["chance"] >= _EASY else "medium" if tree["chance"] >= _HARD else "hard"
    if not tree["every_class"]:
        return "hard"
    return "easy" if tree["classes"] <= _FEW else "medium" if tree["classes"] <= _MANY else "hard"
