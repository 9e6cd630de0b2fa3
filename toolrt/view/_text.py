"""A timeline as plain text: a row for each call, or a column for each task.

Limits.  Columns that do not fit in the width become a list.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from toolrt.events import CallSubmitted
from toolrt.trace import Trace
from toolrt.view._calls import DrawnCall, batches_of
from toolrt.view._chart import By, Ruler, Scale, checked_by, direct_waits, groups_of, label_of
from toolrt.view._columns import column_of, columns_of, preempts, titles_of
from toolrt.view._short import one_line
from toolrt.view._source import HasTrace, trace_of
from toolrt.view._words import steps_told, told

#: How each span of a call is drawn.
_MARKS = {"lane": ".", "tickets": "~", "approval": "?", "slot": ":", "soon": ".", "runs": "#", "ends": "-", "kept": "="}
_LEGEND = ". waits for its lane, ~ for earlier calls, ? for approval, : for a free place; # runs; = waits to be read"


_NARROWEST = 40


def text(source: Trace | HasTrace, *, by: By | None = None, scale: Scale = "order", width: int = 100) -> str:
    """Draw a timeline with letters.

    Args:
        source: an execution, or a trace.
        by: "calls": a row for each call; "tasks": a column for each task.  None: calls where there are any.
        scale: for calls, whether a letter is a number of events ("order") or of seconds ("time").
        width: characters in a line, 40 or more; fewer count as 40.

    Returns:
        Lines, each ended by a line break.  The same trace gives the same text.

    Raises:
        DefinitionRefused: `source` has no trace, or an argument is not what it must be.

    Checkpoint: never.

    Example:
        >>> import trio
        >>> from toolrt import sim, view
        >>> async def program():
        ...     cell = sim.Cell(0, name="x")
        ...     cell.set(1)
        >>> print(view.text(sim.run(program)))
        step  main
           0  writes x
        <BLANKLINE>
    """
    trace = trace_of(source, "text(source)")
    width = max(_NARROWEST, width)
    has_calls = bool(trace.of_kind(CallSubmitted))
    lines = _by_calls(trace, scale, width) if checked_by(by, trace, has_calls) == "calls" else _by_tasks(trace, width)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _by_calls(trace: Trace, scale: Scale, width: int) -> Iterator[str]:
    label = min(34, max(16, width // 3))
    line = max(8, width - label - 16)
    ruler = Ruler(trace, line - 1, scale)
    first, last = ruler.ends
    for batch in batches_of(trace):
        limit = "" if batch.limit is None else f", at most {batch.limit} at once"
        yield one_line(f"{batch.label}: {batch.policy}{limit}", width)
        yield " " * label + (first + last.rjust(line - len(first)) if line > 20 else f"{first} to {last}")
        for group in groups_of(batch):
            yield group.label
            for call in group.calls:
                waits = ",".join(map(str, direct_waits(call, batch)))
                after = f" after {waits}" if waits else ""
                yield f"{label_of(call, label - 1):{label}}{_bar(call, ruler, line)} {call.outcome or '?'}{after}"
        yield ""
    yield from wrap(_LEGEND, width)


def _bar(call: DrawnCall, ruler: Ruler, length: int) -> str:
    line = [" "] * length
    for span in call.spans:
        start, end = round(ruler.at(span.start)), round(ruler.at(span.end))
        for place in range(start, max(start + (span.phase == "runs"), end)):
            line[place] = _MARKS[span.phase]
    for seq, _ in call.progress:
        line[round(ruler.at(seq))] = "|"
    return "".join(line)


def _by_tasks(trace: Trace, width: int) -> Iterator[str]:
    rows = list(_rows(trace))
    columns = columns_of(task for _, task, _, _ in rows)
    word = "step" if trace.steps else "event"
    margin = max(len(word), len(str(len(rows) - 1)))
    with_time = any(time not in ("0", "0.0") for _, _, time, _ in rows)
    clock = max([4, *(len(time) for _, _, time, _ in rows)]) if with_time else 0
    titles = dict(zip(columns, titles_of(columns, trace), strict=True))
    cells: dict[str, int] = {column: len(title) for column, title in titles.items()}
    for _, task, _, done in rows:
        cells[task] = max(cells[task], len(done))

    def line(number: str, time: str, filled: dict[str, str]) -> str:
        parts = [number.rjust(margin)] + ([time.rjust(clock)] if with_time else [])
        return "  ".join(parts + [filled.get(column, "").ljust(cells[column]) for column in columns])

    if margin + (clock + 2 if with_time else 0) + sum(2 + size for size in cells.values()) <= width:
        yield line(word, "time", titles)
        for number, task, time, done in rows:
            yield line(str(number), time, {task: done})
    else:
        for number, task, time, done in rows:
            head = "  ".join([str(number).rjust(margin)] + ([time.rjust(clock)] if with_time else []) + [task])
            yield one_line(f"{head}  {done}", width)
    if any(done.startswith("> ") for _, _, _, done in rows):
        yield "(> marks a preemption: the task before could have gone on)"


def _rows(trace: Trace) -> Iterator[tuple[int, str, str, str]]:
    """Give number, column, time and what was done, for each step, or for each event where there are no steps."""
    if not trace.steps:
        for event in trace.events:
            yield event.seq, one_line(column_of(event.task)), f"{event.time:.6g}", told(event)
        return
    for step, done in steps_told(trace):
        mark = "> " if preempts(trace.steps, step.index) else ""
        yield step.index, one_line(column_of(step.task)), f"{step.time:g}", one_line(f"{mark}{done}", 48)
