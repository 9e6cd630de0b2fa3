"""What each step did, with the values that it read and wrote, as far as the trace's details have them.

Rules.  The value that a write replaces is the one last seen, by the same step or by one before: every change is an
access, so nothing lies between.  Once something is written whose value is unknown, the old one is unknown too.  Values
are short, and on one line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolrt.trace import Access, Trace, plain, stable_text
from toolrt.view._columns import MOST_ACCESSES, cancelled_in, done_in, names_in, resource_text
from toolrt.view._short import one_line

#: The most characters that a cell shows of a value.
_MOST_OF_A_VALUE = 24

#: An access as the details have it: the resource as text, whether it is a write, and the value or None.
_Entry = tuple[str, bool, str | None]


def done_with_values(trace: Trace) -> list[str]:
    """Say in a few words what each step did: `done_in`, and the values where they are known."""
    entries, names = _entries(trace), names_in(trace)
    known: dict[str, str | None] = {}
    done = []
    for step in trace.steps:
        mine = entries.get(step.index, ())
        before = {resource: known.get(resource) for resource, _, _ in mine}
        for resource, write, value in mine:
            if before[resource] is None and not write:
                before[resource] = value
            if write or value is not None:
                known[resource] = value
        # What a step wrote is there when it is over, whatever it read later.
        known |= {resource: value for resource, write, value in mine if write}
        if not any(value is not None for _, _, value in mine):
            done.append(done_in(step, trace))
            continue
        told = _told(step.accesses, mine, before, names)
        more = len(told) - MOST_ACCESSES
        done.append(
            cancelled_in(step, trace) + ", ".join(told[:MOST_ACCESSES]) + (f" and {more} more" if more > 0 else "")
        )
    return done


def _told(
    accesses: Sequence[Access], mine: Sequence[_Entry], before: Mapping[str, str | None], names: Mapping[str, str]
) -> list[str]:
    """Tell what has a known value first, a lock's state last; of each what is written before what is only read."""
    values = {(resource, write): value for resource, write, value in mine}
    read = {access.resource for access in accesses if not access.write}
    written = {access.resource for access in accesses if access.write}
    known = {resource for (resource, _), value in values.items() if value is not None}
    valued = {access.resource for access in accesses if stable_text(plain(access.resource)) in known}
    told = []
    for access in sorted(accesses, key=lambda access: (access.resource not in valued, not access.write)):
        resource = access.resource
        if not access.write and resource in written:
            continue
        key, text = stable_text(plain(resource)), resource_text(resource, names)
        value = values.get((key, access.write))
        if not access.write:
            told.append(f"reads {text}" + (f" = {_short(value)}" if value is not None else ""))
            continue
        old = before.get(key)
        if value is not None:
            text += f" {_short(old)} -> {_short(value)}" if old is not None else f" = {_short(value)}"
        told.append(f"{'reads+writes' if resource in read else 'writes'} {text}")
    return told


def _short(value: str) -> str:
    return one_line(value, _MOST_OF_A_VALUE)


def _entries(trace: Trace) -> dict[int, list[_Entry]]:
    """Give the accesses of each step in the order in which they were made; none where the notes are odd."""
    details = trace.notes.get("details")
    accesses = details.get("accesses") if isinstance(details, Mapping) else None
    found: dict[int, list[_Entry]] = {}
    for access in accesses if isinstance(accesses, list) else ():
        match access:
            case [int() as step, list() as resource, bool() as write, _, _, str() | None as value]:
                found.setdefault(step, []).append((stable_text(resource), write, value))
    return found
