"""Rows as a picture."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from toolrt import view
from toolrt.errors import DefinitionRefused

_SVG = "{http://www.w3.org/2000/svg}"

_TRIES = [
    {"policy": name, "schedules": number, "gave_up": number == 100}
    for name, numbers in (("walk", (1, 2, 9, 100)), ("PCT", (2, 2, 2)))
    for number in numbers
]
_GROWTH = [
    {"calls": calls, "what": what, "number": number}
    for calls, pair in ((1, (1, 1)), (2, (6, 4)), (3, (90, 2)), (4, (2520, None)))
    for what, number in zip(("schedules", "classes"), pair, strict=True)
]


def _read(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)


def _titles(picture: str, kind: str) -> list[str]:
    """The titles of the marks whose class begins so."""
    found = []
    for path in _read(picture).iter(f"{_SVG}path"):
        title = path.find(f"{_SVG}title")
        if title is not None and re.fullmatch(kind, path.get("class", "")):
            found.append(str(title.text))
    return found


def _texts(picture: str) -> list[str]:
    return [str(text.text) for text in _read(picture).iter(f"{_SVG}text")]


def _heights(picture: str) -> list[float]:
    return [float(place) for place in re.findall(r'class="d c\d" transform="translate\(\S+ (\S+)\)"', picture)]


def test_texts_have_a_place_each_and_a_bar_at_the_median() -> None:
    """Each row is a mark that says what it is; a try that gave up is hollow."""
    picture = view.plot(_TRIES, x="policy", y="schedules", hollow="gave_up", log="y", title="Until it fails")
    assert _titles(picture, "d c0") == ["walk, 1", "walk, 2", "walk, 9", "PCT, 2", "PCT, 2", "PCT, 2"]
    assert _titles(picture, "h d c0") == ["walk, at least 100"]
    assert _titles(picture, "median") == ["walk: median 5.5", "PCT: median 2"]
    gave_up = view.plot(_TRIES[2:], x="policy", y="schedules", hollow="gave_up")
    assert _titles(gave_up, "median") == ["walk: median 54.5", "PCT: median 2"]
    gave_up = view.plot(_TRIES[3:], x="policy", y="schedules", hollow="gave_up")
    assert _titles(gave_up, "median") == ["walk: median ≥ 100", "PCT: median 2"]
    assert {"Until it fails", "walk", "PCT", "schedules", "1", "10", "100"} <= set(_texts(picture))


def test_marks_of_one_height_do_not_cover_each_other() -> None:
    """They stand side by side, within the place of their name, however many there are."""
    for count in (3, 90):
        picture = view.plot([{"x": "a", "y": 1}] * count + [{"x": "b", "y": 2}], x="x", y="y")
        places = [float(place) for place in re.findall(r'class="d c0" transform="translate\((\S+) \S+\)"', picture)]
        assert len(set(places)) == count + 1
        assert max(places[:-1]) < places[-1]


def test_series_have_lines_marks_and_names() -> None:
    """Lines go from left to right; each series has a shape of its own and its name; what has no number is counted."""
    picture = view.plot(_GROWTH[::-1], x="calls", y="number", by="what", line=True, log="y")
    root = _read(picture)
    lines = [path.get("d", "") for path in root.iter(f"{_SVG}path") if path.get("class", "").startswith("l ")]
    assert len(lines) == 2
    for line in lines:
        places = [float(point.split()[0]) for point in line[1:].split("L")]
        assert places == sorted(places)
        assert len(set(places)) == len(places) > 2
    marks = [path for path in root.iter(f"{_SVG}path") if path.find(f"{_SVG}title") is not None]
    assert len({path.get("d") for path in marks}) == len({path.get("class") for path in marks}) == 2
    assert {"schedules", "classes", "rows without a number, which are not drawn: 1"} <= set(_texts(picture))


@pytest.mark.parametrize("log", ["", "y"])
def test_more_is_higher_and_all_is_inside(log: str) -> None:
    """The order of heights is that of numbers, from the lower edge of the drawing to the upper."""
    numbers = [1, 3, 8, 40, 999, 12_345_678]
    picture = view.plot([{"x": number, "y": number} for number in numbers], x="x", y="y", log=log)
    heights = _heights(picture)
    assert heights == sorted(heights, reverse=True)
    assert len(set(heights)) == len(numbers) or not log
    assert all(46 <= height <= 342 for height in heights)


@pytest.mark.parametrize("values", [[0], [5, 5], [0, 0.001], [-3, 2], [1e-9, 1e12], [7]])
def test_any_finite_numbers_have_axes(values: list[float]) -> None:
    """One value, equal ones, tiny, negative and huge ones."""
    picture = view.plot([{"x": value, "y": value} for value in values], x="x", y="y")
    _read(picture)
    assert all(46 <= height <= 342 for height in _heights(picture))
    if min(values) > 0:
        _read(view.plot([{"x": value, "y": value} for value in values], x="x", y="y", log="xy"))


def test_same_rows_give_the_same_bytes_and_a_picture_in_a_notebook() -> None:
    """It is an SVG like the others, with a label for screen readers."""
    one, two = (view.plot(iter(_GROWTH), x="calls", y="number", by="what", title="Growth") for _ in range(2))
    assert one == two
    assert one._repr_html_().startswith('<img alt="Growth: number against calls, 7 marks"')


def test_hostile_text_is_text() -> None:
    """Names and titles cannot end the element they stand in."""
    hostile = '"><script>alert(1)</script>'
    rows = [{hostile: hostile, "y": 1, "by": hostile}]
    picture = view.plot(rows, x=hostile, y="y", by="by", title=hostile, y_title=hostile)
    assert list(_read(picture).iter(f"{_SVG}script")) == []
    assert "<script" not in picture


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ([{"x": 1}], {}, "row 0: expected a row with the column 'y'"),
        ([], {}, "1 to 5,000 rows"),
        ([{"x": 1, "y": None}], {}, "1 to 5,000 rows"),
        ([{"x": 1, "y": "2"}], {}, "column 'y': expected finite numbers"),
        ([{"x": 1, "y": float("nan")}], {}, "finite"),
        ([{"x": 1, "y": True}], {}, "finite"),
        ([{"x": 1, "y": 0}], {"log": "y"}, "above 0"),
        ([{"x": 1, "y": 1}, {"x": "b", "y": 1}], {}, "column 'x': expected finite numbers"),
        ([{"x": 1, "y": 1}], {"log": "z"}, "plot\\(log\\)"),
        ([{"x": n, "y": n} for n in range(7)], {"by": "x"}, "at most 6 series"),
        ([3], {}, "a row with the column 'x'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(rows: list[Any], options: dict[str, Any], said: str) -> None:
    """The error names the row or the column, and what it would take."""
    with pytest.raises(DefinitionRefused, match=said):
        view.plot(rows, x="x", y="y", **options)
