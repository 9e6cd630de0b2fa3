"""Draws a history as text: one line for each task, each operation an interval, time to the right.

Rules.  Events stand in the order of their positions; the space between two means nothing.  An open end is an operation
that was cancelled, is stuck, or has not returned.  What comes behind the prefix that is shown is left out, and so are
the first operations of a history that is too wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from toolrt.sim._paths import key_of_path
from toolrt.sim.judging._history import Operation, OperationEnd

# Columns of a line, and operations that are drawn.
_WIDTH, _MOST = 118, 30


def draw(operations: Sequence[Operation], end: float = inf) -> list[str]:
    """Give the lines that show `operations` up to the position `end`, which is marked."""
    shown = sorted((one for one in operations if one.called <= end), key=lambda one: one.called)
    # What returned first goes first; a line has no place for more than so many.
    by_return = sorted(shown, key=lambda one: inf if one.returned is None else one.returned)
    gone = {id(one) for one in by_return[:-_MOST]}
    lines = _lines([one for one in shown if id(one) not in gone], end)
    for one in by_return[-_MOST:-2]:
        if max(map(len, lines)) <= _WIDTH:
            break
        gone.add(id(one))
        lines = _lines([one for one in shown if id(one) not in gone], end)
    later = sum(one.called > end for one in operations)
    notes = [f"{len(gone)} earlier operations are not shown" if gone else ""]
    notes += [f"{later} later operations are not shown" if later else ""]
    return [*lines, *(f"({note})" for note in notes if note)]


def _lines(shown: Sequence[Operation], end: float) -> list[str]:
    tasks = sorted({one.task for one in shown}, key=_task_order)
    margin = max((len(task) for task in tasks), default=0) + 2
    texts = {}
    for one in shown:
        has_returned = one.returned is not None and one.returned <= end
        has_ended = has_returned or one.ended in (OperationEnd.CANCELLED, OperationEnd.STUCK)
        texts[id(one)] = f" {one} " if has_ended else f" {one.call} "
    # Each event goes as far left as the texts before it allow.
    events = [(float(one.called), one, False) for one in shown]
    events += [(float(one.returned), one, True) for one in shown if one.returned is not None and one.returned <= end]
    places: dict[tuple[int, bool], int] = {}
    free = dict.fromkeys(tasks, margin)
    column = margin - 1
    for _, one, is_return in sorted(events, key=lambda event: event[0]):
        column += 1
        if is_return:
            column = max(column, places[id(one), False] + len(texts[id(one)]) + 1)
        else:
            column = max(column, free[one.task])
        places[id(one), is_return] = column
        free[one.task] = max(free[one.task], column + len(texts[id(one)]) + 2)
    right = max([column, *free.values()]) + 3
    rows = {task: [" "] * right for task in tasks}
    for task in tasks:
        rows[task][: len(task)] = task
    marked = None
    for one in shown:
        row = rows[one.task]
        start = places[id(one), False]
        stop = places.get((id(one), True))
        last = right if stop is None else stop
        row[start:last] = "|" + texts[id(one)].center(last - start - 1, "-")
        if stop is not None:
            row[stop] = "|"
            if one.returned == end:
                marked = stop
        else:
            row[right - 3 : right] = "..."
    lines = ["".join(rows[task]).rstrip() for task in tasks]
    if marked is not None:
        text = "up to here some order explains it, with this return none"
        arrow = f"{' ' * marked}^ {text}"
        if marked > len(text) + margin:
            arrow = f"{' ' * (marked - len(text) - 1)}{text} ^"
        lines.append(arrow)
    return lines


def _task_order(task: str) -> tuple[int, tuple[int, ...], str]:
    try:
        return 0, key_of_path(task), task
    except ValueError:
        return 1, (), task
