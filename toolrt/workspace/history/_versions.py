"""Builds one entry's versions from the rows of its changes.

Theory.  Between two changes of an entry its content is what the one left and the other found.  A move tells neither, as
it looks into nothing: then it is what the entry had before under its other name, or has there after.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from toolrt.workspace._problem import FileProblem
from toolrt.workspace.change._version import ChangeRow, EntryState, Version
from toolrt.workspace.disk._disk import Entry
from toolrt.workspace.names._naming import shown_at


def standing_at_version(
    path: str, key: Entry, number: int, dropped: int, rows: Sequence[ChangeRow]
) -> EntryState | None:
    """What stood at `key` after version `number`."""
    first, last = dropped, dropped + len(rows)
    if not rows or not (first <= number <= last):
        got = f"{number!r} of {last}" if rows else "a file without versions"
        raise FileProblem(path, f"a version from {first} to {last}", got, "See which versions there are.")
    if number > first:
        return _left_by(rows[number - first - 1], key)
    return _found_by(rows[0], key)


async def content_between(
    key: Entry, place: int, rows: Sequence[ChangeRow], rows_of: Callable[[Entry], Awaitable[Sequence[ChangeRow]]]
) -> bytes | None:
    """The digest of what stood at `key` after so many (`place`) of its `rows`, by whatever name it went; None: unknown.

    Args:
        rows_of: gives the rows of an entry.

    Checkpoint: as `rows_of`, where a move has to be followed.
    """
    todo = [(key, place, rows)]
    known = {(key, place)}
    while todo:
        key, place, rows = todo.pop()
        before, after = rows[place - 1 : place], rows[place : place + 1]
        for standing in (*(_left_by(row, key) for row in before), *(_found_by(row, key) for row in after)):
            if standing is not None and standing.digest is not None:
                return standing.digest
        moves = [(row, row.key, 0) for row in before if row.target_key == key]
        moves += [(row, row.target_key, 1) for row in after if row.key == key and row.target_key is not None]
        for row, other, later in moves:
            others = await rows_of(other)
            if row in others:
                there = (other, others.index(row) + later)
                if there not in known:
                    known.add(there)
                    todo.append((*there, others))
    return None


def _left_by(row: ChangeRow, key: Entry) -> EntryState | None:
    if row.target_key is None:
        return row.after
    return row.before if row.target_key == key else None


def _found_by(row: ChangeRow, key: Entry) -> EntryState | None:
    return row.before if row.target_key != key else None


def version_of(number: int, row: ChangeRow, key: Entry) -> Version:
    """What one change made of the entry at `key`, as its version of that number."""
    before, after = _found_by(row, key), _left_by(row, key)
    if row.keeps or row.gives_back:
        action = "removed" if row.keeps else "created"
    elif row.target is not None:
        action = f"moved to {shown_at(row.target)}" if after is None else f"moved from {row.path}"
    elif before is None:
        action = "created"
    else:
        action = "removed" if after is None else "changed"
    return Version(
        number,
        shown_at(row.target or row.entry) if row.target_key == key else row.path,
        row.batch_id,
        row.call_index,
        row.call_id,
        action,
        None if before is None or before.digest is None else before.digest.hex(),
        None if after is None or after.digest is None else after.digest.hex(),
        row.time_ns,
    )
