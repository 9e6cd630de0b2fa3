"""Rows as a picture: dots, or lines, of one column against another.

Rules.  The picture is the same bytes for the same rows.  It follows the reader's dark or light theme, uses the colours
of Okabe and Ito, and tells series apart by the shape of their marks too; each mark has a title that a screen reader
reads.  Text is escaped.  No row is left out without being counted below the picture.

Limits.  Dots and lines, up to six series and 5,000 marks: what a class needs.  For more there are the rows themselves.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.view._short import one_line
from toolrt.view._svg import Svg, document

_WIDTH, _HEIGHT = 720, 400
_LEFT, _TOP, _BOTTOM, _RIGHT = 78, 46, 58, 24
_LABELS = 160
_MOST_MARKS = 5_000

_SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
    "M-3.6 -3.6h7.2v7.2h-7.2z",
    "M0 -4.6l4.6 8.2h-9.2z",
    "M0 -5l5 5l-5 5l-5 -5z",
    "M0 4.6l4.6 -8.2h-9.2z",
    "M-1.3 -4.6h2.6v3.3h3.3v2.6h-3.3v3.3h-2.6v-3.3h-3.3v-2.6h3.3z",
)


@attrs.frozen
class _Mark:
    """One row as it is drawn."""

    x: Any
    y: float
    series: int
    hollow: bool


def plot(
    rows: Iterable[Mapping[str, Any]],
    *,
    x: str,
    y: str,
    by: str | None = None,
    hollow: str | None = None,
    line: bool = False,
    log: str = "",
    title: str = "",
    x_title: str | None = None,
    y_title: str | None = None,
) -> Svg:
    """Draw one column of rows against another.

    Args:
        rows: dicts, such as those of `execution_rows` and of toolrt.teaching.lab's experiments.
        x: a column of numbers, or of texts: each text then has a place of its own, with a bar at the median.
        y: a column of numbers; rows that have None there are counted below the picture.
        by: a column whose values are series, at most six; None: one series.
        hollow: a column; where it is true the mark is hollow ("at least so many").
        line: whether the marks of a series are joined, in the order of x.
        log: "x", "y" or "xy": the axes on which a step is a factor; "": none.
        title: the picture's heading, and what a screen reader calls it.
        x_title: what stands at the axis; None: the column's name.
        y_title: the same.

    Returns:
        The document; the same bytes for the same rows.  In a notebook it is shown as a picture.

    Raises:
        DefinitionRefused: a row has no such column, a value cannot be drawn there, there are no rows, or too many.

    Checkpoint: never.

    Example:
        >>> from toolrt import view
        >>> rows = [{"calls": 2, "classes": 2}, {"calls": 3, "classes": 6}, {"calls": 4, "classes": 24}]
        >>> picture = view.plot(rows, x="calls", y="classes", line=True, log="y", title="Classes")
        >>> picture.startswith("<svg ")
        True
    """
    if log not in ("", "x", "y", "xy"):
        raise DefinitionRefused("plot(log)", '"", "x", "y" or "xy"', log)
    rows = list(rows)
    for column in filter(None, (x, y, by, hollow)):
        for place, row in enumerate(rows):
            if not isinstance(row, Mapping) or column not in row:
                raise DefinitionRefused(f"plot, row {place}", f"a row with the column {column!r}", row)
    series = list(dict.fromkeys(str(row[by]) for row in rows)) if by is not None else [""]
    marks = [
        _Mark(row[x], row[y], 0 if by is None else series.index(str(row[by])), bool(hollow and row[hollow]))
        for row in rows
        if row[y] is not None
    ]
    if not 1 <= len(marks) <= _MOST_MARKS:
        raise DefinitionRefused("plot(rows)", f"1 to {_MOST_MARKS:,} rows with a number in {y!r}", f"{len(marks):,}")
    if len(series) > len(_SHAPES):
        raise DefinitionRefused("plot(by)", f"at most {len(_SHAPES)} series", series)
    right = _WIDTH - (_RIGHT if by is None else _LABELS)
    named = all(isinstance(mark.x, str) for mark in marks)
    across: _Bands | _Scale = (
        _Bands([mark.x for mark in marks], _LEFT, right)
        if named
        else _Scale([mark.x for mark in marks], _LEFT, right, "x" in log, x)
    )
    up = _Scale([mark.y for mark in marks], _HEIGHT - _BOTTOM, _TOP, "y" in log, y)
    lines = [
        *_axes(across, up, right, x if x_title is None else x_title, y if y_title is None else y_title),
        *(_joined(marks, across, up) if line and not named else ()),
        *_dots(marks, across, up, series),
        *(_medians(marks, across, up) if isinstance(across, _Bands) else ()),
        *(_names(marks, series, across, up, right) if by is not None else ()),
    ]
    if without := len(rows) - len(marks):
        lines.append(_text(_LEFT, _HEIGHT - 6, f"rows without a number, which are not drawn: {without:,}", "t s"))
    title = one_line(title or f"{y} against {x}", 200)
    label = f"{title}: {y} against {x}, {len(marks)} marks"
    return document(_WIDTH, _HEIGHT, label, "plot.css", [_text(_LEFT, 22, title, "t b"), *lines])


class _Scale:
    """Where a number is on a line."""

    def __init__(self, values: Sequence[Any], start: float, end: float, is_log: bool, column: str) -> None:
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise DefinitionRefused(f"plot, column {column!r}", "finite numbers", value)
            if is_log and value <= 0:
                raise DefinitionRefused(f"plot, column {column!r} on a logarithmic axis", "numbers above 0", value)
        self._start, self._end, self._is_log = start, end, is_log
        self._low: float
        self._high: float
        low, high = float(min(values)), float(max(values))
        if is_log:
            self._low, self._high = math.floor(math.log10(low)), max(math.ceil(math.log10(high)), 1)
            if self._low == self._high:
                self._high += 1
            every = max(1, math.ceil((self._high - self._low) / 8))
            self.ticks = [10.0**power for power in range(self._low, self._high + 1, every)]
            return
        whole = sorted(set(values))
        if all(isinstance(value, int) for value in values) and len(whole) <= 10 and start < end:
            self.ticks = [float(value) for value in whole]
            margin = (high - low) / 20 or 1.0
            self._low, self._high = low - margin, high + margin
            return
        low = min(0.0, low)
        step = 10.0 ** math.floor(math.log10((high - low) or 1))
        step = next(step * part for part in (0.2, 0.25, 0.5, 1, 2) if (high - low) / (step * part) <= 6)
        first, last = math.floor(low / step), math.ceil(high / step) or 1
        self.ticks = [number * step for number in range(first, last + 1)]
        self._low, self._high = first * step, last * step

    def at(self, value: float) -> float:
        """Give the place of `value`."""
        number = math.log10(value) if self._is_log else value
        return self._start + (number - self._low) / (self._high - self._low) * (self._end - self._start)

    def marks(self) -> Iterator[tuple[float, str]]:
        """Give the places of the ticks, and what stands there."""
        for tick in self.ticks:
            yield self.at(tick), f"{tick:,.12g}" if tick < 1e7 else f"{tick:.0e}".replace("e+0", "e").replace("e+", "e")


class _Bands:
    """Where a text is on a line: each has its own place."""

    def __init__(self, names: Sequence[str], start: float, end: float) -> None:
        self.names = list(dict.fromkeys(names))
        self._start = start
        #: How wide each is.
        self.width = (end - start) / len(self.names)

    def at(self, name: str) -> float:
        """Give the middle of the place of `name`."""
        return self._start + (self.names.index(name) + 0.5) * self.width

    def marks(self) -> Iterator[tuple[float, str]]:
        """Give the places, and what stands there."""
        most = max(6, int(self.width / 7))
        for name in self.names:
            yield self.at(name), one_line(name, most)


def _axes(across: _Bands | _Scale, up: _Scale, right: float, x: str, y: str) -> Iterator[str]:
    bottom = _HEIGHT - _BOTTOM
    for place, label in up.marks():
        yield f'<path class="g" d="M{_LEFT} {place:.1f}H{right:.1f}"/>'
        yield _text(_LEFT - 8, place + 4, label, "t s e")
    for place, label in across.marks():
        if isinstance(across, _Scale):
            yield f'<path class="a" d="M{place:.1f} {bottom}v4"/>'
        yield _text(place, bottom + 18, label, "t m" if isinstance(across, _Bands) else "t s m")
    yield f'<path class="a" d="M{_LEFT} {bottom}H{right:.1f}"/>'
    yield _text((_LEFT + right) / 2, bottom + 38, x, "t s m")
    turned = f'transform="rotate(-90 16 {(_TOP + bottom) / 2:.1f})"'
    yield f'<text class="t s m" x="16" y="{(_TOP + bottom) / 2:.1f}" {turned}>{escape(one_line(y, 60))}</text>'


def _dots(marks: Sequence[_Mark], across: _Bands | _Scale, up: _Scale, series: Sequence[str]) -> Iterator[str]:
    # Those of about the same height stand beside each other.
    heights = [(mark.x, round(up.at(mark.y) / 7)) for mark in marks]
    crowds, placed = Counter(heights), Counter[Any]()
    for mark, height in zip(marks, heights, strict=True):
        y = up.at(mark.y)
        shift = 0.0
        if isinstance(across, _Bands):
            apart = min(9.0, 0.9 * across.width / crowds[height])
            shift = (placed[height] - (crowds[height] - 1) / 2) * apart
            placed[height] += 1
        name = f"{series[mark.series]}: " if series[mark.series] else ""
        told = f"{name}{mark.x}, {'at least ' if mark.hollow else ''}{mark.y:,.12g}"
        kind = f"{'h ' if mark.hollow else ''}d c{mark.series}"
        yield (
            f'<path class="{kind}" transform="translate({across.at(mark.x) + shift:.1f} {y:.1f})" '
            f'd="{_SHAPES[mark.series]}"><title>{escape(one_line(told, 200))}</title></path>'
        )


def _joined(marks: Sequence[_Mark], across: Any, up: _Scale) -> Iterator[str]:
    for number in sorted({mark.series for mark in marks}):
        own = sorted((mark for mark in marks if mark.series == number), key=lambda mark: mark.x)
        points = "L".join(f"{across.at(mark.x):.1f} {up.at(mark.y):.1f}" for mark in own)
        yield f'<path class="l c{number}" d="M{points}"/>'


def _medians(marks: Sequence[_Mark], across: _Bands, up: _Scale) -> Iterator[str]:
    for name in across.names:
        own = [mark for mark in marks if mark.x == name]
        middle = statistics.median(mark.y for mark in own)
        # A median that hollow marks decide is at least that.
        at_least = "≥ " if any(mark.hollow and mark.y <= middle for mark in own) else ""
        x, y = across.at(name), up.at(middle)
        beside = sum(abs(up.at(mark.y) - y) < 8 for mark in own) * min(9.0, 0.9 * across.width / len(own)) / 2
        told = f"{at_least}{middle:,.6g}"
        title = f"<title>{escape(one_line(name))}: median {told}</title>"
        yield f'<path class="median" d="M{x - 26:.1f} {y:.1f}h52">{title}</path>'
        yield _text(x + max(30, beside + 8), y + 4, told, "t")


def _names(marks: Sequence[_Mark], series: Sequence[str], across: Any, up: _Scale, right: float) -> Iterator[str]:
    """Each series' name at its last mark, moved down where two would cover each other."""
    ends = []
    for number in range(len(series)):
        own = [mark for mark in marks if mark.series == number]
        if own:
            last = max(own, key=lambda mark: across.at(mark.x))
            ends.append((up.at(last.y), number))
    below = float(_TOP)
    for y, number in sorted(ends):
        below = max(y, below + 16)
        shape = f'<path class="d c{number}" transform="translate({right + 12:.1f} {below:.1f})" d="{_SHAPES[number]}"/>'
        yield shape
        yield _text(right + 22, below + 4, one_line(series[number], 20), "t")


def _text(x: float, y: float, text: str, kind: str = "t") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(one_line(text, 120))}</text>'
