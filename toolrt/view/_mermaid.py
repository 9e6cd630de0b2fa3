"""A timeline as a Mermaid sequence diagram, for a page of Markdown.

Rules.  By calls: the batch starts calls, files are read and changed, results go to the reader.  By tasks: what tasks do
to what they share, and who woke whom.  A character that means something to Mermaid is written as its number.

Limits.  A diagram has at most 300 messages, since Mermaid draws more of them too small to read; it says how many are
left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolrt.events import (
    BatchCancelled,
    CallSettled,
    CallStarted,
    CallSubmitted,
    FileRead,
    LaneMerged,
    LaneStarted,
    MutationEnded,
    ProgressSent,
    ResultDelivered,
)
from toolrt.trace import Trace, TraceEvent
from toolrt.view._calls import DrawnCall, batches_of
from toolrt.view._chart import By, checked_by, label_of
from toolrt.view._columns import column_of, columns_of, names_in, resource_text
from toolrt.view._short import one_line
from toolrt.view._source import HasTrace, trace_of

_MOST_MESSAGES = 300

_SAFE = frozenset(" abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,/_[]()+-=>?!")


def mermaid(source: Trace | HasTrace, *, by: By | None = None) -> str:
    """Give the trace as a ``sequenceDiagram``.

    Args:
        source: an execution, or a trace.
        by: "calls" or "tasks"; None: calls where there are any.

    Returns:
        The diagram's text; the same bytes for the same trace.

    Raises:
        DefinitionRefused: `source` has no trace, or `by` is not what it must be.

    Checkpoint: never.
    """
    trace = trace_of(source, "mermaid(source)")
    has_calls = bool(trace.of_kind(CallSubmitted))
    by_calls = checked_by(by, trace, has_calls) == "calls"
    participants, messages = _calls(trace) if by_calls else _tasks(trace)
    left_out = len(messages) - _MOST_MESSAGES
    lines = ["sequenceDiagram", *participants, *messages[:_MOST_MESSAGES]]
    if left_out > 0:
        first = participants[0].split()[1]
        lines.append(f"note over {first}: {left_out:,} more messages are not shown")
    return "\n    ".join(lines) + "\n"


def _safe(text: str) -> str:
    return "".join(each if each in _SAFE else f"#{ord(each)};" for each in one_line(text, 80))


def _calls(trace: Trace) -> tuple[list[str], list[str]]:
    batches = {batch.batch: batch for batch in batches_of(trace)}
    participants = ["participant reader"]
    names: dict[tuple[str, int], str] = {}
    for number, batch in enumerate(batches.values()):
        participants.append(f"participant batch{number} as {_safe(batch.label)}")
        for index, call in sorted(batch.calls.items()):
            names[batch.batch, index] = f"call{number}_{index}"
            participants.append(f"participant call{number}_{index} as {_safe(label_of(call))}")
    numbers = {batch: f"batch{number}" for number, batch in enumerate(batches)}
    messages: list[str] = []
    for event in trace.events:
        batch_id = str(event.fields.get("batch"))
        if batch_id in batches:
            told_of = event.fields.get("call")
            found = batches[batch_id].calls.get(told_of) if isinstance(told_of, int) else None
            name = names[batch_id, found.index] if found is not None else None
            messages += _message(event, numbers[batch_id], name, found)
    return participants, messages


def _message(event: TraceEvent, batch: str, name: str | None, call: DrawnCall | None) -> Iterator[str]:
    fields = event.fields
    match event.kind:
        case LaneStarted.kind:
            yield f"note over {batch}: lane {_safe(str(fields.get('lane')))} starts"
        case LaneMerged.kind:
            yield f"note over {batch}: lane {_safe(str(fields.get('lane')))} is merged"
        case BatchCancelled.kind:
            yield f"note over {batch}: cancelled"
        case CallStarted.kind if name:
            yield f"{batch}->>{name}: start"
        case ProgressSent.kind if name:
            yield f"{name}-){batch}: progress {_safe(str(fields.get('number')))}"
        case FileRead.kind if name:
            yield f"note over {name}: reads {_safe(str(fields.get('file')))}"
        case MutationEnded.kind if name:
            verb = "changes" if fields.get("ok") else "leaves"
            yield f"note over {name}: {verb} {_safe(str(fields.get('file')))}"
        case CallSettled.kind if name and call is not None and call.started is not None:
            yield f"{name}-->>{batch}: {_safe(str(fields.get('outcome')))}"
        case ResultDelivered.kind if name and call is not None:
            yield f"{batch}->>reader: result {call.index}, {_safe(str(fields.get('outcome')))}"


def _tasks(trace: Trace) -> tuple[list[str], list[str]]:
    tasks = columns_of([step.task for step in trace.steps] or [event.task for event in trace.events])
    names = {task: f"task{number}" for number, task in enumerate(tasks)}
    participants = [f"participant {name} as {_safe(task)}" for task, name in names.items()] or ["participant none"]
    resources: dict[str, str] = {}
    called = names_in(trace)
    messages: list[str] = []
    wakes: dict[int, list[int]] = {}
    for edge in trace.edges:
        if edge.wakes:
            wakes.setdefault(edge.after, []).append(edge.before)
    for step in trace.steps:
        name = names[column_of(step.task)]
        for cause in wakes.get(step.index, ()):
            messages.append(f"{names[column_of(trace.steps[cause].task)]}-){name}: wakes")
        for access in step.accesses:
            text = resource_text(access.resource, called)
            if text not in resources:
                resources[text] = f"thing{len(resources)}"
                participants.append(f"participant {resources[text]} as {_safe(text)}")
            arrow = f"{name}->>{resources[text]}" if access.write else f"{resources[text]}-->>{name}"
            messages.append(f"{arrow}: step {step.index} {'writes' if access.write else 'reads'}")
    if not trace.steps:
        messages = [f"note over {names[column_of(event.task)]}: {_safe(event.kind)}" for event in trace.events]
    return participants, messages
