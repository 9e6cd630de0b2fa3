"""What has to be done to take back what a batch did, found out before anything is done.

Rules.  Every file has to be as the batch left it, and between two changes of the batch as the first of them left it;
else the plan is refused, and names the files.  A directory is not held to that: it goes if it is empty by then.

Theory.  The rows are taken back in reverse.  What will stand at a name at that point of the plan is what the plan
itself has put there, or what is on the disk now, under the name that it has before the plan moves it back.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from toolrt.workspace._disk import Disk, Entry, Kind
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
    return [row for row in plan.rows if row is not None]


class _Plan:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        #: What is to be done; None where a later step has made an earlier one needless.
        self.rows: list[Row | None] = []
        #: The files that somebody else changed.
        self.blamed: dict[str, None] = {}
        #: What the plan has put where, by key.
        self._placed: dict[Entry, Standing | None] = {}
        #: The moves planned so far: from, to, and how `from` is spelled.
        self._moves: list[tuple[Entry, Entry, Entry]] = []
        #: The step that last wrote a file, by key; forgotten at a move.
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
        now = await self._standing(row.key, row.entry)
        if now != row.before or (row.before is not None and row.before.digest is None):
            self.blamed[row.path] = None
            return
        self._placed[row.key] = row.after
        place = self._writes.get(row.key)
        earlier = None if place is None else self.rows[place]
        if place is None or earlier is None:
            self._writes[row.key] = len(self.rows)
            self.rows.append(row)
        elif earlier.before == row.after:
            self.rows[place] = None
            del self._writes[row.key]
        else:
            self.rows[place] = attrs.evolve(earlier, after=row.after)

    async def _add_move(self, row: Row, target_key: Entry, target: Entry) -> None:
        if await self._standing(row.key, row.entry) is None or (
            target_key != row.key and await self._standing(target_key, target) is not None
        ):
            self.blamed[row.path] = None
            return
        depth = len(row.key)
        for key in [key for key in self._placed if key[:depth] == row.key]:
            self._placed[(*target_key, *key[depth:])] = self._placed.pop(key)
        self._moves.append((row.key, target_key, row.entry))
        self._writes.clear()
        self.rows.append(row)

    async def _standing(self, key: Entry, entry: Entry) -> Standing | None:
        """What will stand there after the steps planned so far."""
        if key in self._placed:
            return self._placed[key]
        for source, target, spelled in reversed(self._moves):
            if key[: len(target)] == target:
                key, entry = (*source, *key[len(target) :]), (*spelled, *entry[len(target) :])
            elif key[: len(source)] == source:
                return None
        try:
            return (await standing_at(self._disk, entry)).standing
        except OSError as error:
            raise problem_of("/".join(entry), error) from None


def _is_directory(standing: Standing | None) -> bool:
    return standing is not None and standing.kind is Kind.DIRECTORY
