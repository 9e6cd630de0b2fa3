"""How a batch was partitioned, as a diagram in letters: lanes, and what came out of each.

Rules.  It has the form, and the words, of the diagram in the text on tool execution runtimes that this project grew
from: calls are partitioned; a safe lane runs concurrently and gives progress, results and queued modifiers; an
exclusive lane gives its result and changes the state directly.  Everything in it is read from the trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from textwrap import wrap

from toolrt._plain import counted
from toolrt.events import ModifierApplied
from toolrt.trace import Trace
from toolrt.view._calls import DrawnBatch, DrawnCall, batches_of
from toolrt.view._chart import CallGroup, direct_waits, groups_of, label_of
from toolrt.view._short import one_line
from toolrt.view._source import HasTrace, trace_of

#: Characters from the margin to the right-hand column, where there is room for both.
_LEFT = 38
_WIDE = 90
_NARROWEST = 40

#: The modifiers of each batch and lane in the order in which they were applied: each call, and the place among its own.
_Applied = dict[tuple[str, int], list[str]]


def lanes(source: Trace | HasTrace, *, width: int = 100) -> str:
    """Draw how the calls of each batch were partitioned into lanes, and what came of each lane.

    Args:
        source: an execution, or a trace.
        width: characters in a line, 40 or more; fewer count as 40.  From 90 on what came of a lane stands beside it,
            else below.  A name that does not fit is cut.

    Returns:
        Lines, each ended by a line break.  The same trace gives the same text.

    Raises:
        DefinitionRefused: `source` has no trace.

    Checkpoint: never.

    Example:
        >>> import toolrt
        >>> from toolrt import sim, view
        >>> @toolrt.tool(safe=True, schema=None)
        ... async def look(ctx): return "seen"
        >>> runtime = toolrt.Runtime(toolrt.Registry([look]))
        >>> async def program(): await runtime.run([toolrt.ToolCall("a", "look")])
        >>> print(view.lanes(sim.run(program)))
        tool_use blocks: 1 call of batch batch-1
          |
          v
        partition: by_claims
          |
          +-- lane 0, safe -----------------------> concurrent execution
                [0] look                              |
                                                      +-- progress updates: none
                                                      +-- final results: [0] ok
                                                      +-- queued modifiers, merged at 0 s: none
        <BLANKLINE>
    """
    trace = trace_of(source, "lanes(source)")
    width = max(_NARROWEST, width)
    applied = _applied(trace)
    drawn = [list(_batch(batch, trace, applied, width)) for batch in batches_of(trace)]
    diagrams = ("".join(f"{one_line(line.rstrip(), width)}\n" for line in lines) for lines in drawn)
    return "\n".join(diagrams) or "tool_use blocks: none\n"


def _applied(trace: Trace) -> _Applied:
    applied: _Applied = {}
    for event in trace.of_kind(ModifierApplied):
        place = f"[{event.fields['call']}].{event.fields['position']}{'' if event.fields['ok'] else ' raised'}"
        applied.setdefault((str(event.fields["batch"]), event.fields["lane"]), []).append(place)
    return applied


def _batch(batch: DrawnBatch, trace: Trace, applied: _Applied, width: int) -> Iterator[str]:
    wide = width >= _WIDE
    count = len(batch.calls)
    yield f"tool_use blocks: {counted(count, 'call')} of {batch.label}"
    yield from ("  |", "  v", f"partition: {batch.policy}")
    groups = list(groups_of(batch))
    for number, group in enumerate(groups):
        yield "  |"
        head, *calls = _left(group, wide)
        kind, *said = _right(group, trace, applied)
        yield f"  +-- {head}{kind}"
        margin = f"  {' ' if number == len(groups) - 1 else '|'}   "
        room = width - len(margin) - (_LEFT if wide else 0)
        came = [line for part in said for line in _wrapped(part, room, "        " if part is said[-1] else "  |     ")]
        if wide:
            yield from (f"{margin}{mine:{_LEFT}}{theirs}" for mine, theirs in zip_longest(calls, came, fillvalue=""))
        else:
            yield from (f"{margin}{line}" for line in (*calls, *came))


def _wrapped(line: str, room: int, indent: str) -> Iterator[str]:
    """Break a line after commas and colons only: what belongs together stays together."""
    kept = re.sub(r"(?<=[^,:]) (?=\S)", "\N{NO-BREAK SPACE}", line)
    for part in wrap(kept, room, subsequent_indent=indent):
        yield part.replace("\N{NO-BREAK SPACE}", " ")


def _left(group: CallGroup, wide: bool) -> Iterator[str]:
    """The lane, and its calls below it, each with whom it waited for."""
    if group.lane is None:
        yield "in no lane"
    else:
        name = f"lane {group.lane.index}, {'safe' if group.lane.shared else 'exclusive'} "
        yield f"{name:-<{_LEFT - 2 if wide else 19}}> "
    for call in group.calls:
        waits = ",".join(map(str, direct_waits(call, group.batch)))
        after = f" after {waits}" if waits else ""
        yield f"  {label_of(call, _LEFT - 4 - len(after))}{after}"


def _right(group: CallGroup, trace: Trace, applied: _Applied) -> Iterator[str]:
    """What came of a lane, in the words that its kind has for it."""
    results = _listed(f"[{call.index}] {call.outcome or 'no result'}" for call in group.calls)
    if group.lane is None:
        yield ""
        yield f"  +-- result at once: {results}"
        return
    shared = group.lane.shared
    merge = "" if group.lane.merged is None else f"merged at {trace.events[group.lane.merged].time:g} s: "
    modifiers = _listed(applied.get((group.batch.batch, group.lane.index), ())) if merge else "the lane did not end"
    yield "concurrent execution" if shared else "serial execution"
    yield "  |"
    progress = _listed(_progress(group.calls))
    if shared or progress != "none":
        yield f"  +-- progress updates: {progress}"
    yield f"  +-- {'final results' if shared else 'direct result'}: {results}"
    what = "queued modifiers" if shared else "direct state update"
    yield f"  +-- {what}{', ' if merge else ': '}{merge}{modifiers}"


def _progress(calls: Iterable[DrawnCall]) -> Iterator[str]:
    for call in calls:
        if call.progress:
            yield f"{len(call.progress)} from [{call.index}]"


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts) or "none"
