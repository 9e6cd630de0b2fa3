"""A timeline as an SVG picture: a row for each call, or a column for each task.

Rules.  The picture is the same bytes for the same trace.  It follows the reader's dark or light theme, uses the colours
of Okabe and Ito, and says nothing by colour alone; each shape has a title that a screen reader reads.  Text is escaped.

Limits.  A picture has at most a thousand rows; it says how many more there are.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import islice

from toolrt.events import CallSubmitted
from toolrt.trace import Trace, stable_text
from toolrt.view._calls import PHASES, DrawnBatch, DrawnCall, batches_of
from toolrt.view._chart import By, CallGroup, Ruler, Scale, checked_by, direct_waits, groups_of, label_of
from toolrt.view._columns import column_of, columns_of, preempts, titles_of
from toolrt.view._page import asset
from toolrt.view._short import one_line
from toolrt.view._source import HasTrace, trace_of
from toolrt.view._words import steps_told, told

_MOST_ROWS = 1_000
_ROW = 22
_LABEL = 250
_BARS = 620
_MARGIN = 110
#: How wide a letter is, about.
_LETTER = 7.0
_COLUMN = 176
_GAP = 18


class Svg(str):
    """An SVG document: a text, and the picture itself where it is the value of a notebook's cell."""

    #: What a screen reader calls it.
    label: str

    def __new__(cls, text: str, label: str) -> Svg:
        made = super().__new__(cls, text)
        made.label = label
        return made

    def _repr_html_(self) -> str:
        # As an image, so that its style does not reach the page around it.
        data = base64.b64encode(self.encode()).decode("ascii")
        return f'<img alt="{escape(self.label, quote=True)}" src="data:image/svg+xml;base64,{data}">'


def svg(source: Trace | HasTrace, *, by: By | None = None, scale: Scale = "order", title: str = "Timeline") -> Svg:
    """Draw a timeline as an SVG document.

    Args:
        source: an execution, or a trace.
        by: "calls": a row for each call; "tasks": a column for each task, with its races and what woke it.  None:
            calls where there are any.
        scale: for calls, whether a length is a number of events ("order") or of seconds ("time").
        title: what a screen reader calls it.

    Returns:
        The document; the same bytes for the same trace.  In a notebook it is shown as a picture.

    Raises:
        DefinitionRefused: `source` has no trace, or an argument is not what it must be.

    Checkpoint: never.
    """
    trace = trace_of(source, "svg(source)")
    has_calls = bool(trace.of_kind(CallSubmitted))
    drawn = _calls(Ruler(trace, _BARS, scale), trace) if checked_by(by, trace, has_calls) == "calls" else _tasks(trace)
    return _picture(drawn, title)


def timelines(traces: Sequence[Trace], title: str) -> list[Svg]:
    """Draw each of `traces`, those with calls on one scale: a second is as long in every picture."""
    longest = max((trace.events[-1].time - trace.events[0].time for trace in traces if trace.events), default=0.0)
    return [
        _picture(_calls(Ruler(trace, _BARS, "time", longest), trace), title)
        if trace.of_kind(CallSubmitted)
        else _picture(_tasks(trace), title)
        for trace in traces
    ]


def _picture(drawn: list[str], title: str) -> Svg:
    width, height, *lines = drawn
    return document(width, height, one_line(title, 200), "timeline.css", lines)


