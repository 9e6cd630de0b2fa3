"""What the documents say of tables and exercises is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from toolrt import view
from toolrt.teaching.lab import SHEET

_PAGES = Path(__file__).parents[2] / "docs" / "how-to"


@pytest.mark.parametrize("name", list(view.COLUMNS))
def test_page_of_tables_tells_of_every_column(name: str) -> None:
    """Each table has its own, in order, with their kinds and what they say."""
    section = _PAGES.joinpath("tables.md").read_text(encoding="utf-8").split(f"\n### {name}\n")[1].split("\n### ")[0]
    shown = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", section, re.MULTILINE)
    columns = view.COLUMNS[name].items()
    assert shown == [(column, of.kind.replace("?", " or None"), of.meaning) for column, of in columns]


def test_page_of_exercises_lists_the_sheet() -> None:
    """Each exercise with its week and its title."""
    text = _PAGES.joinpath("exercises.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| (\d+) \| `(\w+)` \| (.+) \|$", text, re.MULTILINE)
    assert shown == [(str(exercise.week), exercise.name, exercise.title) for exercise in SHEET.values()]
