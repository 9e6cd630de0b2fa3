"""What has to be done to take back what a batch did, found out before anything is done.

Rules.  Every file has to be as the batch left it, and between two changes of the batch as the first of them left it;
else the plan is refused, and names the files.  A directory is not held to that: it goes if it is empty by then.

Theory.  The rows are taken back in reverse.  What will stand at a name at that point of the plan is what the plan
itself has put there, or what is on the disk now, under the name that it has before the plan moves it back.  A file
that has several names now is one, whichever of them a change went by, and is written by one of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from toolrt.workspace._disk import Disk, Entry, Kind
from toolrt.workspace._freshness import by_number
from toolrt.workspace._mutation import problem_of, standing_at
from toolrt.workspace._problem import FileProblem
from toolrt.workspace._version import Row, Standing

__all__ = ["planned"]

#: How many files a refusal names.
_MOST_NAMED = 10


async def planned(disk: Disk, rows: Sequence[Row]) -> list[Row]:
    """The rows that take back `rows`, in order; each file is written once.

    Raises:
        FileProblem: a file is not as `rows` left it, or the disk cannot be looked at.

    Checkpoint: always.
    """
    plan = _Plan(disk)
    for row in reversed(rows):
        await plan.add(row.inverse())
    if plan.blamed:
        named = sorted(plan.blamed)
        shown = ", ".join(named[:_MOST_NAMED]) + (", ..." if len(named) > _MOST_NAMED else "")
        raise FileProblem(
            shown,
            "what the batch left there",
            "something else: somebody changed it since",
            "Nothing was changed; undo what came later first, or edit the files.",
        )
    return _directories_last([row for row in plan.rows if row is not None])


def _directories_last(rows: Sequence[Row]) -> list[Row]:
    """The same with each directory removed as late as it may be, the deepest first.

    Which call's row it is that made a directory depends on timing; what was put into it may be of an earlier call.
    """
    ordered: list[Row] = []
    late: list[Row] = []
    for row in rows:
        if row.target is None and _is_directory(row.before) and row.after is None:
            late.append(row)
            continue
        if row.target is not None or any(_needs_gone(row, one) for one in late):
            ordered += sorted(late, key=lambda one: (-len(one.key), one.key))
            late = []
        ordered.append(row)
    return ordered + sorted(late, key=lambda one: (-len(one.key), one.key))


def _needs_gone(row: Row, directory: Row) -> bool:
    """Whether `row` puts something where `directory` was, or below."""
    return row.after is not None and row.key[: len(directory.key)] == directory.key


class _Plan:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        #: What is to be done; None where a later step has made an earlier one needless.
        self.rows: list[Row | None] = []
        #: The files that somebody else changed.
        self.blamed: dict[str, None] = {}
        #: What the plan has put where: by key, or by number where a file has several names.
        self._placed: dict[Entry, Standing | None] = {}
        #: The moves planned so far: from, to, and how `from` is spelled.
        self._moves: list[tuple[Entry, Entry, Entry]] = []
        #: The step that last wrote a file, by the same; forgotten at a move.
        self._writes: dict[Entry, int] = {}

    async def add(self, row: Row) -> None:
        """Plan one more step."""
        if row.target is not None and row.target_key is not None:
            await self._add_move(row, row.target_key, row.target)
        elif _is_directory(row.before) or _is_directory(row.after):
            self._placed[row.key] = row.after
            self.rows.append(row)
        else:
            await self._add_change(row)

    async def _add_change(self, row: Row) -> None:
        one, now = await self._standing(row.key, row.entry)
        if now != row.before or (row.before is not None and row.before.digest is None):
            self.blamed[row.path] = None
            return
        place = self._writes.get(one)
        earlier = None if place is None else self.rows[place]
        if row.after is None:
            # One name goes: what was to be written to the file for its sake alone is not written to the others'.
            if earlier is None or earlier.key == row.key:
                self._placed.pop(one, None)
            else:
                place = earlier = None
            self._placed[row.key] = None
        else:
            self._placed[one] = row.after
        if place is None or earlier is None:
            self._writes[one] = len(self.rows)
            self.rows.append(row)
        elif earlier.before == row.after:
            self.rows[place] = None
            del self._writes[one]
        else:
            self.rows[place] = attrs.evolve(earlier, after=row.after)

    async def _add_move(self, row: Row, target_key: Entry, target: Entry) -> None:
        if (await self._standing(row.key, row.entry))[1] is None or (
            target_key != row.key and (await self._standing(target_key, target))[1] is not None
        ):
            self.blamed[row.path] = None
            return
        depth = len(row.key)
        for key in [key for key in self._placed if key[:depth] == row.key]:
            self._placed[(*target_key, *key[depth:])] = self._placed.pop(key)
        self._moves.append((row.key, target_key, row.entry))
        self._writes.clear()
        self.rows.append(row)

    async def _standing(self, key: Entry, entry: Entry) -> tuple[Entry, Standing | None]:
        """What will stand there after the steps planned so far, and what it is known by: its key, or its number."""
        if key in self._placed:
            return key, self._placed[key]
        one = key
        for source, target, spelled in reversed(self._moves):
            if key[: len(target)] == target:
                key, entry = (*source, *key[len(target) :]), (*spelled, *entry[len(target) :])
            elif key[: len(source)] == source:
                return one, None
        try:
            found = await standing_at(self._disk, entry)
        except OSError as error:
            raise problem_of("/".join(entry), error) from None
        if found.stat is not None and found.stat.kind is Kind.FILE and found.stat.links > 1:
            one = by_number(found.stat)
        return one, self._placed.get(one, found.standing)


def _is_directory(standing: Standing | None) -> bool:
    return standing is not None and standing.kind is Kind.DIRECTORY