def document(width: int | str, height: int | str, label: str, style: str, lines: Iterable[str]) -> Svg:
    """Give a picture of these lines; `style` is a file of this package."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(label, quote=True)}">'
    )
    paper = f'<rect class="p" width="{width}" height="{height}"/>'
    css = asset(style).removesuffix("\n")
    whole = [head, f"<title>{escape(label)}</title>", f"<style>{css}</style>", paper, *lines, "</svg>", ""]
    return Svg("\n".join(whole), label)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _text(x: float, y: float, text: str, kind: str = "t") -> str:
    return f'<text class="{kind}" x="{_number(x)}" y="{_number(y)}">{escape(one_line(text, 120))}</text>'


# ---------------------------------------------------------------------- calls


def _calls(ruler: Ruler, trace: Trace) -> list[str]:
    lines: list[str] = []
    row = 0
    left_out = 0
    rows: dict[tuple[str, int], int] = {}
    batches = batches_of(trace)
    for batch in batches:
        lines += [_text(6, _middle(row) + 4, f"{batch.label}: {batch.policy}", "t b")]
        lines += [_text(_LABEL, _middle(row) + 4, ruler.ends[0], "t s")]
        lines += [_text(_LABEL + _BARS, _middle(row) + 4, ruler.ends[1], "t s")]
        row += 1
        for group in groups_of(batch):
            lines += _group(group, row, ruler, len(trace.events) - 1)
            row += 1
            for call in group.calls:
                if row > _MOST_ROWS:
                    left_out += 1
                    continue
                rows[batch.batch, call.index] = row
                lines += _call(call, row, ruler)
                row += 1
    for batch in batches:
        lines += _waits(batch, rows, ruler)
    if left_out:
        lines.append(_text(6, _middle(row) + 4, f"{left_out:,} more calls are not shown", "t s"))
        row += 1
    return [str(_LABEL + _BARS + _MARGIN), str(row * _ROW + 8), *lines]


def _middle(row: int) -> float:
    return 4 + (row + 0.5) * _ROW


def _group(group: CallGroup, row: int, ruler: Ruler, last: int) -> Iterator[str]:
    y = _middle(row)
    yield f'<path class="line" d="M0 {_number(y - _ROW / 2)}H{_LABEL + _BARS + _MARGIN}"/>'
    yield _text(6, y + 4, group.label, "t b")
    if group.lane is not None:
        start = _LABEL + ruler.at(group.lane.started)
        end = _LABEL + ruler.at(last if group.lane.merged is None else group.lane.merged)
        yield f'<path class="extent" d="M{_number(start)} {_number(y + 5)}V{_number(y)}H{_number(end)}"/>'
        if group.lane.merged is not None:
            x = _number(end)
            yield f'<path class="merge" d="M{x} {_number(y - 5)}l5 5l-5 5l-5 -5z"><title>merged</title></path>'


def _call(call: DrawnCall, row: int, ruler: Ruler) -> Iterator[str]:
    y = _middle(row)
    yield _text(18, y + 4, label_of(call, 34))
    end = _LABEL + ruler.at(call.submitted)
    for span in call.spans:
        start, end = _LABEL + ruler.at(span.start), _LABEL + ruler.at(span.end)
        title = f"<title>{escape(label_of(call))} {PHASES[span.phase]}: events {span.start} to {span.end}</title>"
        size = {"runs": 14, "ends": 14, "kept": 7}.get(span.phase)
        if size is None:
            yield f'<path class="{span.phase}" d="M{_number(start)} {_number(y)}H{_number(end)}">{title}</path>'
        else:
            x, width, top = _number(start), _number(max(2, end - start)), _number(y - size / 2)
            yield f'<rect class="{span.phase}" x="{x}" y="{top}" width="{width}" height="{size}" rx="2">{title}</rect>'
    for seq, _ in call.progress:
        yield f'<path class="progress" d="M{_number(_LABEL + ruler.at(seq))} {_number(y - 7)}v14"/>'
    # What it gave stands behind its outcome, as far as there is room.
    told, room = _ended(call), int((_LABEL + _BARS + _MARGIN - end - 5) / _LETTER)
    yield _text(end + 5, y + 4, one_line(told, max(room, 9)), "t" if call.outcome == "ok" else "t b")


def _ended(call: DrawnCall) -> str:
    gave = call.content if call.error is None else call.error
    if call.outcome is None or gave is None:
        return call.outcome or "no result"
    return f"{call.outcome}: {gave if isinstance(gave, str) else stable_text(gave)}"


def _waits(batch: DrawnBatch, rows: dict[tuple[str, int], int], ruler: Ruler) -> Iterator[str]:
    for _, call in sorted(batch.calls.items()):
        end = next((span.end for span in call.spans if span.phase == "tickets"), None)
        mine = rows.get((batch.batch, call.index))
        if end is None or mine is None:
            continue
        for index in direct_waits(call, batch):
            other = batch.calls[index]
            if other.ended is not None and (batch.batch, index) in rows:
                start, y0 = _LABEL + ruler.at(other.ended), _middle(rows[batch.batch, index])
                x, y = _LABEL + ruler.at(end), _middle(mine)
                yield (
                    f'<path class="wait" d="M{_number(start)} {_number(y0)}C{_number(start + 14)} {_number(y0)} '
                    f'{_number(x - 14)} {_number(y)} {_number(x)} {_number(y)}"/>'
                )


# ---------------------------------------------------------------------- tasks


def _tasks(trace: Trace) -> list[str]:
    steps = trace.steps[:_MOST_ROWS]
    events = () if trace.steps else trace.events[:_MOST_ROWS]
    columns = columns_of([step.task for step in steps] + [event.task for event in events])
    place = {column: index for index, column in enumerate(columns)}
    lines = [
        _text(56 + index * _COLUMN, _middle(0) + 4, title, "t b")
        for index, title in enumerate(titles_of(columns, trace))
    ]
    for step, done in islice(steps_told(trace), _MOST_ROWS):
        lines += _cell(step.index + 1, place[column_of(step.task)], done, preempts(trace.steps, step.index))
    for event in events:
        lines += _cell(event.seq + 1, place[column_of(event.task)], told(event), False)
    if steps:
        lines += _arrows(trace, [place[column_of(step.task)] for step in steps])
    rows = len(steps) + len(events) + 1
    left_out = len(trace.steps or trace.events) - rows + 1
    if left_out > 0:
        lines.append(_text(6, _middle(rows) + 4, f"{left_out:,} more are not shown", "t s"))
        rows += 1
    return [str(56 + max(1, len(columns)) * _COLUMN), str(rows * _ROW + 8), *lines]


def _cell(row: int, column: int, done: str, preempting: bool) -> Iterator[str]:
    x, y = 52 + column * _COLUMN, _middle(row)
    kind = "cell preempts" if preempting else "cell"
    size = f'width="{_COLUMN - _GAP}" height="{_ROW - 3}"'
    yield _text(6, y + 4, str(row - 1), "t s")
    title = f"<title>{escape(one_line(done, 400))}</title>"
    yield f'<rect class="{kind}" x="{x}" y="{_number(y - 9.5)}" {size} rx="2">{title}</rect>'
    yield _text(x + 6, y + 4, one_line(f"{'> ' if preempting else ''}{done}", 25))


def _arrows(trace: Trace, places: list[int]) -> Iterator[str]:
    is_small = len({step.task for step in trace.steps}) * len(trace.steps) <= 1_000_000
    for edge in trace.direct_edges if is_small else ():
        if edge.after >= len(places):
            return
        one, other = places[edge.before], places[edge.after]
        right = other > one
        x0 = 52 + one * _COLUMN + (_COLUMN - _GAP if right else 0)
        x1 = 52 + other * _COLUMN + (0 if right else _COLUMN - _GAP)
        y0, y1 = _middle(edge.before + 1) + 3, _middle(edge.after + 1) - 3
        bend = 12 if right else -12
        kind = "edge wakes" if edge.wakes else "race"
        title = "woke or began it" if edge.wakes else "a race: it could have come later"
        yield (
            f'<path class="{kind}" d="M{x0} {_number(y0)}C{x0 + bend} {_number(y0)} {x1 - bend} {_number(y1)} {x1} '
            f'{_number(y1)}"><title>{title}</title></path>'
        )
        yield f'<circle class="tip" cx="{x1}" cy="{_number(y1)}" r="2.5"/>'
